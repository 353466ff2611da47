// Tries each adapter of the Python package and of the TypeScript SDK in its framework, with a scripted model:
//   npm run test:frameworks [-- --light] [-- --install] [-- --write] [-- <name> ...]
// Each framework of Python has a virtual environment of its own under dist/python, and is tried against the built
// gateway. Frameworks of TypeScript are named `typescript/<name>` (scripts/try-typescript.mjs). `--light` leaves out
// what takes minutes to install, `go` and `java` among it; `--install` installs them and tries none; `--write` puts the
// tried versions into docs/sdk-python.md. `go` and `java` are the examples in these languages (test/languages), where
// their compilers are installed.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installFailureOfTypeScript, triedTypeScript } from './try-typescript.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SDK = join(ROOT, 'sdk', 'python');
const DOCUMENT = join(ROOT, 'docs', 'sdk-python.md');
const TABLE = /(<!-- tried -->\n)([^]*?)(<!-- \/tried -->)/;
/** Requirements of the tests themselves. */
const TOOLS = readFileSync(join(SDK, 'requirements-test.txt'), 'utf8')
  .split('\n')
  .filter((line) => /^(pytest|mypy)==/.test(line));
/** Installing and testing mostly wait for the network and for processes. */
const AT_ONCE = 2;

const TYPESCRIPT = 'typescript/';
const DOCUMENT_OF_TYPESCRIPT = join(ROOT, 'docs', 'sdk-typescript.md');
const ofTypeScript = JSON.parse(readFileSync(join(ROOT, 'sdk', 'typescript', 'frameworks.json'), 'utf8'));
const frameworks = {
  ...JSON.parse(readFileSync(join(SDK, 'frameworks.json'), 'utf8')),
  ...Object.fromEntries(Object.entries(ofTypeScript).map(([name, entry]) => [`${TYPESCRIPT}${name}`, entry])),
};
/** Examples in other languages, by the parts of the test names. */
const languages = { go: 'in Go', java: 'in Java' };
const given = process.argv.slice(2);
const named = given.filter((each) => !each.startsWith('--'));
const all = [...Object.keys(frameworks), ...Object.keys(languages)];
const unknown = named.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}; there are ${all.join(', ')}`);
  process.exit(2);
}
/** Compilers fetch hundreds of megabytes, too. */
const isHeavy = (name) => name in languages || frameworks[name].heavy === true;
const chosen = all.filter(
  (name) => (named.length === 0 || named.includes(name)) && !(given.includes('--light') && isHeavy(name)),
);

const results = new Map();
const waiting = [...chosen];
await Promise.all(Array.from({ length: AT_ONCE }, work));
const failed = [...results].filter(([, result]) => !result.ok).map(([name]) => name);
if (given.includes('--write') && !given.includes('--install') && failed.length === 0) writeTable();
if (failed.length > 0) {
  console.error(`failed: ${failed.join(', ')}`);
  process.exit(1);
}

async function work() {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const began = Date.now();
    const result = await resultOf(name);
    results.set(name, result);
    console.log(
      `${result.ok ? 'ok' : 'FAILED'}  ${name}: ${result.summary}, ${Math.round((Date.now() - began) / 1000)} s`,
    );
    if (!result.ok) console.log(result.output);
  }
}

async function resultOf(name) {
  const isInstalling = given.includes('--install');
  const installed = { ok: true, summary: 'installed' };
  if (languages[name] !== undefined) return isInstalling ? installed : triedLanguage(languages[name]);
  const [install, attempt] = name.startsWith(TYPESCRIPT)
    ? [installFailureOfTypeScript, triedTypeScript]
    : [installFailure, tried];
  const words = [name.replace(TYPESCRIPT, ''), frameworks[name]];
  return isInstalling ? ((await install(...words)) ?? installed) : attempt(...words);
}

/** Its tests are skipped where the compiler is not installed. */
async function triedLanguage(named) {
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const config = join(ROOT, 'vitest.languages.config.ts');
  const options = ['run', '--root', ROOT, '--config', config, '--no-color', '-t', named];
  const { ok, output } = await run(process.execPath, [vitest, ...options]);
  const count = /(\d+) passed/.exec(/Tests .*/.exec(output)?.[0] ?? '')?.[1];
  const skipped = ok && count === undefined;
  return { ok, summary: skipped ? 'skipped: its compiler is not installed' : `${count ?? 0} passed`, output };
}

function environmentOf(name) {
  return join(ROOT, 'dist', 'python', `framework-${name}`);
}
function pythonOf(name) {
  return join(environmentOf(name), 'bin', 'python');
}

/** Installs the framework, unless it is there; undefined where it is then. */
async function installFailure(name, { install }) {
  const marker = join(environmentOf(name), 'installed');
  const wanted = [...install, ...TOOLS].join('\n');
  if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted) return undefined;
  const made = await run('python3', ['-m', 'venv', '--clear', environmentOf(name)]);
  if (!made.ok) return { ok: false, summary: 'no virtual environment', output: made.output };
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-compile', '--disable-pip-version-check'];
  const installed = await run(pythonOf(name), [...pip, ...install, ...TOOLS]);
  if (!installed.ok) return { ok: false, summary: 'pip cannot install it', output: installed.output };
  writeFileSync(marker, wanted);
  return undefined;
}

async function tried(name, { module, install, shows }) {
  const failure = await installFailure(name, { install });
  if (failure !== undefined) return failure;
  const python = pythonOf(name);
  const versions = await run(python, [
    '-c',
    `from importlib.metadata import version; print(*[version(n) for n in ${JSON.stringify(shows)}])`,
  ]);
  const types = await run(python, [
    '-m',
    'mypy',
    '--cache-dir',
    '/dev/null',
    '--follow-imports=silent',
    `src/svc_gateway/${module}.py`,
  ]);
  const tests = await run(python, [
    '-m',
    'pytest',
    '-q',
    '-p',
    'no:cacheprovider',
    '-W',
    'ignore',
    `tests/frameworks/test_${name}.py`,
  ]);
  const count = /(\d+) passed/.exec(tests.output)?.[1] ?? '0';
  return {
    ok: types.ok && tests.ok && versions.ok,
    summary: `${count} passed${types.ok ? '' : ', types fail'}`,
    output: `${types.ok ? '' : types.output}${tests.ok ? '' : tests.output}`,
    versions: versions.output.trim().split(' '),
    count,
  };
}

function run(command, args) {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
  return new Promise((resolve) => {
    execFile(command, args, { cwd: SDK, env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: `${stdout}${stderr}` }),
    );
  });
}

/** Writes the rows of what was tried. Rows of other adapters stay. */
function writeTable() {
  const adapters = chosen.filter((name) => languages[name] === undefined);
  const rowsOf = (isMine, rowOf) => adapters.filter((name) => name.startsWith(TYPESCRIPT) === isMine).map(rowOf);
  const python = rowsOf(false, (name) => {
    const { shows } = frameworks[name];
    const { versions, count } = results.get(name);
    return `| \`svc_gateway.${name}\` | ${shows.map((each, at) => `${each} ${versions[at]}`).join(', ')} | ${count} |`;
  });
  const typescript = rowsOf(true, (name) => {
    const { tried: versions, count } = results.get(name);
    return `| \`svc-gateway-sdk/${name.slice(TYPESCRIPT.length)}\` | ${versions.join(', ')} | ${count} |`;
  });
  if (python.length > 0) writeRows(DOCUMENT, python);
  if (typescript.length > 0) writeRows(DOCUMENT_OF_TYPESCRIPT, typescript);
}

function writeRows(document, rows) {
  const nameIn = (row) => row.split('|')[1];
  const written = readFileSync(document, 'utf8').replace(TABLE, (_all, begin, old, end) => {
    const kept = old.trimEnd().split('\n').slice(2);
    const before = kept.map((row) => rows.find((each) => nameIn(each) === nameIn(row)) ?? row);
    const added = rows.filter((row) => !before.includes(row));
    return [`${begin}| adapter | tried with | tests |`, '| --- | --- | --- |', ...before, ...added, end].join('\n');
  });
  writeFileSync(document, written);
}
