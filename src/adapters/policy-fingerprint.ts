/** Detects whether a policy file or folder has changed. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../core/error-text.ts';
import { isPolicyFileName } from './policy-file.ts';
import { sequentially } from './sequentially.ts';

/**
 * Names, inodes, sizes and times of what the path leads to, through symlinks. Never rejects: what cannot be read is
 * part of it.
 */
export async function fingerprint(path: string): Promise<string> {
  const own = await describe(path);
  if (!own.startsWith('folder')) return own;
  const names = (await readdir(path).catch(() => [])).filter(isPolicyFileName).sort();
  const entries = await sequentially(names, async (name) => `${name} ${await describe(join(path, name))}`);
  return [own, ...entries].join('\n');
}

async function describe(path: string): Promise<string> {
  try {
    const found = await stat(path);
    // A folder's own times change with files that are none of its policies, such as an editor's swap file.
    return found.isDirectory() ? `folder ${found.ino}` : `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`;
  } catch (error) {
    return `unreadable: ${codeOf(error) ?? 'unknown'}`;
  }
}
