/** The state after the gateway, or one of its threads, ends without notice (docs/spec.md, Audit). */
import { cpSync, existsSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { ARRANGEMENTS } from '../support/arrangements.ts';
import { auditEntries } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, type GatewayOptions, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { type Answered, LOAD_AGENT, LOAD_TOKEN, registerLoadAgent, startLoad } from '../support/load.ts';
import { ALLOW_ALL, policyFile } from '../support/policies.ts';
import { folderForDatabase, layDatabase } from '../support/postgres.ts';
import { head, openSocket } from '../support/raw-http.ts';

const AGENT = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };

async function start(options: GatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startTestGateway(options);
  onTestFinished(async () => {
    await gateway.stop('SIGKILL');
  });
  return gateway;
}

function dataFolder(folder = mkdtempSync(join(tmpdir(), 'svc-crash-'))): string {
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Every answered decision is in the log where the answer said, and the chain holds. */
async function expectAllRecorded(gateway: TestGateway, answered: readonly Answered[]): Promise<void> {
  const byId = new Map(auditEntries(gateway.dataDir).map((entry) => [entry.id, entry]));
  const missing = answered.filter(
    ({ opId, auditId, status, decision }) =>
      status === 200 && (decision === 'DECISION_ALLOW' || auditId > 0) && byId.get(auditId)?.op_id !== opId,
  );
  expect(missing).toEqual([]);
  expect(await verifyAuditLog(join(gateway.dataDir, 'audit'))).toMatchObject({ ok: true, entries: byId.size });
}

const check = async (gateway: TestGateway, traceId: string, resource = 'web_search') =>
  (
    await gateway.call(
      'POST',
      '/svc.governance.v1.PolicyService/CheckAction',
      { agent: LOAD_AGENT, credentialToken: LOAD_TOKEN, traceId, spanId: 's', action: 'tool.call', resource },
      null,
    )
  ).body;

describe('the whole process', () => {
  test.each(ARRANGEMENTS)('after kill -9 under load every answer is logged ($arrangement)', async (arranged) => {
    const dataDir = dataFolder();
    const env = {
      ...arranged.env,
      SVC_POLICY_PATH: policyFile(`${ALLOW_ALL}budget: { daily_limit_usd: 100 }\n`).path,
    };
    const first = await start({ dataDir, env });
    await registerLoadAgent(first);
    const key = (await first.call('POST', '/api/v1/iam/api-keys', { name: 'survivor', scopes: ['read'] })).body
      .key as string;
    expect((await first.call('POST', '/api/v1/usage', { agent: AGENT, cost_usd: 12.5 })).body).toEqual({
      status: 'ok',
    });
    const load = startLoad(first, 'killed');
    await eventually(() => expect(load.answered.length).toBeGreaterThan(300));
    expect(await first.stop('SIGKILL')).toBe('SIGKILL');
    await load.stop();
    expect(load.answered.every(({ decision }) => decision === 'DECISION_ALLOW')).toBe(true);
    await expectAllRecorded(first, load.answered);

    // On the same ports too, whatever the system still remembers of the connections that were cut.
    const second = await start({
      dataDir,
      env: { ...env, SVC_HTTP_ADDR: new URL(first.url).host, SVC_GRPC_ADDR: first.grpc },
    });
    await expectAllRecorded(second, load.answered);
    expect(await check(second, 'after')).toMatchObject({ decision: 'DECISION_ALLOW' }); // its token is known still
    expect((await second.call('GET', '/api/v1/ops', undefined, key)).status).toBe(200);
    expect((await second.call('GET', '/api/v1/ops')).body.ops.map(({ op_id }: { op_id: string }) => op_id)).toEqual([
      'after:s',
    ]); // lost on restart (docs/spec.md, Operations)
    expect((await second.call('GET', '/api/v1/budgets')).body.budgets[0].daily.spent_usd).toBe(12.5);
    await expectAllRecorded(second, load.answered);
  });

  test('a snapshot of the data directory under load starts elsewhere, complete', async () => {
    const dataDir = dataFolder(folderForDatabase());
    const env = {
      SVC_POLICY_PATH: policyFile(`${ALLOW_ALL}budget: { daily_limit_usd: 100 }\n`).path,
      SVC_DATABASE_URL: 'embedded',
    };
    await layDatabase(join(dataDir, 'data'));
    const running = await start({ dataDir, env });
    await registerLoadAgent(running);
    const account = { email: 'owner@example.com', password: 'a long enough passphrase' };
    expect((await running.call('POST', '/api/v1/auth/register', account, null)).status).toBe(201);
    expect((await running.call('POST', '/api/v1/usage', { agent: AGENT, cost_usd: 12.5 })).body).toEqual({
      status: 'ok',
    });
    const load = startLoad(running, 'copied');
    await eventually(() => expect(load.answered.length).toBeGreaterThan(100));
    const copy = dataFolder(folderForDatabase());
    running.process.kill('SIGSTOP');
    const answered = [...load.answered];
    cpSync(join(dataDir, 'data'), join(copy, 'another place'), {
      recursive: true,
      filter: (path) => !path.endsWith('/lock') || path.endsWith('/audit/lock'),
    });
    running.process.kill('SIGCONT');
    await load.stop();

    const restored = await start({ dataDir: copy, env: { ...env, SVC_DATA_DIR: join(copy, 'another place') } });
    await expectAllRecorded({ ...restored, dataDir: join(copy, 'another place') }, answered);
    expect(await check(restored, 'after')).toMatchObject({ decision: 'DECISION_ALLOW' });
    expect((await restored.call('GET', '/api/v1/budgets')).body.budgets[0].daily.spent_usd).toBe(12.5);
    expect((await restored.call('POST', '/api/v1/auth/login', account, null)).status).toBe(200);
    expect(await check(running, 'still')).toMatchObject({ decision: 'DECISION_ALLOW' }); // nothing was done to the one that was copied
  });

  test('SIGTERM does not wait for clients that never finish their requests', async () => {
    const gateway = await start();
    const body = openSocket(gateway);
    body.write(`${head('POST /api/v1/ops HTTP/1.1', { 'Content-Length': '100' })}half`);
    const idle = connect({ host: '127.0.0.1', port: Number(gateway.grpc.split(':')[1]) });
    const session = connectHttp2(`http://${gateway.grpc}`);
    const headers = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' };
    const calls = ['CheckAction', 'StreamCheckActions'].map((method) =>
      session.request({ ...headers, ':path': `/svc.governance.v1.PolicyService/${method}` }),
    );
    for (const socket of [body, idle, session, ...calls]) socket.on('error', () => undefined); // they are cut off: that is the promise
    for (const call of calls) call.write(Buffer.from([0, 0, 0, 1, 0, 1, 2]));
    await sleep(200);
    expect(await gateway.stop('SIGTERM')).toBe(0); // 'SIGTERM' if it had to be cut off, after seven seconds and three
    for (const socket of [body, idle, session]) socket.destroy();
  });

  test('a second gateway on the data directory is refused, and removes no temporary file', async () => {
    const dataDir = dataFolder();
    const first = await start({ dataDir });
    const [remains, others] = [
      ['keys/signing.json.0123abcd.partial', 'format.0123abcd.partial'],
      ['keys/signing.json.partial', 'keys/mine.0123abcd.partial', 'format.0123abcd.partial.old'],
    ].map((names) => names.map((name) => join(first.dataDir, name)));
    for (const path of [...remains!, ...others!]) writeFileSync(path, '{"active":{"privateKeyPem":"half');
    await expect(startTestGateway({ dataDir })).rejects.toThrow(
      /ended with 1:[^]*the data directory .* is in use by another gateway/,
    );
    expect((await first.call('GET', '/api/v1/ops')).status).toBe(200);
    expect(remains!.filter((path) => existsSync(path))).toEqual(remains);
    await first.stop('SIGKILL');
    await start({ dataDir }); // the next that starts does, once that one is gone
    expect(remains!.filter((path) => existsSync(path))).toEqual([]);
    expect(others!.filter((path) => existsSync(path))).toEqual(others);
  });

  test('a second gateway on the port is refused with the port and its setting', async () => {
    const first = await start();
    await expect(startTestGateway({ env: { SVC_HTTP_ADDR: new URL(first.url).host } })).rejects.toThrow(
      /ended with 1:[^]*cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\)[^]*SVC_HTTP_ADDR/,
    );
    await expect(startTestGateway({ env: { SVC_GRPC_ADDR: first.grpc } })).rejects.toThrow(
      /ended with 1:[^]*cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\)[^]*SVC_GRPC_ADDR/,
    );
  });

  test.each([
    [
      { SVC_POLICY_PATH: '/nowhere/policies.yaml' },
      /the policies in SVC_POLICY_PATH are invalid:\s+\/nowhere\/policies\.yaml: does not exist/,
    ],
    [
      { SVC_DATABASE_URL: 'postgres://127.0.0.1:1/svc?sslrootcert=/nowhere/ca.pem' },
      /cannot use the database in SVC_DATABASE_URL: ENOENT.*\/nowhere\/ca\.pem/,
    ],
  ])('a failed start names the setting and what is wrong with it: %j', async (env, words) => {
    await expect(startTestGateway({ env })).rejects.toThrow(words);
  });
});

