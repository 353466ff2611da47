/** The methods of the Connect door over a fake gateway, both new for each test of a file that calls `withMethods`. */
import { beforeEach } from 'vitest';
import {
  ConnectHead,
  type ConnectMethod,
  type ConnectReply,
  connectMethods,
} from '../../../src/doors/connect/connect.ts';
import type { Exchange } from '../../../src/doors/engine/exchange.ts';
import type { Header } from '../../../src/doors/shared/http-answer.ts';
import { type FakeGateway, fakeGateway, TOKEN } from '../../support/fake-ports.ts';

export const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
export const BATCH = '/svc.governance.v1.PolicyService/BatchCheckActions';
export const request = {
  agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
  credentialToken: TOKEN,
  traceId: 'trace',
  spanId: 'span',
  action: 'tool.call',
};

export let gateway: FakeGateway;
export let defects: unknown[];
export let methods: ReadonlyMap<string, ConnectMethod>;

/** For each file that uses them to call: a module that is loaded already registers nothing. */
export function withMethods(): void {
  beforeEach(() => {
    gateway = fakeGateway();
    defects = [];
    methods = connectMethods(gateway, (error) => defects.push(error));
  });
}

/** The head of a request, whose client has gone where `client` says so. */
export function headOf(
  headers: Readonly<Record<string, string | undefined>>,
  { method = 'POST', path = CHECK, query = '', client = { cancelled: false } } = {},
): ConnectHead {
  const request = {
    method: method.toLowerCase(),
    path,
    query,
    header: (name: string) => headers[name] ?? '',
    forEach: (take: (name: string, value: string) => void) => {
      for (const [name, value] of Object.entries(headers)) if (value !== undefined) take(name, value);
    },
  };
  const exchange = {
    get isOver() {
      return client.cancelled;
    },
    asksForBody: () => true,
    noteChunks: () => undefined,
    remoteAddress: () => '',
  } as unknown as Exchange;
  const head = new ConnectHead(request, exchange, undefined);
  head.read(request);
  return head;
}

/** A reply as its parts. */
export type Reply = {
  readonly status: number;
  readonly contentType: string;
  readonly content: string | Uint8Array;
  readonly headers: readonly Header[];
};
export const partsOf = ({ status, text: { type, content }, headers = [] }: ConnectReply): Reply => ({
  status,
  contentType: type,
  content,
  headers,
});

export async function call(
  path: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
  method = 'POST',
): Promise<Reply> {
  const [route = '', query = ''] = path.split('?');
  const found = methods.get(route);
  if (found === undefined) throw new Error(`no method ${path}`);
  const head = headOf({ 'content-type': 'application/json', ...headers }, { method, path: route, query });
  return new Promise((resolve) => {
    found.answer(head, Buffer.from(body), (reply) => resolve(partsOf(reply)));
  });
}

/** The status with the fields of the JSON body. */
export const bodyOf = (reply: Reply) => ({
  status: reply.status,
  ...(JSON.parse(reply.content.toString()) as object),
});

/** Checks of an org, a megabyte of them. */
export const largeBatch = (orgId: string, last: object = {}, credentialToken: string = TOKEN): string => {
  const items = Array.from({ length: 100 }, (_, index) => ({
    ...request,
    credentialToken,
    agent: { ...request.agent, orgId },
    spanId: `s${index}`,
    attributes: { path: 'x'.repeat(10_000) },
  }));
  return JSON.stringify({ requests: [...items.slice(1), { ...items[0], ...last }] });
};
