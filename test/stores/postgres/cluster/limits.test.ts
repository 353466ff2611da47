/** Limits in the ledger of a cluster: against the one in TypeScript, and what becomes of the use of gateways that are gone. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AccountRow } from '../../../../src/core/budget/escrow.ts';
import type { RunId } from '../../../../src/ports/cluster.ts';
import { createPostgresMembers } from '../../../../src/stores/postgres/cluster/members.ts';
import { ModelLedger } from '../../../support/model-ledger.ts';
import { withPostgres } from '../../../support/postgres.ts';
import { byOwner, openPostgresLedger, rowOf } from '../../../support/postgres-ledger.ts';
import { randomOf } from '../../../support/random.ts';

const newDatabase = withPostgres();
const RUNS = 3;
const SPAN = 'limit/["p","hourly","org","calls",3600000]/acme';
const LIFE = 'limit/["p","loops","session","calls",null]/acme/t1';
const HOUR_MS = 3_600_000;

async function openLimits() {
  const opened = await openPostgresLedger(newDatabase);
  const { client, postgres } = opened;
  const membersOf = (run: RunId, last?: RunId) =>
    createPostgresMembers({
      ...{ postgres, pool: postgres, run, leaseMs: 60_000 },
      settles: () => last && { run: last, owners: [], periods: [], spentMicroUsd: [] },
    });
  const accountOf = async (owner: string) =>
    (await client.query('SELECT spent::int, out::int FROM budget_account WHERE owner = $1', [owner])).rows[0];
  return { ...opened, membersOf, accountOf };
}

const spanRow = (more: Partial<AccountRow>): AccountRow =>
  rowOf(SPAN, { period: 'span', fromMs: Date.now(), toMs: Date.now() + 1.1 * HOUR_MS, capMicroUsd: 20, ...more });
const lifeRow = (more: Partial<AccountRow>, isIdle = false): AccountRow => {
  const usedAtMs = Date.now() - (isIdle ? 2 * HOUR_MS : 0);
  return rowOf(LIFE, { period: 'life', fromMs: usedAtMs, toMs: usedAtMs + HOUR_MS, capMicroUsd: 20, ...more });
};

describe('limits in the ledger', () => {
  test('are granted as by the one in TypeScript, also as use falls and sessions end', async () => {
    const { client, join, ledgerOf } = await openLimits();
    const model = new ModelLedger();
    const runs = await Promise.all(Array.from({ length: RUNS }, (_, at) => join(`gateway-${at}`)));
    for (const run of runs) model.join(run);
    const random = randomOf(11);
    const below = (most: number): number => Math.floor(random() * most);
    const sides = runs.map((run) => ({
      ...{ run, ledger: ledgerOf(run), sequence: 0 },
      ...{ span: { granted: 0, spent: 0 }, life: { granted: 0, spent: 0 } },
    }));
    let ended = 0;
    for (let step = 0; step < 300; step += 1) {
      const { run, ledger, span, life, ...side } = sides[below(RUNS)]!;
      sides.find((each) => each.run === run)!.sequence += 1;
      span.spent = Math.max(0, Math.min(span.spent + below(7) - 3, span.granted + below(2)));
      span.granted = below(3) === 0 ? span.spent : span.granted;
      const isIdle = below(2) === 0;
      if (!isIdle) life.spent = Math.min(life.spent + below(4), life.granted);
      if (isIdle) life.granted = life.spent;
      if (below(12) === 0) {
        await client.query(`UPDATE budget_account SET ends_at = now() - interval '1 second' WHERE period = 'life'`);
        const account = model.accounts.get(`${LIFE} life`);
        if (account !== undefined) account.endsAtMs = 0;
      }
      const asked = { neededMicroUsd: below(3), wantedMicroUsd: below(9) };
      const raised = below(9) === 0 ? { amount: 10 + below(10), atMs: 1_000 + step } : undefined;
      const rows = [
        spanRow({ keptMicroUsd: span.granted, spentMicroUsd: span.spent, ...asked }),
        lifeRow({ keptMicroUsd: life.granted, spentMicroUsd: life.spent, ...asked, raised }, isIdle),
      ];
      const expected = model.exchange(run, side.sequence + 1, rows, Date.now());
      const answered = await ledger.exchange(side.sequence + 1, rows);
      if (expected === undefined || expected === 'replaced') throw new Error('the model refuses a report in time');
      expect(answered.ok && answered.value && byOwner(answered.value), `step ${step}`).toEqual(byOwner(expected));
      span.granted = expected[0]!.grantedMicroUsd;
      life.granted = expected[1]!.grantedMicroUsd;
      if (expected[1]!.isOver) Object.assign(life, { granted: 0, spent: 0 });
      if (expected[1]!.isOver) ended += 1;
    }
    expect(ended).toBeGreaterThan(3);
    const held = await client.query(
      `SELECT a.period, a.spent::int, a.out::int, coalesce(sum(g.spent), 0)::int AS spent_by_runs,
           coalesce(sum(greatest(g.granted - g.spent, 0)), 0)::int AS out_by_runs
         FROM budget_account a LEFT JOIN budget_grant g USING (owner, period) GROUP BY a.owner, a.period`,
    );
    for (const { spent, out, ...byRuns } of held.rows)
      expect(byRuns).toMatchObject({ spent_by_runs: spent, out_by_runs: out });
  });

  test('count for the next run on a data directory what the one before has counted', async () => {
    const { client, join, ledgerOf, membersOf, accountOf } = await openLimits();
    const before = await join('gateway');
    await ledgerOf(before).exchange(1, [
      spanRow({ keptMicroUsd: 12, spentMicroUsd: 9 }),
      lifeRow({ keptMicroUsd: 5, spentMicroUsd: 5 }),
    ]);
    const after = randomUUID() as string as RunId;
    const joining = { name: 'gateway', version: '1', protocols: [1, 1], onOutage: 'serve' } as const;
    expect((await membersOf(after, before).join({ ...joining, run: after })).ok).toBe(true);
    expect(await accountOf(SPAN)).toEqual({ spent: 9, out: 3 });
    const answered = await ledgerOf(after).exchange(1, [
      spanRow({ spentMicroUsd: 9, neededMicroUsd: 11 }),
      lifeRow({ spentMicroUsd: 5 }),
    ]);
    expect(answered.ok && answered.value?.map(({ grantedMicroUsd }) => grantedMicroUsd).sort()).toEqual([20, 5]);
    expect([await accountOf(SPAN), await accountOf(LIFE)]).toEqual([
      { spent: 9, out: 11 },
      { spent: 5, out: 0 },
    ]);
    const { rows } = await client.query('SELECT DISTINCT epoch FROM budget_grant');
    expect(rows).toEqual([{ epoch: after }]);
  });

  test('let what a run that is gone has used leave the span, and not before', async () => {
    const { client, join, ledgerOf, membersOf, accountOf } = await openLimits();
    const [here, left, lost] = [await join('here'), await join('left'), await join('lost')];
    await ledgerOf(left).exchange(1, [spanRow({ keptMicroUsd: 4, spentMicroUsd: 3 })]);
    await ledgerOf(lost).exchange(1, [spanRow({ keptMicroUsd: 7, spentMicroUsd: 5 })]);
    await membersOf(left).leave();
    const endedBefore = (minutes: number) =>
      client.query(
        `UPDATE cluster_node SET state = CASE WHEN settled THEN state ELSE 'suspect' END, lease_until = now() - $1 * interval '1 minute',
           ended_at = CASE WHEN settled THEN now() - $1 * interval '1 minute' END WHERE epoch <> $2`,
        [minutes, here],
      );
    const tidied = async () => {
      await membersOf(here).tidy();
      return accountOf(SPAN);
    };
    // A span of an hour, and a tenth of it.
    await endedBefore(65);
    expect(await tidied()).toEqual({ spent: 8, out: 3 });
    await endedBefore(67);
    expect(await tidied()).toEqual({ spent: 5, out: 2 });
    await endedBefore(75);
    expect(await tidied()).toEqual({ spent: 5, out: 2 });
    // A run that nobody has seen end has stopped ten minutes after its lease.
    await endedBefore(77);
    expect(await tidied()).toEqual({ spent: 0, out: 0 });
    await client.query(`UPDATE budget_account SET ends_at = now() - interval '11 minutes'`);
    expect(await tidied()).toBeUndefined();
  });

  test('keep what a run that is gone has used of a session, until nobody uses that', async () => {
    const { client, join, ledgerOf, membersOf, accountOf } = await openLimits();
    const [here, left] = [await join('here'), await join('left')];
    await ledgerOf(left).exchange(1, [lifeRow({ keptMicroUsd: 7, spentMicroUsd: 5 })]);
    await membersOf(left).leave();
    await client.query(`UPDATE cluster_node SET ended_at = now() - interval '3 days' WHERE epoch = $1`, [left]);
    await membersOf(here).tidy();
    expect(await accountOf(LIFE)).toEqual({ spent: 5, out: 0 });
    await client.query(`UPDATE budget_account SET ends_at = now() - interval '9 minutes'`);
    await membersOf(here).tidy();
    expect(await accountOf(LIFE)).toEqual({ spent: 5, out: 0 });
    await client.query(`UPDATE budget_account SET ends_at = now() - interval '11 minutes'`);
    await membersOf(here).tidy();
    expect(await accountOf(LIFE)).toBeUndefined();
    expect((await client.query('SELECT count(*)::int AS n FROM budget_grant')).rows).toEqual([{ n: 0 }]);
  });

  test('are no money: neither stranded, nor charged when a gateway is forgotten', async () => {
    const { client, join, ledgerOf, membersOf } = await openLimits();
    const [here, lost] = [await join('here'), await join('lost')];
    await ledgerOf(lost).exchange(1, [spanRow({ keptMicroUsd: 7 }), rowOf('org/acme', { keptMicroUsd: 2 })]);
    await client.query(
      `UPDATE cluster_node SET state = 'suspect', lease_until = now() - interval '1 hour' WHERE epoch = $1`,
      [lost],
    );
    const listed = await membersOf(here).list();
    expect(listed.ok && listed.value.stranded).toEqual(new Map([[lost, 2]]));
    expect(await membersOf(here).forget('lost', 'charge')).toEqual({ ok: true, value: { microUsd: 2 } });
  });
});
