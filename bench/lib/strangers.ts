/**
 * The messages that cost most for their size, of somebody who has shown no credential: by the parser that reads them.
 */
import { extMcpService } from '../../src/doors/agentgateway/ext-mcp.ts';
import { routesOf } from '../../src/doors/api/routes.ts';
import { Holds } from '../../src/doors/coding-agents/holds.ts';
import { addressBehind } from '../../src/doors/engine/client-address.ts';
import { envoyService } from '../../src/doors/envoy/ext-authz.ts';
import { headBytesOf, readHead } from '../../src/doors/grpc/head.ts';
import { healthService } from '../../src/doors/grpc/health.ts';
import { MessageReader } from '../../src/doors/grpc/messages.ts';
import type { Methods } from '../../src/doors/grpc/method.ts';
import { field } from '../../src/doors/proto/fields.ts';
import { parseJson } from '../../src/doors/proto/json.ts';
import { bearerOf } from '../../src/doors/rpc/bearer.ts';
import { ControlSwitch } from '../../src/doors/rpc/control-switch.ts';
import { unaryMethods } from '../../src/doors/rpc/methods.ts';
import { readBody, refuseUnknown } from '../../src/doors/shared/input.ts';
import { readStreamQuery } from '../../src/doors/ws/stream.ts';
import { fakeGateway } from '../../test/support/fake-ports.ts';

export type Hostile = { readonly name: string; readonly work: () => unknown };

const MIB = 1024 * 1024;
const HEAD_BYTES = 16 * 1024;
const ports = fakeGateway();
const foreign = { count: () => undefined, onDefect: (error: unknown) => Promise.reject(error) };

const times = (hex: string, bytes: number): Buffer => Buffer.alloc(bytes, Buffer.from(hex, 'hex'));

/** Errors and refusals are as good as any answer: only their price counts. */
function call(methods: Methods, path: string, message: Buffer): () => unknown {
  const method = methods.get(path)!;
  const receiver = () => method.open({ address: '192.0.2.1', cancelled: false, end: () => undefined } as never, {});
  return () => receiver().receive(message);
}

function* foreignMessages(): Generator<Hostile> {
  const envoy = call.bind(undefined, envoyService(ports, foreign), '/envoy.service.auth.v3.Authorization/Check');
  const http = (content: Buffer) => field(1, field(4, field(2, content)));
  for (const [what, hex] of [
    ['headers', '1a00'],
    ['header maps', '6a00'],
    ['fields that nobody reads', '7800'],
    ['nested groups', '7b7b7b7b7c7c7c7c'],
  ] as const)
    yield { name: `Envoy, 4 MiB of ${what}`, work: envoy(http(times(hex, 4 * MIB - 64))) };
  const text = Buffer.alloc(100_000, 'é');
  yield { name: 'Envoy, 100 kB of credential', work: envoy(http(field(3, Buffer.concat([field(1, 'a'), text])))) };

  const extMcp = extMcpService(ports, foreign);
  for (const direction of ['CheckRequest', 'CheckResponse'])
    for (const [what, message] of [
      ['headers', times('2a00', 4 * MIB)],
      ['names of servers', times('0a00', 4 * MIB)],
      ['metadata', field(3, times('0a00', 4 * MIB))],
      ['texts in metadata', field(3, field(1, Buffer.concat([field(1, 'a'), field(2, times('1a02c3a9', 120_000))])))],
    ] as const)
      yield {
        name: `ExtMcp, ${direction}, ${what}`,
        work: call(extMcp, `/agentgateway.dev.ext_mcp.ExtMcp/${direction}`, message),
      };
  const health = healthService(['']).methods;
  yield { name: 'health, 4 kB of names', work: call(health, '/grpc.health.v1.Health/Check', times('0a02c3a9', 4_096)) };
}

function* ownMessages(): Generator<Hostile> {
  const binary = [
    ['fields that nobody knows', 'f80700'],
    ['parts of messages', '0a00'],
    ['texts that are no ASCII', '1a02c3a9'],
    ['parts of attributes', '3a00'],
    ['nested groups', '7b7b7b7b7c7c7c7c'],
  ] as const;
  const keys = Array.from({ length: 23_000 }, (_, nth) => `"k${nth}":1`).join();
  const json: readonly (readonly [string, string])[] = [
    ['brackets', '['.repeat(MIB)],
    ['nested objects', `{"attributes":${'{"a":'.repeat(23_000)}1${'}'.repeat(23_000)}}`],
    ['keys', `{"attributes":{${keys}}}`],
    ['unknown fields', `{${keys}}`],
    ['escapes', `{"attributes":{"a":"${'\\u00e9'.repeat(170_000)}"}}`],
    ['digits', `{"estimatedCostUsd":${'1'.repeat(1_000_000)}}`],
    ['marks to normalize', `{"agent":{"orgId":"a${'\u0315\u0300'.repeat(200_000)}"}}`],
  ];
  for (const { name, decode, maxBytes } of unaryMethods(ports)) {
    for (const [what, hex] of binary)
      yield { name: `${name} in protobuf, ${what}`, work: slices(decode.binary, times(hex, maxBytes - 8)) };
    for (const [what, text] of json)
      yield { name: `${name} in JSON, ${what}`, work: slices(decode.json, Buffer.from(text)) };
  }
}

