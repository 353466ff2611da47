// Tries an adapter of the TypeScript SDK in its framework, for `npm run test:frameworks`: the package as `npm pack`
// makes it, in a folder of its own under dist/frameworks, with the types and the tests of sdk/typescript/frameworks.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SDK = join(ROOT, 'sdk', 'typescript');
const FOLDER = join(ROOT, 'dist', 'frameworks');
const STRICT = [
  '--ignoreConfig',
  '--noEmit',
  '--strict',
  '--exactOptionalPropertyTypes',
  '--skipLibCheck',
  '--allowImportingTsExtensions',
];
const MODULES = ['--target', 'es2023', '--lib', 'es2023,dom,dom.iterable', '--module', 'nodenext', '--types', ''];

let packed;

/** Installs the framework, unless it is there; undefined where it is then. */
export async function installFailureOfTypeScript(name, { install }) {
  const folder = join(FOLDER, name);
  const marker = join(folder, 'installed');
  const wanted = install.join('\n');
  if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted) return undefined;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'vitest.config.mjs'), 'export default {};\n'); // not that of the gateway
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }\n');
  const npm = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-save', ...install];
  const installed = await run('npm', npm, folder);
  if (!installed.ok) return { ok: false, summary: 'npm cannot install it', output: installed.output };
  writeFileSync(marker, wanted);
  return undefined;
}

export async function triedTypeScript(name, { install }) {
  const failure = await installFailureOfTypeScript(name, { install });
  if (failure !== undefined) return failure;
  const folder = join(FOLDER, name);
  const modules = join(folder, 'node_modules');
  packed ??= run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', FOLDER], SDK);
  const tarball = await packed;
  if (!tarball.ok) return { ok: false, summary: 'npm cannot pack the SDK', output: tarball.output };
  const sdk = join(modules, 'svc-gateway-sdk');
  mkdirSync(sdk, { recursive: true });
  const file = join(FOLDER, tarball.output.trim().split('\n').at(-1));
  const unpacked = await run('tar', ['-xzf', file, '--strip-components', '1', '-C', sdk], folder);
  if (!unpacked.ok) return { ok: false, summary: 'the package cannot be unpacked', output: unpacked.output };
  if (!existsSync(join(modules, 'vitest'))) symlinkSync(join(ROOT, 'node_modules', 'vitest'), join(modules, 'vitest'));
  for (const each of ['contract.ts', `${name}.test.ts`]) cpSync(join(SDK, 'frameworks', each), join(folder, each));
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const types = await run(process.execPath, [tsc, ...STRICT, ...MODULES, `${name}.test.ts`], folder);
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const tests = await run(process.execPath, [vitest, 'run', '--root', folder, '--no-color'], folder);
  const count = /(\d+) passed \(/.exec(/Tests .*/.exec(tests.output)?.[0] ?? '')?.[1] ?? '0';
  return {
    ok: types.ok && tests.ok,
    summary: `${count} passed${types.ok ? '' : ', types fail'}`,
    output: `${types.ok ? '' : types.output}${tests.ok ? '' : tests.output}`,
    tried: install.filter((each) => !each.startsWith('zod@')).map((each) => each.replace(/@(?=[^@]*$)/, ' ')),
    count,
  };
}

function run(command, args, cwd) {
  return new Promise((resolve) => {
    execFile(command, args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: `${stdout}${stderr}` }),
    );
  });
}