const THREADED = { SVC_IO_THREADS: '1' };
const IN_MAIN = { SVC_IO_THREADS: '0' };
const IN_MAIN_WITH_AUDIT_THREAD = { SVC_IO_THREADS: '0', SVC_AUDIT_FSYNC: 'always' };

describe('a thread', () => {
  async function breakable(env: Record<string, string> = {}): Promise<{
    gateway: TestGateway;
    breakThread(kind: string): void;
    pause(kind: string): Promise<void>;
    mend(kind: string): void;
    isLeft(kind: string): boolean;
  }> {
    const folder = dataFolder();
    const gateway = await start({
      dataDir: folder,
      env: {
        BREAK_DIR: folder,
        NODE_OPTIONS: `--import=${new URL('../support/break-thread.mjs', import.meta.url).href}`,
        SVC_IO_THREADS: '1',
        ...env,
      },
    });
    await registerLoadAgent(gateway);
    const breakThread = (kind: string): void => writeFileSync(join(folder, kind), '');
    const isLeft = (kind: string): boolean => existsSync(join(folder, kind));
    const pause = (kind: string): Promise<void> => {
      breakThread(`${kind}.pause`);
      return eventually(() => expect(isLeft(`${kind}.paused`)).toBe(true));
    };
    return { gateway, breakThread, pause, mend: (kind) => unlinkSync(join(folder, kind)), isLeft };
  }

  /** Decided, and on the way to the log. */
  const entriesInFlight = async (gateway: TestGateway): Promise<number> =>
    Number(/^svc_audit_entries_in_flight (\d+)/m.exec((await gateway.call('GET', '/metrics')).body)?.[1]);

  /** The threads of a gateway that can die in each arrangement, and their names in the log. */
  const DEATHS = [
    {
      env: THREADED,
      deaths: [
        { kind: 'audit', words: 'the audit thread' },
        { kind: 'io', words: 'I/O thread \\d' },
      ],
    },
    { env: IN_MAIN_WITH_AUDIT_THREAD, deaths: [{ kind: 'audit', words: 'the audit thread' }] },
    {
      env: IN_MAIN,
      deaths: [
        { kind: 'audit.write', words: 'the writing of the audit log' },
        { kind: 'io', words: 'the doors' },
      ],
    },
  ];

  test.each(DEATHS)('one that dies restarts, callers get an error, none hangs ($env)', async ({ env, deaths }) => {
    const { gateway, breakThread } = await breakable(env);
    for (const { kind, words } of deaths) {
      const load = startLoad(gateway, `broken-${kind}`);
      for (let round = 0; round < 2; round += 1) {
        const before = load.answered.length;
        await eventually(() => expect(load.answered.length).toBeGreaterThan(before + 200));
        breakThread(kind);
        await eventually(() =>
          expect(gateway.output.stderr.match(new RegExp(`${words} died; restarting it`, 'g'))).toHaveLength(round + 1),
        );
      }
      // It works as before.
      await eventually(async () => expect(await check(gateway, 'again')).toMatchObject({ decision: 'DECISION_ALLOW' }));
      const allowedBefore = load.answered.filter(({ decision }) => decision === 'DECISION_ALLOW').length;
      await eventually(() =>
        expect(load.answered.filter(({ decision }) => decision === 'DECISION_ALLOW').length).toBeGreaterThan(
          allowedBefore + 200,
        ),
      );
      await load.stop();
      expect(load.failed).not.toContain('TimeoutError');
      const unrecorded = load.answered.filter(({ decision }) => decision !== 'DECISION_ALLOW');
      expect(
        unrecorded.filter(
          ({ reason, decision }) =>
            !(
              decision === 'DECISION_DENY' &&
              reason === 'the audit log cannot be written; until it can, everything that must be recorded is refused'
            ) && decision !== 'unavailable',
        ),
      ).toEqual([]);
      await expectAllRecorded(gateway, load.answered);
    }
    expect(gateway.process.exitCode).toBeNull();
  });

  test.each([
    ['I/O thread 0', '1'],
    ['the doors', '0'],
  ])('the death and return of %s are logged once each, and no counter falls', async (who, ioThreads) => {
    const { gateway, breakThread } = await breakable({ SVC_IO_THREADS: ioThreads });
    const counted = async (name: string): Promise<number> =>
      Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await gateway.call('GET', '/metrics')).body)?.[1]);
    for (let nth = 0; nth < 20; nth += 1) await check(gateway, `before-${nth}`);
    const REQUESTS = 'svc_requests_total\\{door="connect"\\}';
    await eventually(async () =>
      expect({ requests: await counted(REQUESTS), checks: await counted('svc_check_duration_seconds_count') }).toEqual({
        requests: 21,
        checks: 20,
      }),
    );
    breakThread('io');
    await eventually(() => expect(gateway.output.stderr).toContain(`${who} is running again`));
    expect(gateway.output.stderr.match(new RegExp(`${who} (died; restarting it|is running again)`, 'g'))).toEqual([
      `${who} died; restarting it`,
      `${who} is running again`,
    ]);
    expect(await counted(REQUESTS)).toBe(21);
    await check(gateway, 'after');
    await eventually(async () =>
      expect({ requests: await counted(REQUESTS), checks: await counted('svc_check_duration_seconds_count') }).toEqual({
        requests: 22,
        checks: 21,
      }),
    );
    breakThread('crypto');
    await gateway.call('POST', '/api/v1/auth/token', undefined, ADMIN_KEY);
    await eventually(async () => {
      await gateway.call('POST', '/api/v1/auth/token', undefined, ADMIN_KEY);
      expect(await counted('svc_threads_restarted_total')).toBe(2);
    });
  });

  test.each([THREADED, IN_MAIN_WITH_AUDIT_THREAD])(
    'the audit thread between count and notification: answers arrive (%j)',
    async (env) => {
      const { gateway, breakThread } = await breakable(env);
      const load = startLoad(gateway, 'counted');
      await eventually(() => expect(load.answered.length).toBeGreaterThan(100));
      breakThread('audit.counted');
      await eventually(() => expect(gateway.output.stderr).toMatch(/the audit thread died; restarting it/));
      await eventually(async () => expect(await check(gateway, 'again')).toMatchObject({ decision: 'DECISION_ALLOW' }));
      await load.stop();
      expect(load.failed).toEqual([]);
      await expectAllRecorded(gateway, load.answered);
    },
  );

  test('an answer for a dead thread reaches no request of its replacement', async () => {
    const { gateway, breakThread, pause, mend } = await breakable({ SVC_IO_THREADS: '1' });
    const decided = (count: number): Promise<void> =>
      eventually(async () => expect(await entriesInFlight(gateway)).toBe(count));
    await pause('audit'); // answers are held back from here on
    const allowed = Promise.allSettled(Array.from({ length: 40 }, (_, at) => check(gateway, `before-${at}`)));
    await decided(40);
    breakThread('io');
    expect((await allowed).every(({ status }) => status === 'rejected')).toBe(true);
    await decided(40); // the next thread listens
    const denied = Array.from({ length: 80 }, (_, at) => check(gateway, `after-${at}`, 'no_tool_of_any_policy'));
    await decided(120);
    mend('audit.pause');
    expect((await Promise.all(denied)).filter(({ decision }) => decision !== 'DECISION_DENY')).toEqual([]);
  });

  test("operations with an unrecorded check are over after the audit thread's death", async () => {
    const { gateway, breakThread, pause, mend } = await breakable();
    const load = startLoad(gateway, 'revoked');
    await eventually(() => expect(load.answered.length).toBeGreaterThan(200));
    // It dies with some of them in its hands.
    await pause('audit');
    await eventually(async () => expect(await entriesInFlight(gateway)).toBeGreaterThan(0));
    breakThread('audit');
    mend('audit.pause');
    await eventually(() => expect(gateway.output.stderr).toMatch(/the audit thread died; restarting it/));
    await eventually(async () => expect(await check(gateway, 'again')).toMatchObject({ decision: 'DECISION_ALLOW' }));
    await load.stop();
    const unrecorded = load.answered.filter(({ decision }) => decision !== 'DECISION_ALLOW').slice(0, 50);
    expect(unrecorded.length).toBeGreaterThan(0);
    for (const { opId } of unrecorded) {
      const { status, body } = await gateway.call('GET', `/api/v1/ops/${opId}`);
      expect([404, 'terminated']).toContain(status === 404 ? 404 : body.state);
    }
  });

  test('a crypto thread: tokens are issued and verified as before', async () => {
    const { gateway, breakThread, isLeft } = await breakable();
    const token = async (): Promise<string> =>
      (await gateway.call('POST', '/api/v1/auth/token', undefined, ADMIN_KEY)).body.token;
    expect((await gateway.call('GET', '/api/v1/ops', undefined, await token())).status).toBe(200);
    breakThread('crypto');
    expect((await gateway.call('POST', '/api/v1/auth/token', undefined, ADMIN_KEY)).status).toBe(500); // what it was at work on
    expect(isLeft('crypto')).toBe(false);
    await eventually(async () =>
      expect((await gateway.call('GET', '/api/v1/ops', undefined, await token())).status).toBe(200),
    );
    expect(gateway.process.exitCode).toBeNull();
  });

  test('SIGTERM right after a thread died still ends with 0', async () => {
    for (const kind of ['audit', 'io']) {
      const { gateway, breakThread } = await breakable();
      breakThread(kind);
      await eventually(() => expect(gateway.output.stderr).toMatch(/died; restarting it/));
      expect({ kind, exitCode: await gateway.stop('SIGTERM') }).toEqual({ kind, exitCode: 0 });
    }
  });

  test('SIGTERM while the audit thread restarts still ends with 0', async () => {
    const { gateway, breakThread, isLeft } = await breakable();
    breakThread('audit.hold');
    breakThread('audit');
    await eventually(() => expect(isLeft('audit.hold')).toBe(false));
    expect(await gateway.stop('SIGTERM')).toBe(0);
    expect(gateway.output.stderr.match(/died; restarting it/g)).toHaveLength(1); // the one that was ended did not die
  });

  test('SIGTERM does not wait for threads that keep dying', async () => {
    const { gateway, breakThread, isLeft } = await breakable({ SVC_IO_THREADS: '8', SVC_SHUTDOWN_SECS: '2' });
    for (let deaths = 1; deaths <= 7; deaths += 1) {
      breakThread('io');
      await eventually(() => expect(isLeft('io')).toBe(false));
      await eventually(() => expect(gateway.output.stderr.match(/died; restarting it/g)).toHaveLength(deaths));
    }
    expect(gateway.output.stderr).toContain('"delayMs":6400');
    expect(await gateway.stop('SIGTERM')).toBe(0); // 'SIGTERM' if it had to be killed because it took too long
  });

  test('a stuck I/O thread keeps nothing else from being closed in order', async () => {
    const locksLeft: boolean[] = [];
    while (locksLeft.length < 3 && !locksLeft.includes(false)) {
      const { gateway, pause } = await breakable({ SVC_SHUTDOWN_SECS: '1', SVC_IO_THREADS: '1' });
      await pause('io');
      await gateway.stop('SIGTERM');
      locksLeft.push(existsSync(join(gateway.dataDir, 'lock')));
    }
    // A single success of three suffices: a machine that stands still may use up the three seconds that are left after
    // the bound.
    expect(locksLeft).toContain(false);
  });
});
