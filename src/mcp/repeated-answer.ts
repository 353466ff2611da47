/**
 * Servers are asked for their tools before every call, and nearly always answer with the same long line. An answer that
 * repeats the last one but for its id is not parsed again.
 */
import { type Bounds, isWithin } from './json-bounds.ts';
import { type Answer, type Message, messageIn } from './json-rpc.ts';

/** Shorter lines are read as fast as they are compared; longer ones are not kept. */
const MIN_BYTES = 1_024;
const MAX_BYTES = 4 * 1024 * 1024;
/** How libraries begin an answer, or end it, with its id. */
const HEAD = /^\{"jsonrpc":"2\.0","id":(\d{1,15}),/;
const TAIL = /,"jsonrpc":"2\.0","id":(\d{1,15})\}$/;
/** Longer than either. */
const EDGE_BYTES = 64;

/** The line without the part that has the id. */
type Split = { readonly id: number; readonly isHead: boolean; readonly rest: Buffer };

function split(line: Buffer): Split | undefined {
  return line.length < MIN_BYTES || line.length > MAX_BYTES ? undefined : splitAtId(line);
}

function splitAtId(line: Buffer): Split | undefined {
  const head = HEAD.exec(line.toString('latin1', 0, EDGE_BYTES));
  if (head !== null) return { id: Number(head[1]), isHead: true, rest: line.subarray(head[0].length) };
  const tail = TAIL.exec(line.toString('latin1', line.length - EDGE_BYTES));
  if (tail === null) return undefined;
  return { id: Number(tail[1]), isHead: false, rest: line.subarray(0, line.length - tail[0].length) };
}

/** The id of a message that is not read, where its beginning or its end tells it. */
export const edgeIdOf = (line: Buffer): number | undefined => splitAtId(line)?.id;

export class MessageReader {
  readonly #bounds: Bounds;
  #last: (Split & { readonly answer: Answer }) | undefined;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /**
   * Throws what `JSON.parse` throws. `value` is what the line holds when that is no message. A line beyond the bounds
   * is not parsed.
   */
  read(line: Buffer): { readonly message: Message } | { readonly value: unknown } | { readonly isBeyond: true } {
    const parts = split(line);
    const last = this.#last;
    if (parts !== undefined && last?.isHead === parts.isHead && last.rest.equals(parts.rest))
      return { message: { ...last.answer, id: parts.id } };
    if (!isWithin(this.#bounds, line)) return { isBeyond: true };
    const value: unknown = JSON.parse(line.toString('utf8'));
    const message = messageIn(value);
    if (message === undefined) return { value };
    // Another id further on would be the one that counts.
    if (parts !== undefined && !('method' in message) && message.id === parts.id)
      this.#last = { ...parts, rest: Buffer.from(parts.rest), answer: message };
    return { message };
  }
}
