/** Traces, metrics and logs of a real gateway, at a real receiver of OTLP/HTTP (docs/opentelemetry.md). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { foreignClient } from '../support/foreign-grpc.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { ALLOW_ALL } from '../support/policies.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const AGENT = { orgId: 'acme', teamId: 'web', agentId: 'bot' };
const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
/** The part of Envoy's messages that is needed here. */
const ENVOY = `syntax = "proto3";
message HttpRequest { string method = 2; map<string, string> headers = 3; string path = 4; string host = 5; string scheme = 6; }
message Request { HttpRequest http = 2; }
message AttributeContext { Request request = 4; }
message CheckRequest { AttributeContext attributes = 1; }
message Status { int32 code = 1; }
message CheckResponse { Status status = 1; }`;

type Got = { readonly path: string; readonly headers: IncomingMessage['headers']; readonly body: Buffer };
type Collector = {
  readonly url: string;
  readonly got: Got[];
  answer: (response: ServerResponse, got: Got) => void;
  close(): void;
};

async function startCollector(): Promise<Collector> {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const each = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) };
      got.push(each);
      collector.answer(response, each);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    got,
    answer: (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return collector;
}

const jsonAt = (collector: Collector, path: string): any[] =>
  collector.got.filter((got) => got.path === path).map(({ body }) => JSON.parse(body.toString()));
const spansAt = (collector: Collector): any[] =>
  jsonAt(collector, '/v1/traces').flatMap(({ resourceSpans }) => resourceSpans[0].scopeSpans[0].spans);
const attributesOf = ({ attributes }: { attributes: { key: string; value: object }[] }): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const folder = mkdtempSync(join(tmpdir(), 'svc-otel-'));
const policies = join(folder, 'policies.yaml');
const FAST = { OTEL_BSP_SCHEDULE_DELAY: '100', OTEL_BLRP_SCHEDULE_DELAY: '100', OTEL_METRIC_EXPORT_INTERVAL: '300' };

async function startWith(collector: Collector, env: Readonly<Record<string, string>> = {}) {
  const settings = { SVC_POLICY_PATH: policies, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...FAST, ...env };
  const gateway = await startTestGateway({ env: settings });
  const agent = { org_id: 'acme', team_id: 'web', agent_id: 'bot' };
  const token: string = (await gateway.call('POST', '/api/v1/agents', { agent })).body.credential_token;
  let spans = 0;
  const check = async (action: string, headers: Record<string, string> = {}, ids: object = {}): Promise<any> => {
    const answer = await fetch(gateway.url + CHECK, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({
        agent: AGENT,
        credentialToken: token,
        traceId: 'run',
        spanId: `s${(spans += 1)}`,
        action,
        resource: 'invoice/7',
        ...ids,
      }),
    });
    return answer.json();
  };
  return { gateway, token, check };
}