/** A batch is read in slices, between which others get their turns: the first is as long as any. */
const slices = (decode: (body: Buffer) => unknown, body: Buffer) => (): unknown => {
  const read = decode(body) as { readonly ok: boolean; readonly value?: { readonly slices?: readonly (() => void)[] } };
  return read.value?.slices?.[0]?.();
};

function* httpMessages(): Generator<Hostile> {
  const holds = new Holds(new ControlSwitch(() => undefined));
  const rows = routesOf({ hasAccountStore: true, maxLogins: 100, httpHost: '127.0.0.1', opsTtlSecs: 60, holds });
  const bodies = [
    ['brackets', Buffer.alloc(MIB, '[')],
    ['unknown keys', Buffer.from(`{${Array.from({ length: 23_000 }, (_, nth) => `"k${nth}":1`).join()}}`)],
    ['long texts', Buffer.from(JSON.stringify({ email: `a@${'a.'.repeat(200_000)}`, password: 'é'.repeat(200_000) }))],
  ] as const;
  for (const { access, body, method, path } of rows) {
    if (access !== 'public' || body === undefined) continue;
    for (const [what, bytes] of bodies)
      yield { name: `${method} ${path}, ${what}`, work: attempted(() => readBody(body, parseJson(bytes))) };
  }
  for (const row of rows) {
    if (row.access !== 'agent') continue;
    const request = { headers: new Map(), query: new URLSearchParams(), params: {}, caller: { cancelled: false } };
    const unknown = { ...request, body: { kind: 'whole', bytes: Buffer.alloc(MIB, '[') } } as never;
    yield { name: `${row.method} ${row.path}, without a credential`, work: () => row.handle(unknown, ports) };
  }
}

const attempted = (work: () => unknown) => (): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

function* heads(): Generator<Hostile> {
  const spaces = `bearer ${' '.repeat(HEAD_BYTES / 2)}x${' '.repeat(HEAD_BYTES / 2)}y`;
  yield { name: 'an Authorization header of white space', work: () => bearerOf(spaces) };
  const fields = Array.from({ length: 256 }, (_, nth) => (nth % 2 === 0 ? 'authorization' : 'x'.repeat(4_000)));
  const metadata = { authorization: 'x', 'grpc-timeout': '1'.repeat(HEAD_BYTES) };
  yield { name: 'a gRPC head', work: () => [headBytesOf(fields), readHead(metadata, fields)] };
  const query = () => new URLSearchParams(`${'a=&'.repeat(HEAD_BYTES / 3)}`);
  const long = () => new URLSearchParams(`${'a'.repeat(HEAD_BYTES)}=`);
  for (const make of [query, long])
    yield {
      name: `a query of ${make().size} parameters`,
      work: () => [refuseUnknown(make()), readStreamQuery(make())],
    };
  const types = () => new URLSearchParams(`types=${'a,'.repeat(HEAD_BYTES / 2)}`);
  yield { name: 'a WebSocket for 8,192 kinds of events', work: () => readStreamQuery(types()) };
  const addressOf = addressBehind(['192.0.2.0/24']);
  const forwarded = ['192.0.2.1,'.repeat(HEAD_BYTES / 10)];
  yield { name: 'X-Forwarded-For of 1,638 proxies', work: () => addressOf('192.0.2.1', forwarded) };
}

/** In messages of one byte each, as gRPC may send them: 64 KiB are what a client may send before they are read. */
export function pieces(): MessageReader {
  const reader = new MessageReader();
  const [long, zero] = [Buffer.from([255]), Buffer.from([0])];
  for (let at = 0; at < 64 * 1024; at += 1) reader.add(at === 2 ? long : zero);
  return reader;
}

export const hostileMessages = (): readonly Hostile[] => [
  ...foreignMessages(),
  ...ownMessages(),
  ...httpMessages(),
  ...heads(),
  { name: 'a gRPC message in pieces of a byte', work: pieces },
];
