/** An audit log that cannot be written, on a file system that is really full (docs/spec.md, Audit). */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { ARRANGEMENTS } from '../support/arrangements.ts';
import { auditEntries } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { LOAD_AGENT, LOAD_TOKEN, registerLoadAgent, startLoad } from '../support/load.ts';

const UNWRITABLE = 'the audit log cannot be written; until it can, everything that must be recorded is refused';

/**
 * Mounts a small file system where the audit log belongs, or the store; undefined with the reason where that is not
 * allowed.
 */
function mountSmall(dataDir: string, size: string, part: 'audit' | 'store' = 'audit'): string | undefined {
  const folder = join(dataDir, 'data', part);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return undefined;
}

function probeMount(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mount-'));
  const refused = process.platform === 'linux' ? mountSmall(folder, '1m') : 'no tmpfs here';
  if (refused === undefined) execFileSync('umount', [join(folder, 'data', 'audit')]);
  rmSync(folder, { recursive: true, force: true });
  return refused;
}

const refused = probeMount();

async function startOnSmallDisk(
  env: Record<string, string> = {},
  part: 'audit' | 'store' = 'audit',
): Promise<TestGateway> {
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-full-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  mountSmall(dataDir, '2m', part);
  onTestFinished(() => void execFileSync('umount', ['-l', join(dataDir, 'data', part)]));
  const gateway = await startTestGateway({ dataDir, env });
  onTestFinished(async () => {
    await gateway.stop('SIGKILL');
  });
  await registerLoadAgent(gateway);
  return gateway;
}

/** Leaves `leftBytes`, and returns what makes room again. */
function fillDisk(gateway: TestGateway, leftBytes: number, part: 'audit' | 'store' = 'audit'): () => void {
  const folder = join(gateway.dataDir, part);
  const { bavail, bsize } = statfsSync(folder);
  const ballast = join(folder, '.ballast');
  writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - leftBytes)));
  return () => rmSync(ballast);
}

const check = async (gateway: TestGateway, traceId: string) =>
  (
    await gateway.call(
      'POST',
      '/svc.governance.v1.PolicyService/CheckAction',
      {
        agent: LOAD_AGENT,
        credentialToken: LOAD_TOKEN,
        traceId,
        spanId: 's',
        action: 'tool.call',
        resource: 'web_search',
      },
      null,
    )
  ).body;

