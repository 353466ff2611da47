/**
 * `npm run sbom`: what the package is made of and under which licences, as dist/sbom.cdx.json (CycloneDX) and
 * dist/NOTICES.txt. Both are of the lock file, so that they name the same on every machine.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BUNDLED_IN_DASHBOARD } from './bundled.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const readJson = (...path) => JSON.parse(readFileSync(join(ROOT, ...path), 'utf8'));
/** Packages of this repository, under the same licence. */
const SDK = 'svc-gateway-sdk';
const { name, version } = readJson('package.json');

/** npm names packages of a checkout after their folders; what `purl` says is right. */
const named = (component) => ({
  ...component,
  name: decodeURIComponent(/^pkg:npm\/(.+)@[^@]+$/.exec(component.purl)[1]),
});

/**
 * Names with versions of all that is installed with the package, on any machine. By the lock file: `npm sbom --omit dev`
 * leaves out what development needs as well.
 */
function installedOnes() {
  return new Set(
    Object.entries(readJson('package-lock.json').packages)
      .filter(([path, { dev, link }]) => path.includes('node_modules/') && dev !== true && link !== true)
      .map(([path, entry]) => `${entry.name ?? path.split('node_modules/').at(-1)}@${entry.version}`),
  );
}

function wholeBill() {
  const words = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
  const isWindows = process.platform === 'win32'; // npm is a batch file there
  const stdio = ['ignore', 'pipe', 'inherit'];
  return JSON.parse(
    execFileSync('npm', words, { cwd: ROOT, encoding: 'utf8', shell: isWindows, maxBuffer: 2 ** 26, stdio }),
  );
}

/** Packages installed with this one, and those built into the dashboard. */
export function softwareBill() {
  const bill = wholeBill();
  const installed = installedOnes().add(`${SDK}@${version}`);
  const components = bill.components
    .map(named)
    .filter((each) => installed.has(`${each.name}@${each.version}`) || BUNDLED_IN_DASHBOARD.includes(each.name))
    .sort((one, other) => (one['bom-ref'] < other['bom-ref'] ? -1 : 1));
  const there = new Set(components.map((each) => each.name));
  const missing = [...BUNDLED_IN_DASHBOARD, ...Object.keys(readJson('package.json').dependencies)].filter(
    (each) => !there.has(each),
  );
  if (missing.length > 0) throw new Error(`the bill lacks ${missing.join(', ')}`);
  const licenceless = components.filter(({ licenses = [] }) => licenses.length === 0).map((each) => each.name);
  if (licenceless.length > 0) throw new Error(`these have no licence: ${licenceless.join(', ')}`);
  const root = { ...bill.metadata.component, name };
  const references = new Set([root['bom-ref'], ...components.map((each) => each['bom-ref'])]);
  const dependencies = bill.dependencies
    .filter(({ ref }) => references.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => references.has(each)) }));
  return { ...bill, metadata: { ...bill.metadata, component: root }, components, dependencies };
}

const licenceOf = ({ licenses }) =>
  licenses.map(({ license, expression }) => expression ?? license.id ?? license.name).join(', ');

/** The texts of the licence and of the notice that come with it. */
function textsOf(component) {
  const folder = join(ROOT, 'node_modules', component.name);
  if (!existsSync(join(folder, 'package.json'))) return [];
  if (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version !== component.version) return [];
  return readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    .sort()
    .map((file) => readFileSync(join(folder, file), 'utf8').trim());
}

export function noticesOf({ components }) {
  const parts = components
    .filter((component) => component.name !== SDK)
    .map((component) => {
      const texts = textsOf(component);
      return [
        `${component.name} ${component.version}`,
        `Licence: ${licenceOf(component)}`,
        ...(texts.length === 0 ? ['Its text comes with the package itself.'] : texts.map((text) => `\n${text}`)),
      ].join('\n');
    });
  const head = `${name} ${version} is under the Apache License 2.0. It installs or contains the following, each under its own licence.`;
  return `${[head, ...parts].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const bill = softwareBill();
  mkdirSync(join(ROOT, 'dist'), { recursive: true });
  writeFileSync(join(ROOT, 'dist', 'sbom.cdx.json'), `${JSON.stringify(bill, null, 2)}\n`);
  writeFileSync(join(ROOT, 'dist', 'NOTICES.txt'), noticesOf(bill));
  console.log(`${bill.components.length} components: dist/sbom.cdx.json, dist/NOTICES.txt`);
}
