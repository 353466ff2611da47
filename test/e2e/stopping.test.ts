/**
 * A gateway ends in time, in order, and leaves nothing running, whatever it waits for (docs/spec.md, Starting and
 * stopping).
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { binaryCodec, emptyMessage } from '../../src/doors/proto/binary.ts';
import type { CheckActionRequest } from '../../src/doors/proto/messages.ts';
import { messageShape } from '../../src/doors/proto/schema.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { auditEntries } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { framed } from '../support/grpc-frames.ts';
import { hang } from '../support/hung-file.ts';
import { registerLoadAgent, startLoad } from '../support/load.ts';
import { withPostgres } from '../support/postgres.ts';
import { throughProxy } from '../support/proxy.ts';

const newDatabase = withPostgres();
const POLICY = 'name: p\nscope: global\nrules:\n  - { id: r, actions: ["*"], effect: allow }\n';
const OWNER = { email: 'owner@example.com', password: 'a horse that nobody corrects' };

async function start(env: Record<string, string>, onceOver = onTestFinished): Promise<TestGateway> {
  const gateway = await startTestGateway({ env: { SVC_ARGON2_MEMORY_KIB: '1024', SVC_SHUTDOWN_SECS: '3', ...env } });
  onceOver(async () => {
    await gateway.stop('SIGKILL');
  });
  return gateway;
}

/** Its status and whether it took at most so long. */
async function stopped(gateway: TestGateway, timeoutMs: number): Promise<number | string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, `still there after ${timeoutMs} ms`);
  });
  return Promise.race([gateway.stop('SIGTERM'), late]).finally(() => clearTimeout(timer));
}

