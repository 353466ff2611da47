/**
 * A proxy as companies have between their machines and the world: it opens tunnels, passes requests on, and may do
 * neither.
 */
import { createServer, type IncomingMessage, request as requestHttp } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';

export type ForwardProxy = {
  readonly port: number;
  /** `CONNECT gateway.test:443` and `GET http://gateway.test/healthz`, in their order. */
  readonly asked: readonly string[];
  /** From now on it answers everything so, as `502 Bad Gateway`; undefined: it does its work. */
  answer(status: string | undefined): void;
  /** From now on it takes requests and says nothing. Resolves when it has taken one. */
  fallSilent(): Promise<void>;
  stop(): Promise<void>;
};

type ForwardProxyOptions = {
  /** Every name leads to this port of this machine, for names that nobody else knows. */
  readonly to: number;
  /** `user:password` that it asks for. */
  readonly credentials?: string;
};

export async function startForwardProxy({ to, credentials }: ForwardProxyOptions): Promise<ForwardProxy> {
  const asked: string[] = [];
  const sockets = new Set<Duplex>();
  let status: string | undefined;
  let onSilence: (() => void) | undefined;
  const expected = credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`;
  const refusalOf = ({ headers }: IncomingMessage): string | undefined =>
    status ?? (headers['proxy-authorization'] === expected ? undefined : '407 Proxy Authentication Required');
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const refusal = refusalOf(request);
    if (onSilence !== undefined) return onSilence();
    if (refusal !== undefined)
      return void response
        .writeHead(Number(refusal.slice(0, 3)), refusal.slice(4), { 'content-type': 'text/html' })
        .end('<html>');
    const { pathname, search, host } = new URL(request.url ?? '');
    const { 'proxy-authorization': _own, ...headers } = request.headers;
    const onward = requestHttp(
      // On a connection of its own: one that is kept may be closed by the other side at any moment.
      { port: to, method: request.method, path: pathname + search, headers: { ...headers, host }, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        pipeline(answer, response, () => undefined);
      },
    );
    request.pipe(onward.on('error', () => response.destroy()));
  });
  server.on('connect', (request: IncomingMessage, near: Duplex, head: Buffer) => {
    asked.push(`CONNECT ${request.url}`);
    near.on('error', () => undefined);
    const refusal = refusalOf(request);
    if (onSilence !== undefined) return onSilence();
    if (refusal !== undefined) return void near.end(`HTTP/1.1 ${refusal}\r\ncontent-length: 0\r\n\r\n`);
    const far = connect(to, '127.0.0.1', () => {
      near.write('HTTP/1.1 200 Connection established\r\n\r\n');
      far.write(head);
      near.pipe(far).pipe(near);
    });
    sockets.add(far);
    far
      .on('error', () => near.destroy())
      .on('close', () => {
        sockets.delete(far);
        near.destroy();
      });
    near.on('close', () => far.destroy());
  });
  server.on('connection', (socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    answer: (next) => {
      status = next;
    },
    fallSilent: () =>
      new Promise((resolve) => {
        onSilence = resolve;
      }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
