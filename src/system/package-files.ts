/** Files that are shipped beside the code. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder that holds package.json: above src/ in a checkout, above dist/src/ where the code was compiled. */
export const PACKAGE_ROOT = rootAbove(dirname(fileURLToPath(import.meta.url)));

export const STARTER_POLICY = join(PACKAGE_ROOT, 'examples', 'policies', 'starter.yaml');
export const WEB_FOLDER = join(PACKAGE_ROOT, 'dist', 'web');

export const packageVersion = (): string => manifest().version;

/** The oldest release of Node.js that the gateway runs on, such as `20.19`. */
export const leastNode = (): string => manifest().engines.node.replace('>=', '');

const manifest = (): { version: string; engines: { node: string } } =>
  JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    version: string;
    engines: { node: string };
  };

function rootAbove(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const above = dirname(folder);
  if (above === folder) throw new Error('the package is incomplete: its package.json is missing');
  return rootAbove(above);
}
