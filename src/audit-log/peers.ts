/** The logs of the gateways of a cluster, each of which has signed what the others ended in (docs/audit-log.md). */

import type { KeyObject } from 'node:crypto';
import { fstatSync } from 'node:fs';
import type { PeerHead } from '../core/audit/witness.ts';
import { mappingIn } from '../core/base/mapping.ts';
import { withOpenFile } from '../system/files.ts';
import { isGenuineCheckpoint, readCheckpoints } from './checkpoint.ts';
import { listSegments, readFully } from './segments.ts';
import type { PeerSight } from './verify.ts';

/** A gateway's log, as far as it concerns the others. */
export type PeerLog = {
  readonly directory: string;
  readonly key: KeyObject | undefined;
  /** The names of its gateway: from its newest entry, and from its own checkpoints. The newest name comes first. */
  readonly names: readonly string[];
  /** Heads of other logs that its checkpoints state. Checkpoints that are not signed with its key are left out. */
  readonly heads: readonly (PeerHead & { readonly timestamp: string })[];
};

/** Throws what the file system says. */
export function readPeerLog(directory: string, key: KeyObject | undefined): PeerLog {
  const names = new Set<string>();
  const heads: (PeerHead & { readonly timestamp: string })[] = [];
  for (const { checkpoint } of readCheckpoints(directory).reverse()) {
    if (checkpoint?.peers === undefined || checkpoint.gateway === undefined) continue;
    if (key !== undefined && !isGenuineCheckpoint(checkpoint, key)) continue;
    names.add(checkpoint.gateway);
    const { timestamp } = checkpoint;
    for (const head of checkpoint.peers) heads.push({ ...head, timestamp });
  }
  const newest = newestName(directory);
  return { directory, key, names: newest === undefined ? [...names] : [...new Set([newest, ...names])], heads };
}

/** Collects the statements about the log in checkpoints of these others. */
export const sightsOf = (log: PeerLog, others: readonly PeerLog[]): readonly PeerSight[] =>
  others.flatMap(({ names: [by = ''], heads }) =>
    heads
      .filter(({ gateway }) => log.names.includes(gateway))
      .map(({ id, hash, timestamp }) => ({ id, hash, timestamp, by })),
  );

/** More than an entry has. */
const TAIL_BYTES = 1024 * 1024;

/**
 * Returns the gateway's name in the last entry of the log; undefined: a gateway outside a cluster wrote it, or there is
 * no entry.
 */
function newestName(directory: string): string | undefined {
  for (const { path } of listSegments(directory).reverse()) {
    const tail = withOpenFile(path, 'r', (fd) => {
      const { size } = fstatSync(fd);
      const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
      return bytes.toString('utf8', 0, readFully(fd, bytes, size - bytes.length));
    });
    const whole = tail.slice(0, Math.max(0, tail.lastIndexOf('\n')));
    if (whole !== '') return nameIn(whole.slice(whole.lastIndexOf('\n') + 1));
  }
  return undefined;
}

/** Undefined also for a damaged line: verifying the log says what is wrong with it. */
function nameIn(line: string): string | undefined {
  const gateway = mappingIn(line)?.gateway;
  return typeof gateway === 'string' ? gateway : undefined;
}
