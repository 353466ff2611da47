/** The bodies of requests to the proxy: whole, JSON, and within their bounds. */

import type { IncomingMessage } from 'node:http';
import { jsonIn } from '../../core/base/mapping.ts';
import { FROM_CLIENT, isWithin } from '../json-bounds.ts';

/** Limits a request that begins a session: its sender is unknown. */
export const MAX_FIRST_BYTES = 64 * 1024;
export const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Memory for all bodies that are on their way. */
const MAX_ALL_BYTES = 256 * 1024 * 1024;
/** The first buffer of a body; doubled as needed. */
const FIRST_ROOM_BYTES = 16 * 1024;
const BODY_MS = 30_000;

type Problem = { readonly status: 400 | 408 | 413 | 415 | 503; readonly problem: string };
type Gathered = { readonly bytes: Buffer };
export type Body = { readonly value: unknown } | Problem;

export class Bodies {
  readonly #maxAllBytes: number;
  #allBytes = 0;

  constructor(maxAllBytes = MAX_ALL_BYTES) {
    this.#maxAllBytes = maxAllBytes;
  }

  async read(request: IncomingMessage, maxBytes: number): Promise<Body> {
    if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
      return { status: 415, problem: 'the content type must be application/json' };
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) return tooLarge(maxBytes);
    const read = await this.#gather(request, maxBytes);
    if ('problem' in read) return read;
    if (!isWithin(FROM_CLIENT, read.bytes))
      return {
        status: 413,
        problem: `the body has more than ${FROM_CLIENT.marks} values, or they are nested too deep`,
      };
    const value = jsonIn(read.bytes.toString('utf8'));
    return value === undefined ? { status: 400, problem: 'the body is not JSON' } : { value };
  }

  /** Into one buffer: kept as they come, pieces of a byte each would take a hundredfold. */
  #gather(request: IncomingMessage, maxBytes: number): Promise<Gathered | Problem> {
    let room = Buffer.alloc(0);
    let size = 0;
    /** False where the bodies of all clients have no room left for it. */
    const makeRoom = (bytes: number): boolean => {
      if (bytes <= room.length) return true;
      const next = Math.min(maxBytes, Math.max(bytes, room.length * 2, FIRST_ROOM_BYTES));
      if (this.#allBytes - room.length + next > this.#maxAllBytes) return false;
      this.#allBytes += next - room.length;
      const larger = Buffer.allocUnsafe(next);
      room.copy(larger, 0, 0, size);
      room = larger;
      return true;
    };
    return new Promise((resolve) => {
      const finish = (read: Gathered | Problem): void => {
        clearTimeout(timer);
        request.off('data', take).off('end', end).off('close', cut).pause();
        this.#allBytes -= room.length;
        room = Buffer.alloc(0);
        resolve(read);
      };
      const take = (piece: Buffer): void => {
        if (size + piece.length > maxBytes) return finish(tooLarge(maxBytes));
        if (!makeRoom(size + piece.length)) return finish(BUSY);
        size += piece.copy(room, size);
      };
      const end = (): void => finish({ bytes: room.subarray(0, size) });
      const cut = (): void => finish(LATE);
      const timer = setTimeout(cut, BODY_MS);
      request.on('data', take).once('end', end).once('close', cut);
    });
  }
}

const tooLarge = (maxBytes: number): Problem => ({ status: 413, problem: `the body has more than ${maxBytes} bytes` });
const BUSY: Problem = { status: 503, problem: 'too many requests are on their way' };
const LATE: Problem = { status: 408, problem: 'the body did not arrive in time' };
