/** The trade of one gateway with the ledger of its cluster, by a clock that the tests set. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { BudgetExchange } from '../../src/cluster/exchange.ts';
import { BudgetTracker } from '../../src/core/budget/budget.ts';
import { type BudgetConfig, UNLIMITED } from '../../src/core/budget/config.ts';
import { BudgetGrants } from '../../src/core/budget/grants.ts';
import type { OpNumber } from '../../src/core/budget/reservations.ts';
import type { ClusterMessage, RunId } from '../../src/ports/cluster.ts';
import { ModelLedger } from '../support/model-ledger.ts';

const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const NOON_MS = Date.parse('2026-11-25T12:00:00Z');
const withOrgCap = (daily: number): BudgetConfig => ({
  ...UNLIMITED,
  limitsMicroUsd: { ...UNLIMITED.limitsMicroUsd, org: { monthly: undefined, daily } },
});

/** Gateways that trade with one ledger, each by its own call. */
function openCluster(cap: number) {
  vi.useFakeTimers({ now: NOON_MS });
  onTestFinished(() => void vi.useRealTimers());
  const ledger = new ModelLedger();
  const world = { isAway: false, latencyMs: 0, suspendedMs: 0, server: 'first', stated: [] as string[] };
  const listeners: { readonly run: string; readonly hear: (from: RunId, message: ClusterMessage) => void }[] = [];
  const start = (run: string) => {
    ledger.join(run);
    const budgets = new BudgetTracker(withOrgCap(cap), Date.now());
    budgets.useLedger(new BudgetGrants(5_000), withOrgCap(cap), Date.now());
    const exchange = new BudgetExchange({
      budgets,
      ledger: {
        exchange: async (sequence, rows) => {
          if (world.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, world.latencyMs));
          if (world.isAway) return { ok: false, fault: { kind: 'store_unreachable', retryAfterSecs: 1 } };
          const isUnheard = ledger.unheard.has(run);
          const answered = ledger.exchange(run, sequence, rows);
          if (isUnheard) ledger.unheard.add(run); // until it says that this was all
          return answered === 'replaced' ? { ok: false, fault: { kind: 'replaced' } } : { ok: true, value: answered };
        },
        server: async () => ({ ok: true, value: world.server }),
        stated: async (server) => {
          world.stated.push(`${run} ${server}`);
          ledger.unheard.delete(run);
          return { ok: true, value: undefined };
        },
      },
      bus: {
        isConnected: true,
        send: (_, message) => {
          for (const { run: other, hear } of listeners) if (other !== run) hear(run as RunId, message);
          return true;
        },
        onMessage: (hear) => void listeners.push({ run, hear }),
        onGap: () => undefined,
      },
      nowMs: () => Date.now(),
      steadyMs: () => Date.now() - world.suspendedMs,
      onAlerts: () => undefined,
      onError: (error) => {
        throw error;
      },
    });
    exchange.start();
    onTestFinished(async () => {
      world.latencyMs = 0;
      await Promise.all([exchange.close(), vi.advanceTimersByTimeAsync(1_000)]);
    });
    let made = 0;
    /** As a check does: undefined where it may go on, else why not. */
    const check = (cost: number) =>
      new Promise<string | undefined>((resolve) => {
        made += 1;
        const op = made as OpNumber;
        const asked = {};
        const attempt = (): void => {
          const reserved = budgets.reserve(AGENT, op, cost, Date.now());
          if (reserved.ok) return resolve(undefined);
          if (reserved.fault.doubt !== 'short') return resolve(reserved.fault.doubt ?? 'exceeded');
          exchange.park(asked, budgets.shortagesOf(AGENT, op, cost), attempt);
        };
        attempt();
      });
    const spend = (cost: number): void => void budgets.record(AGENT, cost, {}, Date.now());
    return { budgets, exchange, check, spend };
  };
  const account = () => ledger.accounts.get('org/acme d:2026-11-25');
  return { ledger, start, account, world };
}

/** Until the promise has an answer, at most two seconds. */
async function answered<T>(promise: Promise<T>): Promise<T> {
  const waiting = vi.advanceTimersByTimeAsync(2_000);
  const answer = await promise;
  await waiting;
  return answer;
}

