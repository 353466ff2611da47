/** The texts of a request: checked before they are sent, or made here. */
import type { AgentId } from './types.ts';

/** A lone surrogate, which UTF-8 cannot encode: the library would send another character instead. */
const HALF_A_CHARACTER = /\p{Cs}/u;

/** Throws a TypeError that names the text that cannot be sent. */
export function requireText(value: unknown, name: string): asserts value is string {
  if (typeof value !== 'string') throw new TypeError(`${name} must be a string`);
  if (HALF_A_CHARACTER.test(value)) throw new TypeError(`${name} has an unpaired surrogate`);
}

/** With another character in place of each half of one. */
export const wellFormed = (text: string): string => text.replaceAll(/\p{Cs}/gu, '\ufffd');

/** At most so many bytes of UTF-8, and whole characters. */
export function cutToBytes(text: string, most: number): string {
  // Half a character, which has no UTF-8, is replaced.
  const bytes = new TextEncoder().encode(text.slice(0, most));
  let end = Math.min(bytes.length, most);
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end -= 1;
  return new TextDecoder().decode(bytes.subarray(0, end));
}

export function requireAgent(agent: AgentId, name: string): void {
  for (const part of ['orgId', 'teamId', 'agentId'] as const) {
    const text: unknown = agent?.[part];
    if (typeof text !== 'string' || (text === '' && part !== 'orgId'))
      throw new TypeError(`${name}.${part} must be ${part === 'orgId' ? 'a string' : 'a non-empty string'}`);
    requireText(text, `${name}.${part}`);
  }
}

// A call to the system fetches bytes for hundreds of ids: each call costs more than all the rest of making one.
const POOL_BYTES = 8192;
const pool = new Uint8Array(POOL_BYTES);
let used = POOL_BYTES;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

function randomHex(byteCount: number): string {
  if (used + byteCount > POOL_BYTES) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  let text = '';
  for (const end = used + byteCount; used < end; used += 1) text += HEX[pool[used]!];
  return text;
}

/** 32 hex digits, in the style of W3C Trace Context. */
export const newTraceId = (): string => randomHex(16);

/** 16 hex digits. */
export const newSpanId = (): string => randomHex(8);
