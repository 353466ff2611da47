// Writes the results of the last soaks into docs/reliability.md, each between its markers. Soaks that were not run keep
// the figures of their last run: npm run test:soak && npm run docs:reliability
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const [folder = join(ROOT, 'artifacts', 'soak'), document = join(ROOT, 'docs', 'reliability.md')] =
  process.argv.slice(2);

const shown = (figure) => (typeof figure === 'number' ? figure.toLocaleString('en') : figure);
const duration = (secs) => (secs < 120 ? `${secs} s` : `${Math.round(secs / 60)} min`);

function tableOf({ date, machine, secs, share, seed, figures }) {
  const rows = Object.entries(figures).map(([name, figure]) => `| ${name} | ${shown(figure)} |`);
  const whole = share === 1 ? '' : `, ${Number((share * 100).toPrecision(3))} % of the whole`;
  return `| | |\n| --- | --- |\n${rows.join('\n')}\n\n${date}, in ${duration(secs)}${whole}, seed ${seed}: ${machine}.\n`;
}

let text = readFileSync(document, 'utf8');
const runs = readdirSync(folder).filter((file) => file.endsWith('.json'));
for (const file of runs.sort()) {
  const run = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const [open, close] = [`<!-- soak ${run.name} -->`, `<!-- /soak ${run.name} -->`];
  const [from, to] = [text.indexOf(open), text.indexOf(close)];
  if (from === -1 || to < from) throw new Error(`${document} has no ${open} … ${close} to write the figures to`);
  text = `${text.slice(0, from + open.length)}\n${tableOf(run)}\n${text.slice(to)}`;
}
writeFileSync(document, text);
console.log(`${document}: ${runs.length} soaks`);
