/** The report of a load for people who were not there: one file, without scripts and without the network. */
import type { Measured } from './open-loop.ts';
import { curveChart, rateChart, waitsChart } from './picture.ts';

export type Report = {
  /** Pairs of a name and a text, in the order in which they are shown. */
  readonly asked: readonly (readonly [name: string, text: string])[];
  readonly figures: readonly (readonly [name: string, text: string])[];
  /** Sentences on what was missed. */
  readonly missed: readonly string[];
  readonly measured: Measured;
};

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #777; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: .2rem; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
svg { width: 100%; height: auto; margin: .5rem 0 1rem; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg .title { font-weight: 600; font-size: 13px; }
svg .grid { stroke: var(--line); }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; vertical-align: top; }
th { font-weight: 500; color: var(--soft); }
.missed { border-left: 4px solid #c2364a; padding: .3rem .8rem; }
.kept { border-left: 4px solid #2e8b57; padding: .3rem .8rem; }
footer { color: var(--soft); margin: 2rem 0; }`;

const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const table = (rows: readonly (readonly [string, string])[]): string =>
  `<table>${rows.map(([name, text]) => `<tr><th>${escaped(name)}</th><td>${escaped(text)}</td></tr>`).join('')}</table>`;

export function htmlReport({ asked, figures, missed, measured }: Report): string {
  const verdict =
    missed.length === 0
      ? '<p class="kept">The load was sent as asked, and every goal was met.</p>'
      : missed.map((sentence) => `<p class="missed">${escaped(sentence)}</p>`).join('');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc load</title>
<style>${STYLE}
</style>
</head>
<body>
<h1>Load of a policy gateway</h1>
${verdict}
<h2>Asked</h2>
${table(asked)}
<h2>Measured</h2>
${table(figures)}
${curveChart(measured)}
${waitsChart(measured)}
${rateChart(measured)}
${measured.reasons.length === 0 ? '' : `<h2>Answers that were not allow</h2>\n${table(measured.reasons.map(({ kind, reason, count }) => [`${count.toLocaleString('en')} × ${kind}`, reason || '(no reason given)']))}`}
<footer>Open loop: checks arrive at random, and a wait counts from when its check was due, whether or not a connection was free.</footer>
</body>
</html>
`;
}
