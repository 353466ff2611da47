/** A reader of the live stream for a test: a real WebSocket client that keeps what it was sent. */
import WebSocket from 'ws';
import { eventually } from './eventually.ts';
import { ADMIN_KEY, type TestGateway } from './gateway.ts';

export type Frame = {
  readonly id: string;
  readonly event_type: string;
  readonly org_id: string | null;
  readonly agent_id: string | null;
  readonly timestamp: string;
  readonly payload: Record<string, unknown>;
};

export type StreamClient = {
  readonly frames: Frame[];
  readonly socket: WebSocket;
  /** Resolves with the code and the reason once the gateway has closed it. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** Waits for the first frame that fits. */
  next(fits: (frame: Frame) => boolean): Promise<Frame>;
  close(): Promise<void>;
};

export type StreamOptions = { readonly bearer?: string | null; readonly headers?: Record<string, string> };

const ATTEMPTS = 3;

/**
 * Rejects with the HTTP status and the problem when it is not let in. uWebSockets.js 20.30 cuts about one upgrade in a
 * thousand as soon as it is made; whoever watches connects again then, and so does this.
 */
export async function openStream(
  gateway: Pick<TestGateway, 'url'>,
  query = '',
  options: StreamOptions = {},
): Promise<StreamClient> {
  const attempts = query.includes('ticket=') ? 1 : ATTEMPTS; // a ticket opens one stream
  for (let attempt = 1; ; attempt += 1) {
    const client = await openOnce(gateway, query, options);
    const isCut = await Promise.race([client.closed.then(({ code }) => code === 1006), isAnswered(client.socket)]);
    if (!isCut || attempt === attempts) return client;
  }
}

/** Resolves with false, for not cut, when the gateway has answered a ping. */
const isAnswered = (socket: WebSocket): Promise<false> =>
  new Promise((resolve) => {
    socket.once('pong', () => resolve(false));
    socket.ping(() => undefined); // not sent where it is cut: `closed` tells of it
  });

async function openOnce(
  gateway: Pick<TestGateway, 'url'>,
  query: string,
  { bearer = ADMIN_KEY, headers = {} }: StreamOptions,
): Promise<StreamClient> {
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/v1/stream${query}`, {
    headers: { ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }), ...headers },
  });
  const frames: Frame[] = [];
  socket.on('message', (data, isBinary) => {
    if (isBinary) throw new Error('a frame is text');
    frames.push(JSON.parse(String(data)) as Frame);
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  );
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () =>
        reject(new Refused(response.statusCode ?? 0, response.headers['content-type'] ?? '', body)),
      );
    });
  });
  socket.on('error', () => undefined); // a connection that is cut; `closed` tells of it
  return {
    frames,
    socket,
    closed,
    next: (fits) =>
      eventually(() => {
        const found = frames.find(fits);
        if (found === undefined)
          throw new Error(
            `no such frame among ${frames.length}, the socket being ${['connecting', 'open', 'closing', 'closed'][socket.readyState]}: ${JSON.stringify(frames.slice(-5))}`,
          );
        return found;
      }),
    close: async () => {
      socket.close();
      await closed;
    },
  };
}

export class Refused extends Error {
  readonly status: number;
  readonly contentType: string;
  readonly body: { readonly code: string; readonly detail: string };

  constructor(status: number, contentType: string, body: string) {
    super(`${status} ${body}`);
    this.status = status;
    this.contentType = contentType;
    this.body = JSON.parse(body) as { code: string; detail: string };
  }
}
