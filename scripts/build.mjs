// Compiles the gateway and the SDK, each to a clean dist/, so that a renamed file cannot live on there. The gateway's
// types are not checked here: `npm run typecheck` does, and a build is what every install and every test run waits for.
import { spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isBuilt, noteBuilt } from './built.mjs';
import { BUNDLED, BUNDLED_IN_DASHBOARD } from './bundled.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** As deep as the files that look for others from where they are, such as `system/worker-file.ts`. */
const CHUNKS = 'chunks';
const SDK_DIST = join(ROOT, 'sdk', 'typescript', 'dist');

if (process.argv.includes('--if-changed') && isBuilt(ROOT)) {
  console.log('dist/ is up to date');
  process.exit();
}
const tsc = compiler();
// The virtual environments and packages of the tests stay: to install them takes longer than all the rest. So do the
// papers of the package, which `npm publish` writes before it builds.
const KEPT = ['python', 'frameworks', 'sbom.cdx.json', 'NOTICES.txt'];
const old = existsSync(join(ROOT, 'dist'))
  ? readdirSync(join(ROOT, 'dist')).filter((name) => !KEPT.includes(name))
  : [];
for (const path of [...old.map((name) => join(ROOT, 'dist', name)), SDK_DIST])
  rmSync(path, { recursive: true, force: true });
// The SDK first: `svc mcp` imports it as every agent does, by its name, and so needs its types.
if ((await compiled(join(ROOT, 'sdk', 'typescript', 'tsconfig.build.json'))) !== 0) process.exit(1);
await bundlePolicies();
writeEntries();
if ((await compiled(join(ROOT, 'tsconfig.build.json'))) !== 0) process.exit(1);
await Promise.all([bundle(), buildDashboard()]);
chmodSync(join(ROOT, 'dist', 'src', 'cli', 'main.js'), 0o755);
noteBuilt(ROOT);

function compiler() {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
  } catch {
    console.error(
      'The compiler is not installed: --omit=dev and NODE_ENV=production leave it out. Build after npm ci --include=dev; npm prune --omit=dev drops the compiler again.',
    );
    process.exit(1);
  }
}

function compiled(project) {
  return new Promise((resolve) => {
    spawn(process.execPath, [tsc, '-p', project], { stdio: 'inherit' }).once('close', resolve);
  });
}

/**
 * The SDK is compiled once, to CommonJS; its ES module names the same exports. With a copy for each, an error of a
 * client that a library has required would be no `instanceof` the class that the application has imported.
 */
function writeEntries() {
  const cjs = join(SDK_DIST, 'cjs');
  const esm = join(SDK_DIST, 'esm');
  writeFileSync(join(cjs, 'package.json'), '{ "type": "commonjs" }\n');
  // The compiler leaves the extension of the sources in declarations, which older compilers do not follow.
  for (const file of readdirSync(cjs).filter((name) => name.endsWith('.d.ts'))) {
    const types = readFileSync(join(cjs, file), 'utf8');
    writeFileSync(join(cjs, file), types.replaceAll(/((?:from|import\() ?'\.\/[\w-]+)\.ts'/g, "$1.js'"));
  }
  mkdirSync(esm);
  const { exports } = JSON.parse(readFileSync(join(SDK_DIST, '..', 'package.json'), 'utf8'));
  for (const { import: entry } of Object.values(exports).filter((each) => typeof each === 'object')) {
    const name = /^\.\/dist\/esm\/([\w-]+)\.js$/.exec(entry.default)[1];
    const names = Object.keys(createRequire(import.meta.url)(join(cjs, `${name}.js`))).sort();
    writeFileSync(join(esm, `${name}.js`), `export { ${names.join(', ')} } from '../cjs/${name}.js';\n`);
    writeFileSync(join(esm, `${name}.d.ts`), `export * from '../cjs/${name}.js';\n`);
  }
}

/**
 * The policy code, for the fake gateway of the SDK's tests: one file, without Node.js and all libraries, so that a
 * test of an agent decides by the very rules of the gateway.
 */
async function bundlePolicies() {
  const { rolldown } = await import('rolldown');
  const linked = await rolldown({
    cwd: ROOT,
    platform: 'neutral',
    input: join(ROOT, 'sdk', 'typescript', 'policy', 'policy.ts'),
    external: /^node:/,
    treeshake: { moduleSideEffects: false },
    resolve: { mainFields: ['module', 'main'] },
    logLevel: 'warn',
  });
  await linked.write({ file: join(SDK_DIST, 'cjs', 'policy.js'), format: 'cjs', exports: 'named', minify: true });
  await linked.close();
  for (const name of ['re2js', 'yaml']) copyLicense(name, join(SDK_DIST, 'cjs'));
  cpSync(join(ROOT, 'sdk', 'typescript', 'src', 'policy.d.ts'), join(SDK_DIST, 'cjs', 'policy.d.ts'));
}

/**
 * Replaces the entries, which are the command and the threads, by bundles of what they import: to find, read and link
 * five hundred small files takes as long as all else that a start does. Names, comments and the files' names stay, and
 * source maps lead back to the sources. Scripts, benchmarks and tests import the single files.
 */
async function bundle() {
  const { rolldown } = await import('rolldown');
  const entries = ['src/cli/main', ...readdirSync(join(ROOT, 'workers')).map((name) => `workers/${name.slice(0, -3)}`)];
  const linked = await rolldown({
    cwd: ROOT,
    platform: 'node',
    input: Object.fromEntries(entries.map((entry) => [entry, join(ROOT, `${entry}.ts`)])),
    external: (id) => !/^[./]/.test(id) && !BUNDLED.some((name) => id === name || id.startsWith(`${name}/`)),
    logLevel: 'warn',
  });
  await linked.write({
    dir: join(ROOT, 'dist'),
    format: 'es',
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: `src/${CHUNKS}/[name].js`,
  });
  await linked.close();
  for (const name of BUNDLED) copyLicense(name);
}

/** The dashboard's files, with the licences of the libraries that are in them. */
async function buildDashboard() {
  const { build } = await import('vite');
  await build({ configFile: join(ROOT, 'web', 'vite.config.ts'), logLevel: 'warn' });
  for (const name of BUNDLED_IN_DASHBOARD) copyLicense(name, join(ROOT, 'dist', 'web'));
}

function copyLicense(name, beside = join(ROOT, 'dist', 'src', CHUNKS)) {
  const folder = join(ROOT, 'node_modules', name);
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} comes without its licence`);
  cpSync(join(folder, file), join(beside, 'licenses', name));
}
