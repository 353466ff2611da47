/** Files that are shipped beside the code. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder that holds package.json: above src/ in a checkout, above dist/src/ where the code was compiled. */
export const PACKAGE_ROOT = rootAbove(dirname(fileURLToPath(import.meta.url)));

export const STARTER_POLICY = join(PACKAGE_ROOT, 'examples', 'policies', 'starter.yaml');
export const WEB_FOLDER = join(PACKAGE_ROOT, 'web');

export const packageVersion = (): string => (JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { version: string }).version;

function rootAbove(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const above = dirname(folder);
  if (above === folder) throw new Error('the package is not complete: its package.json is missing');
  return rootAbove(above);
}
