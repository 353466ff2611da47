/** Messages on pipes: one JSON text a line, read at the pace at which the other side takes them. */
import type { Readable, Writable } from 'node:stream';
import { errorOf, type Message, messageIn, RPC_CODE } from './json-rpc.ts';

/** A longer line is no message: whoever sends it would fill the memory. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

export type LineEvents = {
  readonly onMessage: (message: Message) => void;
  /** A line that is no message, and what is wrong with it. */
  readonly onNoise: (problem: string) => void;
  /** Resolves when more may be read. */
  readonly ready: () => Promise<void>;
};

/** Reads until the end. Rejects with the error of the stream. */
export async function readMessages(from: Readable, { onMessage, onNoise, ready }: LineEvents): Promise<void> {
  let begun: Buffer[] = [];
  let size = 0;
  let isSkipping = false;
  for await (const piece of from as AsyncIterable<Buffer>) {
    let rest = piece;
    for (let at = rest.indexOf(0x0a); at !== -1; at = rest.indexOf(0x0a)) {
      const line = Buffer.concat([...begun, rest.subarray(0, at)]);
      rest = rest.subarray(at + 1);
      if (!isSkipping) take(line.toString('utf8'), onMessage, onNoise);
      begun = [];
      size = 0;
      isSkipping = false;
    }
    size += rest.length;
    if (size > MAX_LINE_BYTES && !isSkipping) {
      isSkipping = true;
      begun = [];
      onNoise(`a line of more than ${MAX_LINE_BYTES} bytes`);
    }
    if (!isSkipping && rest.length > 0) begun.push(rest);
    await ready();
  }
}

function take(line: string, onMessage: LineEvents['onMessage'], onNoise: LineEvents['onNoise']): void {
  if (line.trim() === '') return;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return onNoise('a line that is not JSON');
  }
  const message = messageIn(value);
  if (message === undefined) onNoise('a line that is no JSON-RPC message');
  else onMessage(message);
}

export const noiseAnswer = (problem: string) => ({ ...errorOf(0, RPC_CODE.parse, problem), id: null });

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

  /** Resolves when the other side has read enough for more to be written. */
  readonly drained = (): Promise<void> =>
    this.#to.writableNeedDrain && this.#error === undefined && !this.#to.destroyed
      ? new Promise((resolve) => {
          const settle = (): void => {
            this.#to.off('drain', settle).off('close', settle).off('error', settle);
            resolve();
          };
          this.#to.on('drain', settle).on('close', settle).on('error', settle);
        })
      : Promise.resolve();
}
