/** The live stream of a gateway over WebSocket (docs/spec.md, Live stream). Node.js 20 has no client for it. */

import { on } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type RawData, WebSocket } from 'ws';
import { type Answer, wholeAnswer } from '../../client/answer.ts';
import { isMapping } from '../../core/base/mapping.ts';
import { printable } from '../terminal/printable.ts';
import type { Row } from '../terminal/table.ts';
import type { Api } from './api.ts';
import { type Query, unreachable } from './http.ts';

const HANDSHAKE_TIMEOUT_MS = 10_000;
/** The gateway pings at least this often; when it does not, the line is dead. */
const SILENCE_MS = 120_000;
const MAX_FRAME_BYTES = 1024 * 1024;
const MAX_WAITING_FRAMES = 1000;
const MAX_PROBLEM_LENGTH = 64 * 1024;

export type LiveStream = {
  /** Ends when the connection does. A reader that is slow makes the gateway wait, not this process grow. */
  readonly frames: AsyncIterable<Row>;
  /** Why it has ended, in the words of the gateway or of the system; '' when neither said anything. */
  ending(): string;
  close(): void;
};

/**
 * Resolves when the gateway has let it in. A 401 is tried once more with a renewed session, as for any other request.
 * The signal cuts the connection, also one that is not open yet.
 */
export async function openLiveStream(api: Api, query: Query, signal: AbortSignal): Promise<LiveStream> {
  const first = await connect(api, query, signal);
  const opened =
    'status' in first && first.status === 401 && (await api.renew()) ? await connect(api, query, signal) : first;
  if ('status' in opened) throw api.refusalOf(opened);
  return opened;
}

async function connect(api: Api, query: Query, signal: AbortSignal): Promise<LiveStream | Answer> {
  const { apiUrl, proxy } = api.target;
  const bearer = await api.bearer();
  const url = new URL(`${apiUrl.replace(/^http/, 'ws')}/api/v1/stream`);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
  const socket = new WebSocket(url, {
    headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
    ...(proxy === undefined
      ? {}
      : { agent: (await import('../../client/through-proxy.ts')).agentThrough(proxy, url.protocol === 'wss:') }),
  });
  // From the very start, so that no frame is missed; the line ends with the connection, however that ends.
  const messages = on(socket, 'message', { close: ['close'], highWaterMark: MAX_WAITING_FRAMES, lowWaterMark: 1 });
  const cut = (): void => socket.terminate();
  signal.addEventListener('abort', cut);
  if (signal.aborted) cut();
  socket.once('close', () => signal.removeEventListener('abort', cut));
  let ending = '';
  socket.once('close', (_code, reason) => {
    ending ||= printable(reason.toString());
  });
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve({ frames: framesOf(messages), ending: () => ending, close: cut }));
    socket.once(
      'unexpected-response',
      (_request, response: IncomingMessage) =>
        void wholeAnswer(response, MAX_PROBLEM_LENGTH)
          .then(resolve, reject)
          .finally(() => socket.terminate()),
    );
    socket.once('error', (error) => {
      ending = printable(error.message);
      reject(unreachable(apiUrl, error)); // of no effect once it is open
    });
    watchSilence(socket);
  });
}

async function* framesOf(messages: AsyncIterableIterator<unknown[]>): AsyncGenerator<Row> {
  try {
    for await (const [data] of messages) {
      const frame: unknown = JSON.parse(String(data as RawData));
      if (isMapping(frame)) yield frame;
    }
  } catch (error) {
    // A connection that breaks is one that has ended; a frame that is no JSON is a defect.
    if (error instanceof SyntaxError) throw error;
  }
}

function watchSilence(socket: WebSocket): void {
  let timer: NodeJS.Timeout | undefined;
  const onActivity = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => socket.terminate(), SILENCE_MS);
  };
  socket
    .on('open', onActivity)
    .on('ping', onActivity)
    .on('message', onActivity)
    .on('close', () => clearTimeout(timer))
    .on('error', () => clearTimeout(timer));
}
