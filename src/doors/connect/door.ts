/**
 * Serves the Connect methods on the HTTP port. The hottest path there is: read what is needed, hand it over, write the
 * answer.
 */
import { corsHeaders, type Own, preflightReply } from '../engine/access.ts';
import type { AddressOf } from '../engine/client-address.ts';
import type { DoorState } from '../engine/door-state.ts';
import type { Engine, RequestHead } from '../engine/engine.ts';
import { Exchange } from '../engine/exchange.ts';
import { ConnectHead, type ConnectMethod, type ConnectReply, connectError } from './connect.ts';

export type ConnectDoorOptions = {
  readonly door: DoorState;
  readonly methods: ReadonlyMap<string, ConnectMethod>;
  readonly corsOrigins: readonly string[];
  /** Whose pages may call. */
  readonly own: Own;
  /** How long a client may take to send a body. */
  readonly bodyTimeoutMs: number;
  readonly addressOf?: AddressOf | undefined;
  readonly onRequest: () => void;
  readonly onDefect: (error: unknown) => void;
};

export function serveConnect(
  engine: Engine,
  { door, methods, corsOrigins, own, bodyTimeoutMs, addressOf, onRequest, onDefect }: ConnectDoorOptions,
): void {
  const begin = (exchange: Exchange, request: RequestHead, method: ConnectMethod): void => {
    const head = new ConnectHead(request, exchange, addressOf);
    if (!head.read(request)) return;
    const { origin } = head;
    const headers = corsHeaders(corsOrigins, origin);
    if (head.method === 'options') return exchange.send(PREFLIGHT, { headers });
    const respond = (reply: ConnectReply): void => {
      if (reply.headers === undefined && reply.status === 200 && origin === undefined)
        exchange.sendText(reply.text.type, reply.text.content);
      else exchange.send(reply, { headers, isHead: head.method === 'head' });
    };
    // Only browsers send an origin, and they always do.
    const refusal = head.refusal(own, { origins: true, hosts: origin !== undefined });
    if (refusal !== undefined) return respond(connectError(refusal));
    const { maxBytes } = method;
    exchange.readBody({ maxBytes, timeoutMs: bodyTimeoutMs }, (body) => {
      if (body.kind === 'whole') method.answer(head, body.bytes, respond);
      else respond(connectError({ kind: 'payload_too_large', limitBytes: maxBytes }));
    });
  };
  for (const [path, method] of methods) {
    engine.serve(path, (answer, request) => {
      onRequest();
      const exchange = new Exchange(answer, door, onDefect);
      exchange.guard(() => begin(exchange, request, method));
    });
  }
}

const PREFLIGHT = preflightReply(['post']);