describe.skipIf(refused !== undefined)(`on a full disk${refused === undefined ? '' : ` (skipped: ${refused})`}`, () => {
  test.each(ARRANGEMENTS)('checks are denied until there is room again ($arrangement)', async ({ env }) => {
    const gateway = await startOnSmallDisk(env);
    const makeRoom = fillDisk(gateway, 200_000);
    const load = startLoad(gateway, 'full', 8);
    await eventually(() =>
      expect(load.answered.filter(({ decision }) => decision === 'DECISION_DENY').length).toBeGreaterThan(100),
    );
    const allowed = load.answered.filter(({ decision }) => decision === 'DECISION_ALLOW');
    expect(allowed.length).toBeGreaterThan(0);
    expect(
      new Set(
        load.answered
          .filter(({ decision }) => decision !== 'DECISION_ALLOW')
          .map(({ decision, reason }) => `${decision}: ${reason}`),
      ),
    ).toEqual(new Set([`DECISION_DENY: ${UNWRITABLE}`]));

    // Reading goes on; what would have to be recorded does not.
    expect((await gateway.call('GET', '/api/v1/ops')).status).toBe(200);
    expect((await gateway.call('POST', `/api/v1/ops/${allowed[0]!.opId}/pause`)).body).toMatchObject({
      status: 503,
      code: 'audit_unavailable',
    });
    // A single entry may still fit where a batch does not; then it is there.
    const { status } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'late', scopes: ['read'] });
    expect(
      auditEntries(gateway.dataDir).filter(
        ({ event_type, payload }) => event_type === 'ApiKeyCreated' && payload.name === 'late',
      ),
    ).toHaveLength(status === 201 ? 1 : 0);

    makeRoom();
    await eventually(async () =>
      expect(await check(gateway, 'recovered')).toMatchObject({ decision: 'DECISION_ALLOW' }),
    );
    await load.stop();
    expect(load.failed).toEqual([]);

    // Every Allow is in the log, every operation that runs has one, and the chain holds.
    const entries = auditEntries(gateway.dataDir);
    const byId = new Map(entries.map((entry) => [entry.id, entry]));
    expect(
      load.answered.filter(
        ({ opId, decision, auditId }) => decision === 'DECISION_ALLOW' && byId.get(auditId)?.op_id !== opId,
      ),
    ).toEqual([]);
    expect(await verifyAuditLog(join(gateway.dataDir, 'audit'))).toMatchObject({ ok: true });
    const recorded = new Set(
      entries.filter(({ event_type }) => event_type === 'ActionAllowed').map(({ op_id }) => op_id),
    );
    const running: string[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await gateway.call('GET', `/api/v1/ops?state=running&per_page=1000${cursor}`);
      running.push(...body.ops.map(({ op_id }: { op_id: string }) => op_id));
      if (body.next_cursor === null) break;
      cursor = `&cursor=${body.next_cursor}`;
    }
    expect(running.filter((opId) => !recorded.has(opId))).toEqual([]);
    expect(running).toContain('recovered:s');
    // Said once for each time that it happened, not once for each check.
    expect(gateway.output.stderr.match(/the audit log cannot be written/g)?.length).toBeLessThan(20);

    // And it is a log that the next start takes as it is.
    expect(await gateway.stop('SIGTERM')).toBe(0);
    const next = await startTestGateway({ dataDir: join(gateway.dataDir, '..') });
    onTestFinished(async () => {
      await next.stop('SIGKILL');
    });
    expect(await check(next, 'next')).toMatchObject({ decision: 'DECISION_ALLOW' });
    expect(await verifyAuditLog(join(next.dataDir, 'audit'))).toMatchObject({ ok: true });
  });

  test.each(ARRANGEMENTS)('with SVC_AUDIT_ON_FAILURE=allow checks are allowed ($arrangement)', async ({ env }) => {
    const gateway = await startOnSmallDisk({ ...env, SVC_AUDIT_ON_FAILURE: 'allow' });
    const makeRoom = fillDisk(gateway, 100_000);
    const load = startLoad(gateway, 'allowed', 8);
    await eventually(() => expect(load.answered.filter(({ auditId }) => auditId === 0).length).toBeGreaterThan(300));
    expect(new Set(load.answered.map(({ status, decision }) => `${status} ${decision}`))).toEqual(
      new Set(['200 DECISION_ALLOW']),
    );
    const unrecorded = load.answered.filter(({ auditId }) => auditId === 0).at(-1)!;
    expect((await gateway.call('GET', `/api/v1/ops/${unrecorded.opId}`)).body).toMatchObject({ state: 'running' });
    expect(gateway.output.stderr).toMatch(/the audit log cannot be written/);
    expect(gateway.output.stderr.match(/the audit log cannot be written/g)?.length).toBeLessThan(20);
    const metrics = (await gateway.call('GET', '/metrics')).body as string;
    expect(Number(/^svc_audit_entries_lost_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThan(300);
    expect(metrics).toMatch(/^svc_audit_writable 0$/m);
    // Credentials are not made or revoked without a record.
    expect(await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'unrecorded', scopes: ['read'] })).toMatchObject({
      status: 503,
      body: { code: 'audit_unavailable', detail: UNWRITABLE },
    });
    // Ready for checks, and in words that a monitor can tell from being whole.
    expect(await gateway.call('GET', '/readyz', undefined, null)).toMatchObject({
      status: 200,
      body: { status: 'degraded', audit: 'unwritable' },
    });
    makeRoom();
    await eventually(async () => expect(Number((await check(gateway, 'recorded')).auditId)).toBeGreaterThan(0));
    await eventually(async () =>
      expect((await gateway.call('GET', '/readyz', undefined, null)).body).toMatchObject({
        status: 'ready',
        audit: 'writable',
      }),
    );
    await load.stop();
    expect(load.failed).toEqual([]);
    await eventually(() =>
      expect(gateway.output.stderr).toMatch(/"entriesLost":\d+,"msg":"the audit log can be written again"/),
    );
    expect(await verifyAuditLog(join(gateway.dataDir, 'audit'))).toMatchObject({ ok: true });
  });

  test('a full store answers 503 and loses nothing, while checks continue', async () => {
    const gateway = await startOnSmallDisk({}, 'store');
    const use = async (usageId: string) => {
      const { status, body } = await gateway.call('POST', '/api/v1/usage', {
        agent: { org_id: 'acme', team_id: 'search', agent_id: 'buyer' },
        cost_usd: 1,
        usage_id: usageId,
      });
      return status === 200 ? body.status : `${status} ${body.code}`;
    };
    expect(await use('first')).toBe('ok');
    const makeRoom = fillDisk(gateway, 0, 'store');
    const refusedIds: string[] = [];
    for (let nth = 0; nth < 200 && refusedIds.length < 3; nth += 1)
      if ((await use(`full-${nth}`)) === '503 store_unreachable') refusedIds.push(`full-${nth}`);
    expect(refusedIds).toHaveLength(3);
    expect((await check(gateway, 'full')).decision).toBe('DECISION_ALLOW');
    const keysMade: unknown[] = [];
    const createKey = async () =>
      (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'late', scopes: ['read'] })).body;
    for (let nth = 0; nth < 50 && !keysMade.some((made: any) => made.status === 503); nth += 1)
      keysMade.push(await createKey());
    expect(keysMade.at(-1)).toEqual({
      type: 'urn:svc-gateway:problem:store_unreachable',
      title: 'Service Unavailable',
      status: 503,
      code: 'store_unreachable',
      detail: 'the database is unreachable or not writable at the moment; try again shortly',
      retry_after_secs: 2,
    });
    const registered = await Promise.all(
      Array.from({ length: 20 }, (_, nth) =>
        gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', {
          agent: { orgId: 'acme', teamId: 'search', agentId: `late-${nth}` },
        }),
      ),
    );
    expect(registered.map(({ status, body }) => `${status} ${body.code}`)).toContain('503 unavailable');
    expect(registered.every(({ status }) => status === 200 || status === 503)).toBe(true);
    expect(gateway.output.stderr).toMatch(
      /"error":"cannot use [^"]+gateway.sqlite: the disk is full \(ENOSPC\); free some space, or choose another SVC_DATA_DIR","msg":"createApiKey failed"/,
    );
    // However many requests it was that failed, and without a stack of the library for each.
    for (const doing of ['createApiKey', 'writing to the embedded store'])
      expect(gateway.output.stderr.match(new RegExp(`"${doing} failed"`, 'g'))).toHaveLength(1);
    expect(gateway.output.stderr).not.toContain('    at ');
    expect(await gateway.call('GET', '/readyz', undefined, null)).toMatchObject({
      status: 200,
      body: { status: 'degraded', audit: 'writable', store: 'unwritable' },
    });
    expect((await gateway.call('GET', '/metrics')).body).toMatch(/^svc_store_writable 0$/m);
    makeRoom();
    await eventually(() =>
      expect(gateway.output.stderr.match(/the embedded store can be written again/g)).toHaveLength(1),
    );
    expect((await gateway.call('GET', '/readyz', undefined, null)).body).toEqual({
      status: 'ready',
      audit: 'writable',
      database: 'not_configured',
    });
    expect((await gateway.call('GET', '/metrics')).body).toMatch(/^svc_store_writable 1$/m);
    expect(await createKey()).toMatchObject({ name: 'late' });
    for (const usageId of refusedIds) expect(await use(usageId)).toBe('ok');
    const spent = async () =>
      (await gateway.call('GET', '/api/v1/budgets?org_id=acme')).body.budgets[0].daily.spent_usd;
    const lastRefused = Number(refusedIds.at(-1)?.slice('full-'.length));
    expect(await spent()).toBe(1 + lastRefused + 1);
    expect(await gateway.stop()).toBe(0);
  });

  test('a failed store write is reported to its own caller, also when the next succeeds', () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-full-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    mountSmall(folder, '1m', 'store');
    onTestFinished(() => void execFileSync('umount', ['-l', join(folder, 'data', 'store')]));
    const script = `
      import { openEmbeddedStore } from ${JSON.stringify(new URL('../../dist/src/stores/embedded/store.js', import.meta.url).href)};
      const table = openEmbeddedStore(${JSON.stringify(join(folder, 'data'))}).table('rows');
      const outcome = (write) => write.then(() => 'kept', ({ name, code }) => name + ' ' + code);
      console.log(await outcome(table.put('small', 0)));
      for (let round = 1; round <= 6; round += 1) {
        const large = table.put('large', 'x'.repeat(2_000_000));
        await Promise.resolve().then(() => undefined);
        const next = table.put('small', round);
        console.log(await outcome(large), await outcome(next), table.get('small'));
      }
      process.exit();`;
    const file = join(folder, 'write.mjs');
    writeFileSync(file, script);
    const output = execFileSync(process.execPath, [file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    expect(output.trim().split('\n')).toEqual([
      'kept',
      ...Array.from({ length: 6 }, (_, nth) => `StoreUnwritable ENOSPC kept ${nth + 1}`),
    ]);
  });
});
