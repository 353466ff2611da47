/**
 * Finds the positions of a line's fields without parsing it: the order of the fields is fixed (core/audit-line.ts). The
 * text is the file's bytes read as latin1, so that a place in the text is a place in the file.
 */

import { isMapping, mappingIn } from '../core/base/mapping.ts';
import { quote } from '../core/base/text.ts';

/** The text before each field's value, up to the actor; the rest is read only for patterns. */
const LABELS = [
  '{"id":',
  ',"timestamp":',
  ',"event_type":',
  ',"lineage":{"org_id":',
  ',"team_id":',
  ',"agent_id":',
  '},"op_id":',
  ',"decision":',
  ',"reason":',
  ',"policy":',
  ',"rule_id":',
  ',"cause":', // absent in lines of versions before 0.2
  ',"actor":',
] as const;

/** The place of each field among the labels. */
export const FIELD = {
  id: 0,
  timestamp: 1,
  eventType: 2,
  orgId: 3,
  teamId: 4,
  agentId: 5,
  opId: 6,
  decision: 7,
  policy: 9,
  ruleId: 10,
  cause: 11,
  actor: 12,
} as const;
export type Field = (typeof FIELD)[keyof typeof FIELD];

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LETTER_N = 0x6e;

/** Reads one line after the other; remembers the positions of the last one's fields. */
export class LineScanner {
  readonly #starts = new Int32Array(LABELS.length);
  readonly #ends = new Int32Array(LABELS.length);
  #text = '';

  /** Takes the line at `start`; false when it does not have the shape of an entry. */
  read(text: string, start: number): boolean {
    this.#text = text;
    let at = start;
    for (let field = 0; field < LABELS.length; field += 1) {
      const label = LABELS[field]!;
      if (!text.startsWith(label, at)) {
        if (field !== FIELD.cause) return false;
        this.#starts[field] = this.#ends[field] = at;
        continue;
      }
      at += label.length;
      this.#starts[field] = at;
      at = field === FIELD.id ? text.indexOf(',', at) : tokenEnd(text, at);
      if (at === -1) return false;
      this.#ends[field] = at;
    }
    return true;
  }

  id(): number {
    return Number(this.token(FIELD.id));
  }

  /** The field as JSON, byte for byte. */
  token(field: Field): string {
    return this.#text.slice(this.#starts[field], this.#ends[field]);
  }

  is(field: Field, token: string): boolean {
    const start = this.#starts[field]!;
    return this.#ends[field]! - start === token.length && this.#text.startsWith(token, start);
  }

  isNull(field: Field): boolean {
    return this.#text.charCodeAt(this.#starts[field]!) === LETTER_N;
  }

  /**
   * Parses the JSON that follows the fields; undefined if there is none, or it was changed since it was written, which
   * `svc audit verify` reports.
   */
  payload(): Readonly<Record<string, unknown>> | undefined {
    const from = this.#ends[FIELD.actor]!;
    const feed = this.#text.indexOf('\n', from);
    const rest = this.#text.slice(from, feed === -1 ? undefined : feed);
    // ,"payload":{…},"prev_hash":"…","hash":"…"}
    const payload = mappingIn(`{${Buffer.from(rest.slice(1), 'latin1').toString('utf8')}`)?.payload;
    return isMapping(payload) ? payload : undefined;
  }

  hash(field: Field): number {
    return hashOf(this.#text, this.#starts[field]!, this.#ends[field]!);
  }
}

/** The place behind a string or a null that begins at `at`; -1 when neither does. */
function tokenEnd(text: string, at: number): number {
  if (text.charCodeAt(at) !== QUOTE) return text.startsWith('null', at) ? at + 4 : -1;
  let end = text.indexOf('"', at + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? -1 : end + 1;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
  return backslashes % 2 === 1;
}

/** A value as it is in a line that is read as latin1. */
export const tokenOf = (value: string): string => Buffer.from(quote(value), 'utf8').toString('latin1');

/** 32 bits of a token: FNV-1a, then mixed, because an index takes the upper bits for its buckets. */
export function hashOf(text: string, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