describe('stopping', () => {
  test.each([
    ['nothing is asked of it', []],
    [
      'sign-ins and API keys wait for it',
      [
        ['/api/v1/auth/login', OWNER],
        ['/api/v1/iam/api-keys', { name: 'late', scopes: ['read'] }],
      ],
    ],
  ] as const)('a database that stopped answering does not block the shutdown: %s', async (_, requests) => {
    const { url, proxy } = await throughProxy(await newDatabase());
    const gateway = await start({ SVC_DATABASE_URL: url.href });
    expect((await gateway.call('POST', '/api/v1/auth/register', OWNER, null)).status).toBe(201);
    proxy.freeze();
    const asked = requests.flatMap(([path, body]) =>
      Array.from({ length: 10 }, () => gateway.call('POST', path, body)),
    );
    const answered = Promise.allSettled(asked);
    await sleep(100); // they are on their way
    expect(await stopped(gateway, 10_000)).toBe(0);
    for (const answer of await answered) if (answer.status === 'fulfilled') expect(answer.value.status).toBe(503);
  });

  // These do little but wait until the time of a shutdown is over.
  test.concurrent.for(['signing keys', 'policies'])(
    '%s on a lost disk block no shutdown, and the log says so',
    async (lost, { onTestFinished: onceOver, skip }) => {
      const policies = mkdtempSync(join(tmpdir(), 'svc-hung-'));
      onceOver(() => rmSync(policies, { recursive: true, force: true }));
      writeFileSync(join(policies, 'p.yaml'), POLICY);
      const gateway = await start({ SVC_SHUTDOWN_SECS: '1', SVC_POLICY_PATH: policies }, onceOver);
      const file = lost === 'policies' ? join(policies, 'p.yaml') : join(gateway.dataDir, 'keys', 'signing.json');
      const hung = (await hang(file, onceOver)) ?? skip();
      gateway.process.kill('SIGHUP');
      await hung.asked;
      // After 1 s + 3 s, and before the 7 s + 3 s of a gateway that is not told for how long to wait.
      expect(await stopped(gateway, 9_000)).toBe('SIGTERM');
      expect(
        gateway.output.stderr
          .trim()
          .split('\n')
          .map((line) => ({ ...JSON.parse(line), time: undefined }))
          .at(-1),
      ).toEqual({
        level: 'error',
        msg: 'shutdown after SIGTERM timed out; exiting now',
        waitedFor: 'a name server or file that does not respond; everything is written',
        auditEntriesNotWritten: 0,
      });
    },
  );

  test('SIGTERM to npm start stops the gateway in order with its exit status', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
    const npm = spawn('npm', ['start'], {
      cwd: PACKAGE_ROOT,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH ?? '',
        HOME: folder,
        npm_config_update_notifier: 'false',
        SVC_HTTP_ADDR: '127.0.0.1:0',
        SVC_GRPC_ADDR: '127.0.0.1:0',
        SVC_DATA_DIR: join(folder, 'data'),
      },
    });
    onTestFinished(() => {
      try {
        process.kill(-npm.pid!, 'SIGKILL'); // and what it left running
      } catch {
        /* it has left nothing */
      }
      rmSync(folder, { recursive: true, force: true });
    });
    let output = '';
    for (const stream of [npm.stdout, npm.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    await eventually(() => expect(output).toContain('svc-gateway is ready'));
    const ended = new Promise((resolve) => {
      npm.once('close', (code, signal) => resolve(signal ?? code));
    });
    npm.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(output).toContain('SIGTERM received; finishing requests in flight');
  });

  test('Ctrl-C on npm start, which the gateway hears twice, finishes what is in flight', async () => {
    const gateway = await start({});
    const { hostname, port } = new URL(gateway.url);
    const client = connect(Number(port), hostname);
    onTestFinished(() => void client.destroy());
    let answer = '';
    client
      .on('error', () => undefined)
      .on('data', (chunk: Buffer) => {
        answer += chunk.toString();
      });
    const body = '{"op_id":"trace:span","agent":{"org_id":"acme","team_id":"t","agent_id":"a"}}';
    client.write(
      `POST /api/v1/ops HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ADMIN_KEY}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`,
    );
    await gateway.call('GET', '/api/v1/ops');
    const ended = gateway.stop('SIGINT');
    for (const pauseMs of [1, 10, 30]) {
      await sleep(pauseMs);
      gateway.process.kill('SIGINT');
    }
    client.write(body.slice(9));
    expect(await ended).toBe(0);
    expect(answer).toMatch(/^HTTP\/1.1 201 /);
    expect(gateway.output.stderr).toContain('"msg":"stopped"');
  });

  test('repeated signals, as from a terminal and npm, leave no embedded database', async () => {
    const gateway = await start({ SVC_DATABASE_URL: 'embedded' });
    const pid = Number(
      readFileSync(join(gateway.dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8').split('\n')[0],
    );
    const ended = gateway.stop('SIGTERM');
    for (let time = 0; time < 2; time += 1) {
      await sleep(1);
      gateway.process.kill('SIGTERM');
    }
    expect(await ended).toBe(0);
    await eventually(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'));
  });

  test('a second signal, a second later, ends the gateway at once, with its database', async () => {
    const gateway = await start({ SVC_DATABASE_URL: 'embedded', SVC_SHUTDOWN_SECS: '60' });
    const pidFile = join(gateway.dataDir, 'postgres', 'cluster', 'postmaster.pid');
    const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
    const unfinished = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    onTestFinished(() => void unfinished.destroy());
    unfinished
      .on('error', () => undefined)
      .write(
        `POST /api/v1/ops HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ADMIN_KEY}\r\nContent-Length: 9\r\n\r\n{`,
      );
    await gateway.call('GET', '/api/v1/ops');
    gateway.process.kill('SIGTERM');
    await eventually(() => expect(gateway.output.stderr).toContain('SIGTERM received; finishing requests in flight'));
    await sleep(1_200); // signals within a second are one
    expect(
      await new Promise((resolve) => {
        gateway.process.once('exit', (code, signal) => resolve(signal ?? code));
        gateway.process.kill('SIGINT');
      }),
    ).toBe('SIGINT');
    await eventually(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'));
  });

  test('sign-ins still queued at the end are refused with a retry time', async () => {
    // A hash takes long enough for many to wait in the last second, and on a busy machine not the ten seconds after
    // which it is given up.
    const gateway = await start({
      SVC_DATABASE_URL: await newDatabase(),
      SVC_ARGON2_MEMORY_KIB: '19456',
      SVC_ARGON2_ITERATIONS: '10',
      SVC_CRYPTO_THREADS: '1',
      SVC_SHUTDOWN_SECS: '1',
    });
    expect((await gateway.call('POST', '/api/v1/auth/register', OWNER, null)).status).toBe(201);
    let done = 0;
    const signIn = () => gateway.call('POST', '/api/v1/auth/login', OWNER, null).finally(() => (done += 1));
    const answered = Promise.allSettled(Array.from({ length: 24 }, signIn));
    await eventually(async () => {
      const { body } = await gateway.call('GET', '/metrics');
      const pending = Number(/^svc_requests_pending (\d+)$/m.exec(body)?.[1]);
      expect(done + pending).toBeGreaterThanOrEqual(24);
    });
    expect(await stopped(gateway, 10_000)).toBe(0);
    const refused = (await answered)
      .map((answer) => (answer.status === 'rejected' ? 'cut' : answer.value))
      .filter((answer) => answer === 'cut' || answer.status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    for (const answer of refused)
      expect(answer).toMatchObject({ status: 503, body: { code: 'shutting_down', retry_after_secs: 1 } });
  });

  test('large batches in progress or queued are answered before the end', async () => {
    const gateway = await start({ SVC_IO_THREADS: '1', SVC_SHUTDOWN_SECS: '60' });
    const agent = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
    // Ever new names: much to read in few bytes.
    const requests = Array.from({ length: 25 }, (_, nth) => ({
      agent,
      trace_id: `t${nth}`,
      span_id: 's',
      action: 'tool.call',
      attributes: Object.fromEntries(Array.from({ length: 900 }, (__, key) => [`name-${nth}-${key}`, 1])),
    }));
    const asked = Array.from({ length: 12 }, () =>
      gateway.call('POST', '/svc.governance.v1.PolicyService/BatchCheckActions', { requests }),
    );
    const answered = Promise.allSettled(asked);
    await Promise.race(asked); // the others are at the door
    expect(await stopped(gateway, 60_000)).toBe(0);
    expect((await answered).map((answer) => (answer.status === 'rejected' ? 'cut' : answer.value.status))).toEqual(
      Array(12).fill(200),
    );
  });

  test('a large gRPC answer is delivered to its end after a stop midway', async () => {
    const gateway = await start({ SVC_SHUTDOWN_SECS: '60' });
    const empty = emptyMessage(messageShape('CheckActionRequest')) as CheckActionRequest;
    const requests = Array.from({ length: 1000 }, (_, nth) => ({
      ...empty,
      agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
      traceId: `t${nth}`,
      spanId: 's',
      action: 'tool.call',
      correlationId: 'c'.repeat(250),
    }));
    const message = binaryCodec('BatchCheckActionsRequest').encode({ requests });
    const session = connectHttp2(`http://${gateway.grpc}`);
    onTestFinished(() => session.destroy());
    session.on('error', () => undefined);
    const call = session.request({
      ':method': 'POST',
      ':path': '/svc.governance.v1.PolicyService/BatchCheckActions',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    call.on('error', () => undefined).end(framed(message));
    let trailers: unknown = 'cut';
    call.on('trailers', (sent) => {
      trailers = sent['grpc-status'];
    });
    const isOver = new Promise((resolve) => call.once('close', resolve));
    await new Promise((resolve) => call.once('response', resolve));
    const stopping = stopped(gateway, 60_000);
    await eventually(() => expect(gateway.output.stderr).toContain('SIGTERM received; finishing requests in flight'));
    await sleep(200); // what a slow link takes
    call.resume();
    await isOver;
    expect({ trailers, stopping: await stopping }).toEqual({ trailers: '0', stopping: 0 });
  });

  test('no check is decided whose answer is cut off, even under load at the stop', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const gateway = await startTestGateway({ dataDir: folder, env: { SVC_SHUTDOWN_SECS: '60' } });
    onTestFinished(async () => {
      await gateway.stop('SIGKILL');
    });
    await registerLoadAgent(gateway);
    const load = startLoad(gateway, 'load', 32);
    await eventually(() => expect(load.answered.length).toBeGreaterThan(100));
    expect(await stopped(gateway, 60_000)).toBe(0);
    await load.stop();
    expect(load.failed).not.toContain('TimeoutError');
    expect(new Set(load.answered.map(({ status }) => status))).toEqual(new Set([200]));
    expect(gateway.output.stderr).not.toMatch(/"level":"?(error|fatal)/);
    const answered = new Set(load.answered.map(({ opId }) => opId));
    const decided = auditEntries(gateway.dataDir).flatMap(({ event_type, op_id }) =>
      event_type === 'ActionAllowed' && op_id !== null ? [op_id] : [],
    );
    expect(decided.length).toBeGreaterThan(100);
    expect(decided.filter((opId) => !answered.has(opId))).toEqual([]);
  });

  test('answers a partial request if it proceeds after SIGTERM, and else is not blocked', async () => {
    const gateway = await start({ SVC_SHUTDOWN_SECS: '60' });
    const body = JSON.stringify({ requests: [], padding: 'x'.repeat(2_000) });
    const http = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    const stalled = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    const session = connectHttp2(`http://${gateway.grpc}`);
    onTestFinished(() => {
      for (const socket of [http, stalled, session]) socket.destroy();
    });
    for (const socket of [http, stalled, session]) socket.on('error', () => undefined); // cut off
    let answer = '';
    http.on('data', (bytes: Buffer) => {
      answer += bytes.toString('latin1');
    });
    const isClosed = new Promise((resolve) => http.once('close', resolve));
    const head = `POST /svc.governance.v1.PolicyService/BatchCheckActions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const call = session.request({
      ':method': 'POST',
      ':path': '/svc.governance.v1.PolicyService/CheckAction',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    let status: unknown = 'cut';
    call
      .on('error', () => undefined)
      .on('response', (headers) => {
        status = headers['grpc-status'];
      });
    const isOver = new Promise((resolve) => call.once('close', resolve));
    stalled.write(`${head}{`);
    http.write(head + body.slice(0, 100));
    call.write(Buffer.from([0, 0, 0, 0, 10]));
    await gateway.call('GET', '/api/v1/ops'); // all of it has come
    const stopping = stopped(gateway, 45_000); // the one that stalls has a minute otherwise
    await eventually(() => expect(gateway.output.stderr).toContain('SIGTERM received; finishing requests in flight'));
    for (let at = 100; at < body.length; at += 400) {
      await sleep(100); // a slow link
      http.write(body.slice(at, at + 400));
      call.write(Buffer.alloc(1));
    }
    call.end(Buffer.alloc(5));
    await Promise.all([isClosed, isOver]);
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*padding/);
    expect(status).toBe('3');
    expect(await stopping).toBe(0);
  });
});
