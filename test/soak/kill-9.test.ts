/** No answered decision is lost, and no answered spend, whenever the process ends (docs/spec.md, Audit). */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { ARRANGEMENTS } from '../support/arrangements.ts';
import { auditEntries } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { type Answered, registerLoadAgent, startLoad } from '../support/load.ts';
import { ALLOW_ALL, policyFile } from '../support/policies.ts';
import { randomOf } from '../support/random.ts';
import { startSoak } from '../support/soak.ts';

const KILLS = 200;
/** Late enough for a backlog, early enough for the first writes. */
const LONGEST_LIFE_MS = 1_500;
const COST_USD = 0.001;
/** Known to no other gateway: one that is given the port of a killed one must not answer for it. */
const KEY = `kill-9-${randomUUID()}`;
const USAGE = { agent: { org_id: 'acme', team_id: 'search', agent_id: 'crawler' }, cost_usd: COST_USD };

const dataDir = mkdtempSync(join(tmpdir(), 'svc-kill-'));
let gateway: TestGateway | undefined;

const spentUsd = async (of: TestGateway): Promise<number> =>
  (await of.call('GET', '/api/v1/budgets', undefined, KEY)).body.budgets[0].monthly.spent_usd;

/** Reports spend until the gateway is gone; resolves with how many reports were answered. */
async function reportSpend(to: TestGateway): Promise<number> {
  for (let answered = 0; ; answered += 1) {
    const status = await to.call('POST', '/api/v1/usage', USAGE, KEY).then(
      ({ status }) => (status === 401 ? undefined : status),
      () => undefined,
    );
    if (status === undefined) return answered;
    expect(status).toBe(200);
  }
}

describe('kill -9 at random moments', () => {
  afterAll(async () => {
    await gateway?.stop('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('loses no answered decision and no answered spend', async () => {
    const soak = startSoak('kill-9');
    const random = randomOf(soak.seed);
    const kills = soak.of(KILLS);
    const policy = policyFile(`${ALLOW_ALL}budget: { monthly_limit_usd: 1000000 }\n`).path;
    const answered: Answered[] = [];
    let reports = 0;
    let cutOff = 0;
    let slowestStartMs = 0;
    for (let kill = 0; kill < kills; kill += 1) {
      const startMs = performance.now();
      const { env } = ARRANGEMENTS[kill % ARRANGEMENTS.length]!;
      gateway = await startTestGateway({
        dataDir,
        env: { ...env, SVC_POLICY_PATH: policy, SVC_BOOTSTRAP_API_KEY: KEY },
      });
      slowestStartMs = Math.max(slowestStartMs, performance.now() - startMs);
      expect(await spentUsd(gateway), `spend after ${kill} kills`).toBeGreaterThanOrEqual(reports * COST_USD - 1e-9);
      if (kill === 0) await registerLoadAgent(gateway, KEY);
      const load = startLoad(gateway, `kill-${kill}`, 16, Number.POSITIVE_INFINITY);
      const reporting = Promise.all(Array.from({ length: 4 }, () => reportSpend(gateway!)));
      await eventually(() => expect(load.answered.length).toBeGreaterThan(0));
      await sleep(random() * LONGEST_LIFE_MS);
      expect(await gateway.stop('SIGKILL')).toBe('SIGKILL');
      cutOff += load.pending();
      await load.stop();
      reports += (await reporting).reduce((sum, count) => sum + count, 0);
      answered.push(...load.answered);
    }
    const byId = new Map(auditEntries(join(dataDir, 'data')).map((entry) => [entry.id, entry]));
    expect(answered.filter(({ decision }) => decision !== 'DECISION_ALLOW')).toEqual([]);
    const missing = answered.filter(({ opId, auditId }) => byId.get(auditId)?.op_id !== opId);
    expect(missing).toEqual([]);
    expect(await verifyAuditLog(join(dataDir, 'data', 'audit'))).toMatchObject({ ok: true, entries: byId.size });
    soak.done({
      kills,
      'answered decisions': answered.length,
      'of them not in the audit log': missing.length,
      'requests that a kill cut off': cutOff,
      'answered reports of spend': reports,
      'restarts with less spend than was answered': 0,
      'entries of the audit log, in one unbroken chain': byId.size,
      'slowest restart': `${(slowestStartMs / 1_000).toFixed(1)} s`,
    });
  });
});
