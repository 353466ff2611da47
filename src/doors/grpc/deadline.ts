/** How long a client waits for the end of its call, as the head of the call says it. */
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { LONGEST_TIMER_MS } from '../shared/limits.ts';
import { DEADLINE_EXCEEDED } from './express-answer.ts';
import type { GrpcStatus } from './status.ts';

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Infinity where there is no deadline; undefined where the library has to say what is wrong with it. */
export function timeoutOf(header: string | undefined): number | undefined {
  if (header === undefined) return Infinity;
  const [, amount, unit] = /^(\d{1,8})([HMSmun])$/.exec(header) ?? [];
  return amount === undefined ? undefined : Math.trunc(Number(amount) * UNIT_MS[unit!]!);
}

/**
 * The library counts milliseconds in 32 bits: a deadline more than 24 days away would pass at once. The client still
 * keeps its own.
 */
export function dropLongDeadline(headers: IncomingHttpHeaders, timeout: string): void {
  const unitMs = UNIT_MS[timeout.at(-1) ?? ''];
  if (unitMs !== undefined && Number.parseInt(timeout, 10) * unitMs > LONGEST_TIMER_MS)
    headers['grpc-timeout'] = undefined;
}

/** Calls `cut` when the time is over, unless the stream has closed by then. */
export function cutAtDeadline(
  { stream, timeoutMs }: { readonly stream: ServerHttp2Stream; readonly timeoutMs: number },
  cut: (error: GrpcStatus) => void,
): void {
  if (timeoutMs === Infinity) return;
  const deadline = setTimeout(() => cut(DEADLINE_EXCEEDED), timeoutMs);
  stream.once('close', () => clearTimeout(deadline));
}
