/**
 * Tables that gateways share in the database: the ledger against the one in TypeScript, people's decisions, webhooks.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ok } from '../../../../src/core/base/result.ts';
import type { AccountRow } from '../../../../src/core/budget/escrow.ts';
import { GIVE_UP_AFTER_MS, type Webhook } from '../../../../src/core/webhooks/webhook.ts';
import type { RunId } from '../../../../src/ports/cluster.ts';
import type { MessageWrites, SharedWebhooks } from '../../../../src/ports/webhook-store.ts';
import { createPostgresMembers, type Settlement } from '../../../../src/stores/postgres/cluster/members.ts';
import { createPostgresPolicies } from '../../../../src/stores/postgres/cluster/policies.ts';
import { createPostgresWebhooks } from '../../../../src/stores/postgres/cluster/webhooks.ts';
import { ModelLedger } from '../../../support/model-ledger.ts';
import { withPostgres } from '../../../support/postgres.ts';
import { byOwner, openPostgresLedger, PERIOD, rowOf } from '../../../support/postgres-ledger.ts';

const newDatabase = withPostgres();
const HOUR_MS = 3_600_000;
const RUNS = 3;
const OWNERS = ['global', 'org/acme', 'team/acme/search'];

const openLedger = () => openPostgresLedger(newDatabase);

describe('the ledger in the database', () => {
  test('answers as the one in TypeScript does', async () => {
    const { client, join, ledgerOf } = await openLedger();
    const model = new ModelLedger();
    const runs = await Promise.all(Array.from({ length: RUNS }, (_, at) => join(`gateway-${at}`)));
    for (const run of runs) model.join(run);
    let state = 7;
    const random = (most: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * (most + 1));
    };
    const sides = runs.map((run) => ({
      run,
      ledger: ledgerOf(run),
      sequence: 0,
      accounts: OWNERS.map(() => ({ granted: 0, spent: 0 })),
    }));
    for (let step = 0; step < 300; step += 1) {
      const side = sides[random(RUNS - 1)]!;
      const isLate = random(9) === 0;
      if (!isLate) side.sequence += 1;
      const rows = OWNERS.map((owner, at) => {
        const account = side.accounts[at]!;
        if (!isLate) {
          // Now and then more is spent than was granted, as usage records may.
          account.spent = Math.min(account.spent + random(20), account.granted + (random(19) === 0 ? 30 : 0));
          if (random(29) === 0) account.spent = random(account.spent); // it counts the period again
          account.granted = Math.max(account.spent, account.granted - random(2) * random(50));
        }
        return rowOf(owner, {
          capMicroUsd: at === 2 ? Infinity : 1_000,
          keptMicroUsd: account.granted,
          spentMicroUsd: account.spent,
          neededMicroUsd: random(2) === 0 ? random(60) : 0,
          wantedMicroUsd: random(300),
        });
      });
      const expected = model.exchange(side.run, side.sequence, rows);
      const answered = await side.ledger.exchange(side.sequence, rows);
      expect(answered.ok && answered.value && byOwner(answered.value)).toEqual(
        expected === undefined || expected === 'replaced' ? undefined : byOwner(expected),
      );
      if (expected === undefined || expected === 'replaced') continue;
      for (const [at, { grantedMicroUsd }] of expected.entries()) side.accounts[at]!.granted = grantedMicroUsd;
    }
    const { rows } = await client.query('SELECT owner, spent::int, out::int FROM budget_account ORDER BY owner');
    expect(rows).toEqual(
      OWNERS.map((owner) => {
        const { spent, out } = model.accounts.get(`${owner} ${PERIOD}`)!;
        return { owner, spent, out };
      }),
    );
  });

  test('hears what was spent in a period that is over, and grants nothing in it', async () => {
    const { client, join, ledgerOf } = await openLedger();
    const over = { fromMs: Date.now() - 26 * HOUR_MS, toMs: Date.now() - 2 * HOUR_MS };
    const row = rowOf('org/acme', { ...over, keptMicroUsd: 400, spentMicroUsd: 400, neededMicroUsd: 1 });
    const answered = await ledgerOf(await join('gateway')).exchange(1, [row]);
    expect(answered).toMatchObject({ ok: true, value: [{ grantedMicroUsd: 400, spentByAllMicroUsd: 400 }] });
    const { rows } = await client.query('SELECT spent::int, out::int FROM budget_account');
    expect(rows).toEqual([{ spent: 400, out: 0 }]);
  });

  test('forgets nothing of a period that a run counts again', async () => {
    const { client, join, ledgerOf } = await openLedger();
    const run = await join('gateway');
    const said = async (sequence: number, more: Partial<AccountRow>) => {
      const answered = await ledgerOf(run).exchange(sequence, [rowOf('org/acme', more)]);
      const { rows } = await client.query('SELECT spent::int, out::int FROM budget_account');
      const granted = answered.ok ? answered.value?.map(({ grantedMicroUsd }) => grantedMicroUsd) : answered.fault;
      return { granted, account: rows };
    };
    expect(await said(1, { spentMicroUsd: 400, neededMicroUsd: 100 })).toEqual({
      granted: [500],
      account: [{ spent: 400, out: 100 }],
    });
    expect(await said(2, { spentMicroUsd: 0 })).toEqual({ granted: [0], account: [{ spent: 400, out: 0 }] });
    expect(await said(3, { neededMicroUsd: 601 })).toEqual({ granted: [0], account: [{ spent: 400, out: 0 }] });
    expect(await said(4, { neededMicroUsd: 600 })).toEqual({ granted: [600], account: [{ spent: 400, out: 600 }] });
    expect(await said(5, { keptMicroUsd: 600, spentMicroUsd: 450 })).toEqual({
      granted: [600],
      account: [{ spent: 450, out: 150 }],
    });
  });

  test('settles a run: spend exactly, the rest once its reservations have expired', async () => {
    const { client, join, ledgerOf, postgres } = await openLedger();
    const before = await join('gateway');
    const needs = { neededMicroUsd: 600, wantedMicroUsd: 600, spentMicroUsd: 0 };
    await ledgerOf(before).exchange(1, [rowOf('org/acme', needs)]);
    const account = async () =>
      (await client.query(`SELECT spent::int, out::int FROM budget_account WHERE owner = 'org/acme'`)).rows[0];
    expect(await account()).toEqual({ spent: 0, out: 600 });
    // More than one statement takes, most of them never reported.
    const agents = Array.from({ length: 2_500 }, (_, at) => `agent/acme/search/${at}`);
    const settlement = {
      run: before,
      owners: [...agents, 'org/acme'],
      periods: [...agents, 'org/acme'].map(() => PERIOD),
      spentMicroUsd: [...agents.map(() => 1), 250],
    };
    const after = randomUUID() as string as RunId;
    const membersOf = (run: RunId, settles: () => Settlement | undefined) =>
      createPostgresMembers({ postgres, pool: postgres, run, leaseMs: 60_000, settles });
    const joining = { name: 'gateway', version: '1', protocols: [1, 1], onOutage: 'serve' } as const;
    // The second time, it is settled already; the third, the run is one that joins again with what it has spent itself.
    for (const last of [before, before, after])
      expect(await membersOf(after, () => ({ ...settlement, run: last })).join({ ...joining, run: after })).toEqual({
        ok: true,
        value: undefined,
      });
    const { rows } = await client.query('SELECT node, state, settled FROM cluster_node ORDER BY settled');
    expect(rows).toEqual([
      { node: 'gateway', state: 'live', settled: false },
      { node: 'gateway', state: 'retired', settled: true },
    ]);
    const total = async () => (await client.query('SELECT sum(spent)::int AS spent FROM budget_account')).rows[0].spent;
    expect([await account(), await total()]).toEqual([{ spent: 250, out: 350 }, 2_750]);
    const members = membersOf(after, () => undefined);
    const grants = async () => (await client.query('SELECT count(*)::int AS n FROM budget_grant')).rows[0].n;
    await members.tidy();
    expect([await account(), await grants()]).toEqual([{ spent: 250, out: 350 }, 2_501]);
    await client.query(`UPDATE cluster_node SET ended_at = ended_at - interval '10 minutes'`);
    await members.tidy();
    expect([await account(), await total(), await grants()]).toEqual([{ spent: 250, out: 0 }, 2_750, 0]);
    const late = await ledgerOf(before).exchange(2, [rowOf('org/acme', needs)]);
    expect(late).toEqual({ ok: false, fault: { kind: 'replaced' } });
  });

  test('frees what a run that has left keeps once its reservations have expired', async () => {
    const { client, join, ledgerOf, postgres } = await openLedger();
    const run = await join('gateway');
    const account = async () =>
      (await client.query(`SELECT spent::int, out::int FROM budget_account WHERE owner = 'org/acme'`)).rows[0];
    await ledgerOf(run).exchange(1, [rowOf('org/acme', { neededMicroUsd: 600, wantedMicroUsd: 600 })]);
    await ledgerOf(run).exchange(2, [rowOf('org/acme', { keptMicroUsd: 400, spentMicroUsd: 100 })]);
    const members = createPostgresMembers({
      ...{ postgres, pool: postgres, run, leaseMs: 60_000 },
      settles: () => undefined,
    });
    await members.leave();
    await members.tidy();
    expect(await account()).toEqual({ spent: 100, out: 300 });
    await client.query(`UPDATE cluster_node SET ended_at = ended_at - interval '10 minutes'`);
    await members.tidy();
    expect(await account()).toEqual({ spent: 100, out: 0 });
  });

  test('lets go of a gateway that has been away for a day, unless it holds money', async () => {
    const { client, join, ledgerOf, postgres } = await openLedger();
    const [here, poor, rich] = [await join('here'), await join('poor'), await join('rich')];
    await ledgerOf(rich).exchange(1, [rowOf('org/acme', { neededMicroUsd: 600 })]);
    await client.query(`UPDATE cluster_node SET lease_until = now() - interval '25 hours' WHERE epoch <> $1`, [here]);
    const members = createPostgresMembers({
      ...{ postgres, pool: postgres, run: here, leaseMs: 60_000 },
      settles: () => undefined,
    });
    await members.tidy();
    const { rows } = await client.query('SELECT node, state FROM cluster_node ORDER BY node');
    expect(rows).toEqual([
      { node: 'here', state: 'live' },
      { node: 'poor', state: 'retired' },
      { node: 'rich', state: 'suspect' },
    ]);
    expect((await ledgerOf(poor).exchange(1, [])).ok).toBe(false);
  });

  test('lists a run that was replaced until its lease has been over for half as long', async () => {
    const { client, join, postgres } = await openLedger();
    const [here, before] = [await join('here'), await join('gateway')];
    await join('gateway');
    const members = createPostgresMembers({
      ...{ postgres, pool: postgres, run: here, leaseMs: 60_000 },
      settles: () => undefined,
    });
    const beat = {
      policyVersion: undefined,
      auditHead: undefined,
      skewMs: 0,
      isOnBus: true,
      isCaughtUp: false,
      applied: { seq: 1, mark: 'x' },
    };
    const retired = async () => {
      const beaten = await members.beat(beat);
      return beaten.ok && beaten.value.filter(({ state }) => state === 'retired').map(({ run }) => run);
    };
    expect(await retired()).toEqual([before]);
    await client.query(`UPDATE cluster_node SET lease_until = now() - interval '25 seconds' WHERE epoch = $1`, [
      before,
    ]);
    expect(await retired()).toEqual([before]);
    await client.query(`UPDATE cluster_node SET lease_until = now() - interval '31 seconds' WHERE epoch = $1`, [
      before,
    ]);
    expect(await retired()).toEqual([]);
  });

  test('forgets periods that are over, usage ids of yesterday, and runs of last month', async () => {
    const { client, join, ledgerOf, postgres } = await openLedger();
    const [here, gone] = [await join('here'), await join('gone')];
    const members = createPostgresMembers({
      postgres,
      pool: postgres,
      run: here,
      leaseMs: 60_000,
      settles: () => undefined,
    });
    const owners = Array.from({ length: 1_200 }, (_, at) => rowOf(`agent/acme/search/${at}`, { spentMicroUsd: 1 }));
    await ledgerOf(here).exchange(1, [...owners, rowOf('org/acme', { spentMicroUsd: 1 })]);
    await client.query(`UPDATE budget_account SET ends_at = now() - interval '49 hours' WHERE owner <> 'org/acme'`);
    await client.query(
      `INSERT INTO usage_id (agent, id, epoch, recorded_at) SELECT 'a', i, $1, now() - CASE WHEN i > 1 THEN interval '26 hours' ELSE '24 hours' END
         FROM generate_series(1, 2500) i`,
      [here],
    );
    await client.query(
      `UPDATE cluster_node SET state = 'retired', settled = true, ended_at = now() - interval '41 days' WHERE epoch = $1`,
      [gone],
    );
    await members.tidy();
    const left = await client.query(
      `SELECT (SELECT count(*)::int FROM budget_account) AS accounts, (SELECT count(*)::int FROM budget_grant) AS grants,
         (SELECT count(*)::int FROM usage_id) AS ids, (SELECT count(*)::int FROM cluster_node) AS runs`,
    );
    expect(left.rows).toEqual([{ accounts: 1, grants: 1, ids: 1, runs: 1 }]);
  });

  test('grants nothing for a period that is not the current one by its own clock', async () => {
    const { join, ledgerOf } = await openLedger();
    const ledger = ledgerOf(await join('gateway'));
    const wanting = { neededMicroUsd: 1, wantedMicroUsd: 10 };
    const inTwoDays = { fromMs: Date.now() + 48 * HOUR_MS, toMs: Date.now() + 72 * HOUR_MS };
    const answered = await ledger.exchange(1, [rowOf('org/acme', { ...wanting, ...inTwoDays })]);
    expect(answered.ok && answered.value?.[0]?.grantedMicroUsd).toBe(0);
    const now = await ledger.exchange(2, [rowOf('org/globex', wanting)]);
    expect(now.ok && now.value?.[0]?.grantedMicroUsd).toBe(10);
  });

  test('grants nothing as another server until every run has said what it holds', async () => {
    const { client, join, ledgerOf } = await openLedger();
    const [one, two] = [ledgerOf(await join('one')), ledgerOf(await join('two'))];
    const wanting = { neededMicroUsd: 1, wantedMicroUsd: 10 };
    await client.query(`UPDATE cluster_server SET started_at = '-infinity'`);
    const server = await one.server();
    let sequence = 0;
    const granted = async (): Promise<number | false | undefined> => {
      sequence += 1;
      const answered = await one.exchange(sequence, [rowOf('org/acme', wanting)]);
      return answered.ok && answered.value?.[0]?.grantedMicroUsd;
    };
    expect(await granted()).toBe(0);
    if (server.ok) await one.stated(server.value);
    // That the other is alive says nothing of what it holds.
    await two.exchange(1, [rowOf('org/globex', wanting)]);
    await two.stated('2026-11-25T12:00:00Z'); // to the server of before
    expect(await granted()).toBe(0);
    if (server.ok) await two.stated(server.value);
    expect(await granted()).toBe(10);
  });

  test('grants nothing under another policy than the active one', async () => {
    const { client, join, ledgerOf } = await openLedger();
    const ledger = ledgerOf(await join('gateway'));
    await client.query(`INSERT INTO policy_active (version, activated_by) VALUES ('v2', 'key:admin')`);
    const wanting = { neededMicroUsd: 1, wantedMicroUsd: 10 };
    const refused = await ledger.exchange(1, [rowOf('org/acme', wanting)]);
    expect(refused.ok && refused.value?.[0]?.grantedMicroUsd).toBe(0);
    await client.query(`UPDATE policy_active SET version = 'v1'`);
    const granted = await ledger.exchange(2, [rowOf('org/acme', wanting)]);
    expect(granted.ok && granted.value?.[0]?.grantedMicroUsd).toBe(10);
  });

  test('forgets a run that is gone: charged, or freed', async () => {
    const { client, join, ledgerOf } = await openLedger();
    const runs = [await join('charged'), await join('freed')];
    const needs = { neededMicroUsd: 300, wantedMicroUsd: 300 };
    for (const run of runs) await ledgerOf(run).exchange(1, [rowOf('org/acme', needs)]);
    await expect(client.query(`SELECT cluster_forget('charged', false, 600000)`)).rejects.toMatchObject({
      code: 'SV003',
    });
    await client.query(`UPDATE cluster_node SET lease_until = now() - interval '11 minutes'`);
    const forget = async (name: string, isFreed: boolean) =>
      (await client.query('SELECT cluster_forget($1, $2, 600000)::int AS total', [name, isFreed])).rows[0].total;
    expect([await forget('charged', false), await forget('freed', true), await forget('freed', true)]).toEqual([
      300,
      300,
      null,
    ]);
    expect((await client.query('SELECT spent::int, out::int FROM budget_account')).rows).toEqual([
      { spent: 300, out: 0 },
    ]);
  });
});

describe('sets of policies, in the database', () => {
  test('are kept by their version', async () => {
    const { postgres } = await openLedger();
    const shelf = createPostgresPolicies(postgres);
    expect(await shelf.active()).toEqual(ok(undefined));
    const texts = [{ file: 'p.yaml', text: 'name: p\u0000' }];
    for (const version of ['v1', 'v2']) await shelf.add({ version, documents: 1, rules: 0 }, texts, 'key:admin');
    expect([await shelf.read('v1'), await shelf.read('v3')]).toEqual([ok(texts), ok(undefined)]);
  });
});

describe('webhooks of all gateways, in the database', () => {
  const hookOf = (id: string, more: Partial<Webhook> = {}): Webhook => ({
    id,
    url: `https://example.com/${id}`,
    events: ['halt.created', 'violation'],
    orgId: null,
    secret: 'whsec_AAAA',
    createdBy: 'key:1',
    createdAtMs: 1_000,
    failingSinceMs: undefined,
    failures: 0,
    lastError: undefined,
    disabledAtMs: undefined,
    dropped: 0,
    ...more,
  });
  const MANY = { number: 1_000, bytes: 1_000_000 };
  const NOTHING: MessageWrites = { added: [], letGo: [], withdrawn: [], dropped: new Map() };
  const messageOf = (id: string, isHeld = false, hookId = 'h') => ({
    id,
    hookId,
    body: `"${id}"`,
    isOnce: false,
    isHeld,
  });
  const add = (store: SharedWebhooks, ...added: MessageWrites['added']) => store.write({ ...NOTHING, added }, MANY);
  const idsOf = async (taken: ReturnType<SharedWebhooks['take']>) => {
    const result = await taken;
    return result.ok ? result.value.map(({ id }) => id) : result.fault.kind;
  };

  async function openWebhooks() {
    const { client, join, postgres } = await openLedger();
    const runs = [await join('one'), await join('two')] as const;
    const [one, two] = runs.map((run) => createPostgresWebhooks(postgres, run)) as [SharedWebhooks, SharedWebhooks];
    expect(await one.create(hookOf('h'), { inAll: 100, ofOrg: 10 })).toEqual(ok(true));
    return { client, join, one, two, runs };
  }

  test('are called by one run at a time, in order, and by another once its time is over', async () => {
    const { client, one, two } = await openWebhooks();
    await add(one, messageOf('m1'), messageOf('m2'));
    await add(two, messageOf('m3'));
    const taken = await Promise.all([one, two, one, two].map((store) => idsOf(store.take(60_000, 100))));
    expect(taken.flat()).toEqual(['m1']);
    const [mine, other] = taken[0]!.length + taken[2]!.length > 0 ? [one, two] : [two, one];
    expect(await mine.note({ hookId: 'h', id: 'm1', failure: undefined })).toEqual(ok(undefined));
    expect(await idsOf(other.take(60_000, 100))).toEqual(['m2']);
    // It has died, and is found to have sent it after all.
    await client.query('UPDATE webhook SET call_until = now()');
    expect(await mine.take(60_000, 100)).toEqual(
      ok([{ hookId: 'h', url: 'https://example.com/h', secret: 'whsec_AAAA', id: 'm2', body: '"m2"', failures: 0 }]),
    );
    const failure = { reason: 'late', retryMs: 0 };
    expect(await other.note({ hookId: 'h', id: 'm2', failure })).toEqual(ok(undefined));
    expect(await other.note({ hookId: 'h', id: 'm2', failure: undefined })).toEqual(ok(undefined));
    expect(await idsOf(other.take(60_000, 100))).toEqual([]);
    await mine.note({ hookId: 'h', id: 'm2', failure: undefined });
    expect(await idsOf(other.take(60_000, 100))).toEqual(['m3']);
  });

  test('are given to another maker, unless they are gone', async () => {
    const { one, two } = await openWebhooks();
    expect(await one.give('h', 'key:2')).toEqual(ok(true));
    expect(await two.list()).toMatchObject(ok([{ hook: { id: 'h', createdBy: 'key:2' } }]));
    expect(await two.remove('h')).toEqual(ok(undefined));
    expect(await one.give('h', 'key:3')).toEqual(ok(false));
  });

  test('wait for the run that holds a message, unless it is gone', async () => {
    const { client, one, two, runs } = await openWebhooks();
    await add(one, messageOf('m1', true), messageOf('m2', true), messageOf('m3', true));
    expect(await idsOf(two.take(0, 100))).toEqual([]);
    await two.write({ ...NOTHING, letGo: ['m1'], withdrawn: ['m1'] }, MANY);
    expect(await idsOf(two.take(0, 100))).toEqual([]);
    await one.write({ ...NOTHING, letGo: ['m2'], withdrawn: ['m1'] }, MANY);
    expect(await idsOf(two.take(0, 100))).toEqual(['m2']);
    await two.note({ hookId: 'h', id: 'm2', failure: undefined });
    expect(await idsOf(two.take(0, 100))).toEqual([]);
    await client.query(`UPDATE cluster_node SET lease_until = now() - interval '4 seconds' WHERE epoch = $1`, [
      runs[0],
    ]);
    expect(await idsOf(two.take(0, 100))).toEqual([]);
    await client.query(`UPDATE cluster_node SET lease_until = now() - interval '6 seconds' WHERE epoch = $1`, [
      runs[0],
    ]);
    expect(await idsOf(two.take(0, 100))).toEqual(['m3']);
  });

  test('are written once though repeated, as many as fit, and a cap by the first', async () => {
    const { one, two } = await openWebhooks();
    const few = { number: 3, bytes: 1_000 };
    const held = { ...NOTHING, added: [messageOf('m1', true)] };
    for (const writes of [held, held, { ...NOTHING, added: [messageOf('m1')] }]) await one.write(writes, few);
    expect(await idsOf(two.take(0, 100))).toEqual(['m1']);
    const cap = { ...messageOf('cap'), isOnce: true };
    await Promise.all([one, two].map((store) => store.write({ ...NOTHING, added: [cap] }, few)));
    const more = ['m2', 'm3', 'm4'].map((id) => messageOf(id));
    const dropped = new Map([['h', 5]]);
    expect(await one.write({ ...NOTHING, added: [...more, messageOf('x', false, 'gone')], dropped }, few)).toEqual(
      ok(2),
    );
    expect(await one.list()).toMatchObject(ok([{ hook: { dropped: 7 }, waiting: 3 }]));
    const large = { ...messageOf('large'), body: 'x'.repeat(1_000) };
    expect(await one.write({ ...NOTHING, added: [large] }, { number: 10, bytes: 1_000 })).toEqual(ok(1));
    for (const id of ['m1', 'cap', 'm2']) {
      expect(await idsOf(two.take(60_000, 100))).toEqual([id]);
      await two.note({ hookId: 'h', id, failure: undefined });
    }
    await add(two, cap);
    expect(await one.known()).toMatchObject(ok({ waiting: 0 }));
  });

  test('are tried again later, and disabled after a day', async () => {
    const { client, one } = await openWebhooks();
    await add(one, messageOf('m1'), messageOf('m2'));
    const fail = async (retryMs: number) => {
      expect(await idsOf(one.take(60_000, 100))).toEqual(['m1']);
      return one.note({ hookId: 'h', id: 'm1', failure: { reason: 'answered 500', retryMs } });
    };
    const noted = await fail(0);
    expect(noted).toMatchObject(ok({ failures: 1, disabledAtMs: undefined, lost: 0 }));
    expect(await fail(60_000)).toMatchObject(ok({ failures: 2 }));
    expect(await idsOf(one.take(60_000, 100))).toEqual([]);
    await client.query(`UPDATE webhook SET retry_at = now(), failing_since = now() - $1 * interval '1 ms'`, [
      GIVE_UP_AFTER_MS,
    ]);
    expect(await fail(0)).toMatchObject(ok({ failures: 3, disabledAtMs: expect.any(Number), lost: 2 }));
    await add(one, messageOf('m3'));
    expect(await one.list()).toMatchObject(
      ok([
        { hook: { failures: 3, lastError: 'answered 500', dropped: 2, disabledAtMs: expect.any(Number) }, waiting: 0 },
      ]),
    );
    expect(await one.known()).toMatchObject(ok({ hooks: [{ id: 'h', disabledAtMs: expect.any(Number) }], waiting: 0 }));
  });

  test('are limited, brought by each gateway once, and not changed by a replaced one', async () => {
    const { join, one, two } = await openWebhooks();
    const ofOrg = (id: string) => hookOf(id, { orgId: 'acme' });
    const made = await Promise.all(
      [one, two, one, two].map((store, at) => store.create(ofOrg(`o${at}`), { inAll: 100, ofOrg: 2 })),
    );
    expect(made.filter((each) => each.ok && each.value).length).toBe(2);
    expect(await two.create(hookOf('full'), { inAll: 3, ofOrg: 2 })).toEqual(ok(false));
    const failing = { failingSinceMs: 5_000, failures: 2, lastError: 'x', disabledAtMs: 6_000, dropped: 3 };
    const brought = hookOf('own', failing);
    expect(await two.adopt([brought, hookOf('h')])).toEqual(ok(1));
    const { secret: _, ...shown } = brought;
    const all = await one.list();
    expect(all.ok && all.value[0]).toEqual({ hook: shown, waiting: 0 });
    await add(two, messageOf('m1'));
    expect(await two.remove('h')).toEqual(ok(undefined));
    expect(await one.known()).toMatchObject(ok({ waiting: 0 }));
    await join('one');
    const answers = [
      await one.create(hookOf('late'), { inAll: 100, ofOrg: 10 }),
      await one.remove('own'),
      await add(one, messageOf('m2', false, 'own')),
      await one.take(0, 100),
      await one.adopt([hookOf('late')]),
    ];
    for (const answer of answers) expect(answer).toMatchObject({ fault: { kind: 'store_unreachable' } });
    expect((await two.known()).ok && (await two.list())).toMatchObject({ value: { length: 3 } });
  });
});
