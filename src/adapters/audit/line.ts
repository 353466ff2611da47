/** Takes the frame of an audit line apart again: id, predecessor's hash, own hash. Works on raw bytes (core/audit-line.ts). */
import { hash } from 'node:crypto';
import { HASH_HEX_LENGTH, HASH_LENGTH, HASH_PREFIX, ID_PREFIX, PREV_HASH_LENGTH, PREV_HASH_PREFIX } from '../../core/audit-line.ts';

/** The last entry of a chain: what the next one is chained to. */
export type ChainHead = { readonly id: number; readonly hash: string };

export type LineFrame = { readonly id: number; readonly prevHash: string; readonly hash: string };

const HEX = /^[0-9a-f]{64}$/;
const MAX_ID_DIGITS = 16;

/** `line` without its line feed; undefined when it is not shaped like an entry at both ends. */
export function frameOf(line: Buffer): LineFrame | undefined {
  const hashAt = line.length - HASH_LENGTH;
  const prevAt = hashAt - PREV_HASH_LENGTH;
  if (prevAt <= 0) return undefined;
  const seals = line.toString('latin1', prevAt);
  const prevHash = seals.slice(PREV_HASH_PREFIX.length, PREV_HASH_PREFIX.length + HASH_HEX_LENGTH);
  const ownAt = PREV_HASH_LENGTH + HASH_PREFIX.length;
  const ownHash = seals.slice(ownAt, ownAt + HASH_HEX_LENGTH);
  if (seals !== `${PREV_HASH_PREFIX}${prevHash}"${HASH_PREFIX}${ownHash}"}` || !HEX.test(prevHash) || !HEX.test(ownHash)) return undefined;
  const id = idOf(line);
  return id === undefined ? undefined : { id, prevHash, hash: ownHash };
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
