/** Which file a path names, before any policy looks at it. */
import { posix, win32 } from 'node:path';
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import type { Read } from './tool.ts';

const WITH_DRIVE = /^[A-Za-z]:[\\/]/;
const ON_SHARE = /^\\\\[^\\]/;

/** Unlike `trim`, with U+0085, which agents that are written in Rust cut off. */
const AROUND = /^\p{White_Space}|\p{White_Space}$/u;

/**
 * The absolute path without dots and double slashes; on Windows with `/` between its parts. Refused where the agent may
 * understand another file by it: `~` is a folder that only the agent's machine knows, and agents cut off white space.
 */
export function absolutePath(path: string, cwd: string | undefined): Read<string> {
  if (path === '') return invalid('path', 'must not be empty');
  if (path.startsWith('~')) return invalid('path', 'must not begin with ~; use an absolute path');
  if (path !== path.trim() || AROUND.test(path)) return invalid('path', 'must not begin or end with white space');
  if (/[\p{Cc}\u2028\u2029]/u.test(path))
    return invalid('path', 'must not contain control characters or line separators');
  if (/^[a-z][a-z0-9+.-]+:/i.test(path)) return invalid('path', 'must be a path, not a URL');
  const isWindows =
    WITH_DRIVE.test(path) || ON_SHARE.test(path) || WITH_DRIVE.test(cwd ?? '') || ON_SHARE.test(cwd ?? '');
  const { resolve, isAbsolute } = isWindows ? win32 : posix;
  // A Windows path such as `\x` or `C:x` takes its drive or folder from the working directory.
  if (cwd !== undefined && isAbsolute(cwd)) return ok(slashed(resolve(cwd, path), isWindows));
  if (!isAbsolute(path) || (isWindows && !WITH_DRIVE.test(path) && !ON_SHARE.test(path)))
    return invalid('cwd', 'must be the absolute path of the working directory, because a path is relative to it');
  return ok(slashed(resolve(path), isWindows));
}

const slashed = (path: string, isWindows: boolean): string => (isWindows ? path.replaceAll('\\', '/') : path);
