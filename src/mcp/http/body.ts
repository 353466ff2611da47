/** The body of a request to the proxy: whole, JSON, and within its bounds. */
import type { IncomingMessage } from 'node:http';

const MAX_BODY_BYTES = 4 * 1024 * 1024;
const BODY_MS = 30_000;

export type Body = { readonly value: unknown } | { readonly status: 400 | 408 | 413 | 415; readonly problem: string };

export async function readBody(request: IncomingMessage): Promise<Body> {
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
    return { status: 415, problem: 'the content type must be application/json' };
  const pieces: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(() => request.destroy(), BODY_MS);
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > MAX_BODY_BYTES) return { status: 413, problem: `the body has more than ${MAX_BODY_BYTES} bytes` };
      pieces.push(piece);
    }
    return { value: JSON.parse(Buffer.concat(pieces).toString('utf8')) as unknown };
  } catch (error) {
    return error instanceof SyntaxError
      ? { status: 400, problem: 'the body is not JSON' }
      : { status: 408, problem: 'the body did not arrive in time' };
  } finally {
    clearTimeout(timer);
  }
}
