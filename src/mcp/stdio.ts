/** Messages on pipes: one JSON text a line, read at the pace at which the other side takes them. */
import type { Readable, Writable } from 'node:stream';
import { isMapping } from '../core/base/mapping.ts';
import type { Bounds } from './json-bounds.ts';
import { type Id, isId, type Message, RPC_CODE } from './json-rpc.ts';
import { edgeIdOf, MessageReader } from './repeated-answer.ts';

/** A longer line is no message: whoever sends it would fill the memory. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** A line that is no message: what is wrong with it, and the request that it is, or answers, where that can be seen. */
export type Noise = {
  readonly problem: string;
  readonly code: number;
  readonly request?: Id;
  /** The method of the request. */
  readonly method?: string;
  readonly answered?: Id;
};

export type LineEvents = {
  readonly onMessage: (message: Message) => void;
  readonly onNoise: (noise: Noise) => void;
  /** A line beyond them is noise. */
  readonly bounds: Bounds;
  /** Resolves when more may be read; undefined when it may be at once. */
  readonly ready: () => Promise<void> | undefined;
};

/** Reads until the end. Rejects with the error of the stream. */
export function readMessages(from: Readable, events: LineEvents): Promise<void> {
  const lines = new Lines(events);
  return new Promise((resolve, reject) => {
    // Not by iteration, which would take a turn of promises for every piece, in the way of every call.
    from.on('data', (piece: Buffer) => {
      try {
        lines.push(piece);
      } catch (error) {
        reject(error);
        from.destroy();
      }
      const ready = events.ready();
      if (ready === undefined) return;
      from.pause();
      void ready.then(() => from.resume());
    });
    from.once('end', resolve).once('close', resolve).once('error', reject);
  });
}

class Lines {
  readonly #events: LineEvents;
  readonly #reader: MessageReader;
  #begun: Buffer[] = [];
  #size = 0;
  #isSkipping = false;

  constructor(events: LineEvents) {
    this.#events = events;
    this.#reader = new MessageReader(events.bounds);
  }

  push(piece: Buffer): void {
    let rest = piece;
    for (let at = rest.indexOf(0x0a); at !== -1; at = rest.indexOf(0x0a)) {
      const last = rest.subarray(0, at);
      const line = this.#begun.length === 0 ? last : Buffer.concat([...this.#begun, last]);
      rest = rest.subarray(at + 1);
      if (!this.#isSkipping) this.#take(line);
      this.#begun = [];
      this.#size = 0;
      this.#isSkipping = false;
    }
    this.#size += rest.length;
    if (this.#size > MAX_LINE_BYTES && !this.#isSkipping) {
      this.#isSkipping = true;
      this.#begun = [];
      this.#events.onNoise({ problem: `a line of more than ${MAX_LINE_BYTES} bytes`, code: RPC_CODE.parse });
    }
    if (!this.#isSkipping && rest.length > 0) this.#begun.push(rest);
  }

  #take(line: Buffer): void {
    const { onMessage, onNoise } = this.#events;
    if (isBlank(line)) return;
    let read: ReturnType<MessageReader['read']>;
    try {
      read = this.#reader.read(line);
    } catch {
      return onNoise({ problem: 'a line that is not JSON', code: RPC_CODE.parse });
    }
    if ('isBeyond' in read) onNoise(excessIn(line));
    else if ('message' in read) onMessage(read.message);
    else onNoise(noiseIn(read.value));
  }
}

/** Tells whether a line has only white space. */
const isBlank = (line: Buffer): boolean => line.length < 64 && line.toString('latin1').trim() === '';

function noiseIn(value: unknown): Noise {
  const noise = { problem: 'a line that is not a JSON-RPC message', code: RPC_CODE.invalidRequest };
  if (!isMapping(value) || !isId(value.id)) return noise;
  const { id, method } = value;
  if (method === undefined) return { ...noise, answered: id };
  return { ...noise, request: id, ...(typeof method === 'string' && { method }) };
}

/** Longer than the part before the parameters of a request. */
const HEAD_BYTES = 256;

/** Nobody waits for an answer that is not read, and whoever asked is answered. */
function excessIn(line: Buffer): Noise {
  const noise = { problem: 'a line with too many values, or nested too deep', code: RPC_CODE.invalidRequest };
  const id = edgeIdOf(line);
  if (id === undefined) return noise;
  const method = /"method":"([\w/.-]+)"/.exec(line.toString('latin1', 0, HEAD_BYTES))?.[1];
  return method === undefined ? { ...noise, answered: id } : { ...noise, request: id, method };
}

/** To whoever sent it. */
export const noiseAnswer = ({ problem, code, request }: Noise) => ({
  jsonrpc: '2.0',
  id: request ?? null,
  error: { code, message: problem },
});

export class MessageWriter {
  readonly #to: Writable;
  #error: Error | undefined;

  constructor(to: Writable) {
    this.#to = to;
    to.on('error', (error: Error) => {
      this.#error = error;
    });
  }

  /** Rejects when the other side has gone. */
  async send(message: unknown): Promise<void> {
    if (this.#error !== undefined) throw this.#error;
    this.#to.write(`${JSON.stringify(message)}\n`);
  }

  /** Resolves when the other side has read enough for more to be written; undefined when it has. */
  readonly drained = (): Promise<void> | undefined =>
    this.#to.writableNeedDrain && this.#error === undefined && !this.#to.destroyed
      ? new Promise((resolve) => {
          const settle = (): void => {
            this.#to.off('drain', settle).off('close', settle).off('error', settle);
            resolve();
          };
          this.#to.on('drain', settle).on('close', settle).on('error', settle);
        })
      : undefined;
}
