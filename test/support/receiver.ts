/** A receiver of webhooks: a real HTTP server that remembers what it got, and answers as it is told. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Received = {
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
  readonly body: string;
  readonly atMs: number;
};

export type Receiver = {
  readonly port: number;
  readonly url: string;
  readonly received: Received[];
  /** The answer to each call from now on. */
  answer: (request: IncomingMessage, response: ServerResponse) => void;
  /** The `type`s of the messages, in their order. */
  types(): string[];
  close(): Promise<void>;
};

export const answered =
  (status: number, headers: Record<string, string> = {}): Receiver['answer'] =>
  (_request, response) =>
    void response.writeHead(status, headers).end();

export async function startReceiver(port = 0): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const header = (name: string): string => String(request.headers[name]);
      received.push({
        id: header('webhook-id'),
        timestamp: header('webhook-timestamp'),
        signature: header('webhook-signature'),
        body: Buffer.concat(chunks).toString(),
        atMs: Date.now(),
      });
      receiver.answer(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const taken = (server.address() as AddressInfo).port;
  const receiver: Receiver = {
    port: taken,
    url: `http://127.0.0.1:${taken}/hook`,
    received,
    answer: answered(204),
    types: () => received.map(({ body }) => JSON.parse(body).type),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return receiver;
}

/** Verifies as Standard Webhooks says, independently of the code that signs. */
export function isSigned({ id, timestamp, signature, body }: Received, secret: string): boolean {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
  const given = Buffer.from(signature.slice('v1,'.length), 'base64');
  return signature.startsWith('v1,') && given.length === expected.length && timingSafeEqual(given, expected);
}
