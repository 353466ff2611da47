// Runs scripts of package.json at once, as each leaves processors idle for much of its time, and prints what each said
// when it has ended: node scripts/side-by-side.mjs <script> [<script> …]
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const env = { ...process.env, PATH: `${join(ROOT, 'node_modules', '.bin')}${delimiter}${process.env.PATH}` };

const names = process.argv.slice(2);
const unknown = names.filter((name) => scripts[name] === undefined);
if (names.length === 0 || unknown.length > 0) {
  console.error(`usage: node scripts/side-by-side.mjs <script of package.json> …; unknown: ${unknown.join(', ')}`);
  process.exit(2);
}
const statuses = await Promise.all(names.map(ended));
process.exitCode = statuses.every((status) => status === 0) ? 0 : 1;

function ended(name) {
  return new Promise((resolve, reject) => {
    const child = spawn(scripts[name], { cwd: ROOT, env, shell: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
    child.once('error', reject).once('close', (status) => {
      console.log(`${status === 0 ? 'passed' : 'FAILED'}: npm run ${name}`);
      if (said !== '') console.log(said);
      resolve(status);
    });
  });
}
