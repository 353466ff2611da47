import { randomUUID } from 'node:crypto';
import type { RunId } from '../ports/cluster.ts';

export const newRun = (): RunId => randomUUID() as string as RunId;

/** Returns the name of a run in answers (`op_home`): 11 characters, opaque to clients. */
export const homeOf = (run: RunId): string =>
  Buffer.from(run.replaceAll('-', ''), 'hex').subarray(0, 8).toString('base64url');
