/** A client that sends whatever bytes it is told to, as no HTTP library would. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { TestGateway } from './gateway.ts';

export type RawAnswer = {
  /** Everything the gateway has sent. */
  readonly text: string;
  /** The statuses of the answers, in their order; those of 1xx left out, but for a change of the protocol. */
  readonly statuses: readonly number[];
  readonly isClosed: boolean;
  readonly tookMs: number;
};

export const openSocket = (gateway: Pick<TestGateway, 'url'>): Socket =>
  connect({ host: '127.0.0.1', port: Number(new URL(gateway.url).port) });

/** `answered`: waits for the heads of so many answers. */
type Part = string | Buffer | { readonly waitMs: number } | { readonly answered: number };

/**
 * Sends the parts, then reads until `answers` answers are there, the last of them whole, the connection is closed, or
 * the time is over.
 */
export function sendRaw(
  gateway: Pick<TestGateway, 'url'>,
  parts: readonly Part[],
  { answers = 1, timeoutMs = 30_000 } = {},
): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const socket = openSocket(gateway);
    const startMs = performance.now();
    let text = '';
    const statuses = (): number[] =>
      [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)]
        .map((match) => Number(match[1]))
        .filter((status) => status >= 200 || status === 101);
    const finish = (isClosed: boolean): void => {
      clearTimeout(timer);
      clearTimeout(settle);
      socket.destroy();
      resolve({ text, statuses: statuses(), isClosed, tookMs: performance.now() - startMs });
    };
    const timer = setTimeout(() => finish(false), timeoutMs);
    let settle: NodeJS.Timeout | undefined;
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      // More than was asked for, and a closing of the connection, may still be on their way.
      if (statuses().length >= answers && isWhole(text)) settle ??= setTimeout(() => finish(false), 150);
    });
    socket.on('error', () => finish(true)); // cut while it was being written to
    socket.on('close', () => finish(true));
    socket.on('connect', () => void feed(socket, parts, () => statuses().length));
  });
}

/** Whether the last answer has come to its end, as its head says where that is. */
function isWhole(text: string): boolean {
  const last = text.slice(text.lastIndexOf('HTTP/1.1 '));
  const bodyAt = last.indexOf('\r\n\r\n') + 4;
  if (bodyAt < 4) return false;
  const head = last.slice(0, bodyAt);
  if (/^transfer-encoding: chunked/im.test(head)) return last.endsWith('\r\n0\r\n\r\n');
  return last.length - bodyAt >= Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
}

async function feed(socket: Socket, parts: readonly Part[], answered: () => number): Promise<void> {
  for (const part of parts) {
    if (socket.destroyed) return;
    if (typeof part === 'string' || Buffer.isBuffer(part)) socket.write(part);
    else if ('waitMs' in part) await sleep(part.waitMs);
    else while (answered() < part.answered && !socket.destroyed) await sleep(5);
  }
}

/** The head of a request, with the empty line after it. */
export const head = (line: string, headers: Readonly<Record<string, string>> = {}): string =>
  `${[line, 'Host: localhost', ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join('\r\n')}\r\n\r\n`;

/**
 * Asks on, up to `atMost` times, each time when the request before was answered, and reads nothing; ends when one is
 * answered no more.
 */
export async function askWithoutReading(
  gateway: Pick<TestGateway, 'url'>,
  request: string,
  answered: () => number,
  atMost: number,
): Promise<void> {
  const socket = openSocket(gateway);
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined); // cut
  socket.pause();
  for (let asked = 0; answered() === asked && asked < atMost; ) {
    socket.write(request);
    asked += 1;
    for (const endMs = performance.now() + 300; answered() < asked && performance.now() < endMs; )
      await new Promise((resolve) => setImmediate(resolve));
  }
}
