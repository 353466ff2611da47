/** The methods of the Connect door over a fake gateway, both new for each test of a file that calls `withMethods`. */
import { beforeEach } from 'vitest';
import { type ConnectMethod, type ConnectReply, connectMethods } from '../../../src/doors/connect/connect.ts';
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

export async function call(
  path: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
  method = 'POST',
): Promise<ConnectReply> {
  const all: Record<string, string> = { 'content-type': 'application/json', ...headers };
  const [route = '', query = ''] = path.split('?');
  const found = methods.get(route);
  if (found === undefined) throw new Error(`no method ${path}`);
  return new Promise((resolve) => {
    found.answer({ method, query, header: (name) => all[name], body: Buffer.from(body), cancelled: false }, resolve);
  });
}

/** The status with the fields of the JSON body. */
export const bodyOf = (reply: ConnectReply) => ({
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
