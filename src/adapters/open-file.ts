import { closeSync, openSync } from 'node:fs';

/** Keeps a file open while `use` runs. A file that this creates is accessible only to its owner. */
export function withOpenFile<T>(path: string, flags: string, use: (fd: number) => T): T {
  const fd = openSync(path, flags, 0o600);
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
