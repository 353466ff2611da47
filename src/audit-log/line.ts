/**
 * Takes the frame of an audit line apart again: id, predecessor's hash, own hash. Works on raw bytes
 * (core/audit-line.ts).
 */
import { hash } from 'node:crypto';
import {
  HASH_HEX_LENGTH,
  HASH_LENGTH,
  HASH_PREFIX,
  ID_PREFIX,
  PREV_HASH_LENGTH,
  PREV_HASH_PREFIX,
} from '../core/audit/audit-line.ts';

/** The last entry of a chain: what the next one is chained to. */
export type ChainHead = { readonly id: number; readonly hash: string };

export type LineFrame = { readonly id: number; readonly prevHash: string; readonly hash: string };

/** The end of every line: two hashes. */
const SEALS = new RegExp(
  `^${PREV_HASH_PREFIX}([0-9a-f]{${HASH_HEX_LENGTH}})"${HASH_PREFIX}([0-9a-f]{${HASH_HEX_LENGTH}})"}$`,
);
const MAX_ID_DIGITS = 16;

/** `line` without its line feed; undefined when it is not shaped like an entry at both ends. */
export function frameOf(line: Buffer): LineFrame | undefined {
  const [, prevHash, ownHash] =
    SEALS.exec(line.toString('latin1', Math.max(0, line.length - PREV_HASH_LENGTH - HASH_LENGTH))) ?? [];
  const id = idOf(line);
  return id === undefined || prevHash === undefined || ownHash === undefined
    ? undefined
    : { id, prevHash, hash: ownHash };
}

/** The id at the start of a line, when the line starts as an entry does. */
export function idOf(line: Buffer): number | undefined {
  const start = line.toString('latin1', 0, Math.min(line.length, ID_PREFIX.length + MAX_ID_DIGITS + 1));
  const comma = start.indexOf(',');
  const digits = start.slice(ID_PREFIX.length, comma);
  return start.startsWith(ID_PREFIX) && /^[1-9]\d*$/.test(digits) ? Number(digits) : undefined;
}

/** The hash an untouched line carries. */
export const hashOfLine = (line: Buffer): string => hash('sha256', line.subarray(0, line.length - HASH_LENGTH), 'hex');
