/**
 * The files of an audit log: `<first id, 16 digits>.ndjson`, so that the order of the names is the order of the
 * entries.
 */
import { readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { ifThereSync } from '../system/files.ts';

export type Segment = { readonly firstId: number; readonly name: string; readonly path: string };

const SEGMENT_NAME = /^(\d{16})\.ndjson$/;

export function segmentAt(directory: string, firstId: number): Segment {
  const name = `${String(firstId).padStart(16, '0')}.ndjson`;
  return { firstId, name, path: join(directory, name) };
}

/** Oldest first. A directory that does not exist has none. */
export function listSegments(directory: string): Segment[] {
  const names = ifThereSync(() => readdirSync(directory)) ?? [];
  return names
    .flatMap((name) => {
      const digits = SEGMENT_NAME.exec(name)?.[1];
      return digits === undefined ? [] : [{ firstId: Number(digits), name, path: join(directory, name) }];
    })
    .sort((a, b) => a.firstId - b.firstId);
}

/** Fills `buffer` from `position` on, as far as the file reaches; returns the number of bytes read. */
export function readFully(fd: number, buffer: Uint8Array, position: number): number {
  let filled = 0;
  while (filled < buffer.length) {
    const bytes = readSync(fd, buffer, filled, buffer.length - filled, position + filled);
    if (bytes === 0) break;
    filled += bytes;
  }
  return filled;
}
