/**
 * `npm run pack`: the packages of the gateway (with `svc`) and of its SDK as tarballs, in the folder `artifacts` or the
 * one that is named. Both are installed together: the gateway needs the SDK of the same version.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packPython } from './pack-python.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = resolve(process.argv[2] ?? join(root, 'artifacts'));
mkdirSync(folder, { recursive: true });
// A package of another version would be installed as well by `npm install -g ./artifacts/*.tgz`.
for (const name of readdirSync(folder)) if (/^svc-gateway.*\.tgz$/.test(name)) rmSync(join(folder, name));
execFileSync(process.execPath, [join(root, 'scripts', 'third-party.mjs')], { stdio: 'inherit' });
for (const workspace of [[], ['--workspace', 'svc-gateway-sdk']])
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder, ...workspace], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32', // npm is a batch file there
  });
const skipped = packPython(folder);
if (skipped !== undefined) console.error(`The Python package is not packed: ${skipped}`);
for (const name of readdirSync(folder).sort()) if (/^svc[-_]gateway/.test(name)) console.log(join(folder, name));