describe('OpenTelemetry', () => {
  let collector: Collector;
  let gateway: TestGateway;
  let token: string;
  let check: Awaited<ReturnType<typeof startWith>>['check'];

  beforeAll(async () => {
    writeFileSync(policies, `${ALLOW_ALL}  - { id: ask, actions: [pay], effect: require_approval }\n`);
    collector = await startCollector();
    ({ gateway, token, check } = await startWith(collector, {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a-secret-header',
      OTEL_SERVICE_NAME: 'gate-1',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
      SVC_IO_THREADS: '1',
    }));
  });
  afterAll(async () => {
    await gateway?.stop();
    collector?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('a check over HTTP is a span in the trace of its caller', async () => {
    const { auditId } = await check('web.search', { traceparent: `00-${TRACE}-${SPAN}-01` });
    const span = await eventually(() => {
      const found = spansAt(collector).find(({ name }) => name === 'check web.search');
      expect(found).toBeDefined();
      return found;
    });
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, kind: 2 });
    expect(Number(span.endTimeUnixNano)).toBeGreaterThan(Number(span.startTimeUnixNano));
    expect(attributesOf(span)).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'web.search',
      'gen_ai.agent.id': 'acme/web/bot',
      'gen_ai.external_ref': auditId,
      'svc.decision': 'allow',
    });
    const [{ resourceSpans }] = jsonAt(collector, '/v1/traces');
    expect(attributesOf(resourceSpans[0].resource)).toMatchObject({
      'service.name': 'gate-1',
      'deployment.environment': 'test',
    });
    expect(collector.got.at(-1)?.headers['x-key']).toBe('a-secret-header');
  });

  test('a check over gRPC is one too, and a pending approval shows', async () => {
    const client = grpcClient(gateway.grpc);
    onTestFinished(() => client.close());
    const fields = { agent: AGENT, credentialToken: token, traceId: 'run', spanId: 'g', action: 'pay', resource: 'x' };
    const { message } = await client.call('CheckAction', fields, undefined, {
      traceparent: `00-${TRACE}-${'c'.repeat(16)}-01`,
    });
    await eventually(() => {
      const span = spansAt(collector).find(({ parentSpanId }) => parentSpanId === 'c'.repeat(16));
      expect(span).toMatchObject({ name: 'check pay', events: [{ name: 'svc.approval.requested' }] });
      expect(attributesOf(span)).toMatchObject({
        'svc.decision': 'pending',
        'svc.approval.state': 'pending',
        'svc.approval.id': message?.approvalId,
      });
    });
  });

  test('a check through the door of another protocol is one as well', async () => {
    const answer = await fetch(`${gateway.url}/access/v1/evaluation`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${token}`,
        traceparent: `00-${TRACE}-${'f'.repeat(16)}-01`,
      },
      body: JSON.stringify({
        subject: { type: 'agent', id: 'acme/web/bot' },
        action: { name: 'tool.call' },
        resource: { type: 'tool', id: 'x' },
      }),
    });
    expect(await answer.json()).toMatchObject({ decision: true });
    await eventually(() => {
      const span = spansAt(collector).find(({ parentSpanId }) => parentSpanId === 'f'.repeat(16));
      expect(attributesOf(span ?? { attributes: [] })).toMatchObject({ 'svc.decision': 'allow', 'svc.dry_run': true });
    });
  });

  test('a check by Envoy is a span in the trace of the request that it holds', async () => {
    const envoy = foreignClient(gateway.grpc, ENVOY);
    onTestFinished(() => envoy.close());
    const headers = { authorization: `Bearer ${token}`, traceparent: `00-${TRACE}-${'9'.repeat(16)}-01` };
    const http = { method: 'GET', scheme: 'https', host: 'api.example', path: '/v1/items', headers };
    const request = { attributes: { request: { http } } };
    const path = '/envoy.service.auth.v3.Authorization/Check';
    expect(await envoy.call(path, 'CheckRequest', 'CheckResponse', request)).toEqual({ status: {} });
    await eventually(() => {
      const span = spansAt(collector).find(({ parentSpanId }) => parentSpanId === '9'.repeat(16));
      expect(span).toMatchObject({ traceId: TRACE, name: 'check net.connect' });
    });
  });

  test('without the header, the ids of the operation are its place in a trace', async () => {
    await check('file.read', {}, { traceId: 'd'.repeat(32), spanId: 'e'.repeat(16) });
    await eventually(() => {
      const span = spansAt(collector).find(({ name }) => name === 'check file.read');
      expect(span).toMatchObject({ traceId: 'd'.repeat(32), parentSpanId: 'e'.repeat(16) });
    });
  });

  test('metrics and the log arrive as well, and say what was sent', async () => {
    await eventually(() => {
      const names = jsonAt(collector, '/v1/metrics').flatMap(({ resourceMetrics }) =>
        resourceMetrics[0].scopeMetrics[0].metrics.map(({ name }: { name: string }) => name),
      );
      expect(names).toEqual(expect.arrayContaining(['svc_checks_total', 'svc_check_duration_seconds']));
    });
    gateway.process.kill('SIGHUP');
    await eventually(() => {
      const records = jsonAt(collector, '/v1/logs').flatMap(
        ({ resourceLogs }) => resourceLogs[0].scopeLogs[0].logRecords,
      );
      expect(records.map(({ body }) => body.stringValue)).toContain('signing keys reloaded');
    });
    await eventually(async () => {
      const { body } = await gateway.call('GET', '/metrics');
      expect(body).toMatch(/^svc_telemetry_exported_total\{signal="traces"\} [1-9]/m);
      expect(body).toMatch(/^svc_telemetry_dropped_total\{signal="traces"\} 0$/m);
    });
    expect(gateway.output.stderr).not.toContain('a-secret-header');
  });

  test('a collector that hangs or dies delays no check, and what it misses is counted', async () => {
    const slow = await startCollector();
    slow.answer = () => undefined;
    const started = await startWith(slow, { OTEL_EXPORTER_OTLP_TIMEOUT: '300', OTEL_METRICS_EXPORTER: 'none' });
    onTestFinished(async () => {
      slow.close();
      await started.gateway.stop();
    });
    for (const end of [() => undefined, () => slow.close()]) {
      end();
      const startedMs = performance.now();
      for (let n = 0; n < 50; n += 1)
        expect(await started.check('web.search')).toMatchObject({ decision: 'DECISION_ALLOW' });
      expect(performance.now() - startedMs).toBeLessThan(10_000);
    }
    await eventually(async () => {
      const { body } = await started.gateway.call('GET', '/metrics');
      const [, dropped] = /^svc_telemetry_dropped_total\{signal="traces"\} (\d+)/m.exec(body) ?? [];
      expect(Number(dropped)).toBe(100);
    });
    expect(started.gateway.output.stderr).toContain('the collector of OpenTelemetry does not take what it is sent');
  });

  test('by default it speaks protobuf, and a stop sends what is left', async () => {
    const binary = await startCollector();
    binary.answer = (response) => void response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
    onTestFinished(() => binary.close());
    const env = { OTEL_BSP_SCHEDULE_DELAY: '60000', SVC_IO_THREADS: '0', OTEL_LOGS_EXPORTER: 'none' };
    const started = await startWith(binary, env);
    await started.check('web.search', { traceparent: `00-${TRACE}-${SPAN}-01` });
    await started.gateway.stop();
    const traces = binary.got.find(({ path }) => path === '/v1/traces');
    expect(traces?.headers['content-type']).toBe('application/x-protobuf');
    expect(traces?.body.includes(Buffer.from(TRACE, 'hex'))).toBe(true);
    expect(traces?.body.includes('check web.search')).toBe(true);
    expect(binary.got.filter(({ path }) => path === '/v1/logs')).toEqual([]);
  });
});
