// Generates the client code of examples/go from proto/ by buf.gen.yaml, and notes from what: npm run proto. Without Go
// the code stays as it is. `--check` says whether it is up to date.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const NOTE = join(ROOT, 'examples', 'go', 'gen', 'source.sha256');

if (process.argv.includes('--check')) {
  if (readFileSync(NOTE, 'utf8').trim() !== source()) {
    console.error('examples/go/gen is older than proto/ or buf.gen.yaml: run `npm run proto`, with Go installed');
    process.exitCode = 1;
  }
} else if (spawnSync('go', ['version'], { stdio: 'ignore' }).status !== 0) {
  console.warn('examples/go/gen stays as it is: Go, in which its generators are written, is not installed');
} else {
  execFileSync(join(ROOT, 'node_modules', '.bin', 'buf'), ['generate'], { cwd: ROOT, stdio: 'inherit' });
  writeFileSync(NOTE, `${source()}\n`);
}

/** The hash of the messages and services, whatever their comments say, and of the generators. */
function source() {
  const folder = join(ROOT, 'proto', 'svc', 'governance', 'v1');
  const protos = readdirSync(folder)
    .sort()
    .map((name) => readFileSync(join(folder, name), 'utf8').replaceAll(/ *\/\/.*/g, ''));
  const text = [...protos, readFileSync(join(ROOT, 'buf.gen.yaml'), 'utf8')].join('\n').replaceAll(/\n+/g, '\n');
  return createHash('sha256').update(text).digest('hex');
}