describe('a gateway that trades with the ledger', () => {
  test('admits nothing against a cap after five minutes without it', async () => {
    const { start, world } = openCluster(1_000_000);
    const { check, spend } = start('one');
    expect(await answered(check(1_000))).toBeUndefined();
    for (let second = 0; second < 10; second += 1) {
      spend(2_000);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(await answered(check(1_000))).toBeUndefined();
    }
    world.isAway = true;
    const answers: (string | undefined)[] = [];
    for (let elapsedMs = 0; elapsedMs < 6 * 60_000; elapsedMs += 5_000) {
      answers.push(await answered(check(1)));
      await vi.advanceTimersByTimeAsync(3_000);
    }
    // Checked every 5 s, and counted from the last exchange, some seconds before the outage.
    const last = answers.lastIndexOf(undefined);
    expect(last).toBeGreaterThan(55);
    expect(last).toBeLessThan(60);
    expect(new Set(answers.slice(last + 1))).toEqual(new Set(['unconfirmed']));
    world.isAway = false;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await answered(check(1))).toBeUndefined();
  });

  test('counts these minutes also where its machine was suspended', async () => {
    const { start, world } = openCluster(1_000_000);
    const { check, spend } = start('one');
    for (let second = 0; second < 10; second += 1) {
      expect(await answered(check(1_000))).toBeUndefined();
      spend(2_000);
    }
    world.isAway = true;
    expect(await answered(check(1))).toBeUndefined();
    vi.setSystemTime(Date.now() + 6 * 60_000);
    world.suspendedMs = 6 * 60_000;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await answered(check(1))).toBe('unconfirmed');
  });

  test('says again what it holds to a server that has forgotten it', async () => {
    const { ledger, start, account, world } = openCluster(1_000);
    const [one, two] = [start('one'), start('two')];
    expect(await answered(one.check(600))).toBeUndefined();
    one.spend(100);
    await one.exchange.report();
    expect(account()).toMatchObject({ spent: 100 });
    expect(world.stated.toSorted()).toEqual(['one first', 'two first']);
    // A standby takes over that has heard of nothing.
    ledger.accounts.clear();
    for (const [run, { grants }] of ledger.runs) {
      grants.clear();
      ledger.unheard.add(run);
    }
    const early = two.check(200);
    await vi.advanceTimersByTimeAsync(300);
    expect(await early).toBe('unconfirmed');
    world.server = 'second';
    await vi.advanceTimersByTimeAsync(1_500);
    expect(world.stated.slice(2).toSorted()).toEqual(['one second', 'two second']);
    expect(account()!.spent).toBe(100);
    expect(account()!.out).toBeGreaterThanOrEqual(600);
    expect([await answered(two.check(400)), await answered(two.check(300))]).toEqual(['exceeded', undefined]);
  });

  test('says at its end whether the ledger knows what was spent', async () => {
    const { start, account, world } = openCluster(1_000);
    const [one, two] = [start('one'), start('two')];
    one.spend(100);
    expect(await answered(one.exchange.close())).toBe(true);
    expect(account()).toMatchObject({ spent: 100, out: 0 });
    world.isAway = true;
    two.spend(10);
    expect(await answered(two.exchange.close())).toBe(false);
    expect(account()).toMatchObject({ spent: 100, out: 0 });
  });

  test('reports of more accounts than fit one exchange each in its turn', () => {
    const budgets = new BudgetTracker(withOrgCap(1_000_000), NOON_MS);
    budgets.useLedger(new BudgetGrants(5_000), withOrgCap(1_000_000), NOON_MS);
    const spend = (): void => {
      for (let at = 0; at < 9; at += 1) budgets.record({ ...AGENT, agentId: `agent-${at}` }, 10, {}, NOON_MS);
    };
    const reported = new Set<string>();
    for (let turn = 1; turn <= 6; turn += 1) {
      const nowMs = NOON_MS + turn * 11_000;
      spend(); // so that all of them are due each time
      const rows = budgets.dueRows(5, true, nowMs);
      const granted = rows.map(({ owner, period, keptMicroUsd, spentMicroUsd }) => ({
        ...{ owner, period, grantedMicroUsd: keptMicroUsd, spentByAllMicroUsd: spentMicroUsd },
        ...{ heldByAllMicroUsd: 0, alertPercent: undefined },
      }));
      budgets.takeGrants(rows, granted, nowMs);
      for (const { owner } of rows) reported.add(owner);
    }
    const agents = Array.from({ length: 9 }, (_, at) => `agent/acme/search/agent-${at}`);
    expect([...reported].sort()).toEqual([...agents, 'global', 'org/acme', 'team/acme/search']);
  });

  test('gives back what is recalled while another exchange is under way', async () => {
    const { start, world } = openCluster(1_001);
    const [one, two] = [start('one'), start('two')];
    expect(await answered(one.check(100))).toBeUndefined();
    for (let nth = 0; nth < 9; nth += 1) expect(await answered(two.check(100))).toBeUndefined();
    world.latencyMs = 8;
    one.budgets.release(1 as OpNumber); // it has no use for what it holds
    const askedMs = Date.now();
    const answer = two.check(100).then((refused) => ({ refused, afterMs: Date.now() - askedMs }));
    await vi.advanceTimersByTimeAsync(4);
    one.spend(1);
    void one.exchange.report();
    // Refused after 8 ms, asked for again 15 ms later: by then the other has reported, and given it back after that.
    const { refused, afterMs } = await answered(answer);
    expect(refused).toBeUndefined();
    expect(afterMs).toBe(31);
  });

  test('gives back what is idle when a cap is lowered', async () => {
    const { start, account } = openCluster(1_000_000);
    const { budgets, exchange, check, spend } = start('one');
    expect(await answered(check(400))).toBeUndefined();
    spend(500);
    await vi.advanceTimersByTimeAsync(1_000);
    budgets.reconfigure(withOrgCap(2_000_000), Date.now());
    await exchange.report();
    const held = account()!.out;
    expect(held).toBeGreaterThan(400);
    budgets.reconfigure(withOrgCap(1_000), Date.now());
    await exchange.report();
    expect(account()).toMatchObject({ spent: 500, out: 400 });
  });
});
