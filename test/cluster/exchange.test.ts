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
const withOrgCap = (daily: number, ofAll?: number): BudgetConfig => ({
  ...UNLIMITED,
  limitsMicroUsd: {
    ...UNLIMITED.limitsMicroUsd,
    global: { monthly: undefined, daily: ofAll },
    org: { monthly: undefined, daily },
  },
});

/** Gateways that trade with one ledger, each by its own call. `ofAll`: a cap of all orgs together. */
function openCluster(cap: number, ofAll?: number) {
  vi.useFakeTimers({ now: NOON_MS });
  onTestFinished(() => void vi.useRealTimers());
  const ledger = new ModelLedger();
  const world = {
    isAway: false,
    /** The next exchange is made, and not answered; then the ledger is away. */
    losesAnswer: false,
    latencyMs: 0,
    /** In turn, for exchanges to come. */
    latencies: (): number => world.latencyMs,
    suspendedMs: 0,
    server: 'first',
    stated: [] as string[],
  };
  const listeners: { readonly run: string; readonly hear: (from: RunId, message: ClusterMessage) => void }[] = [];
  const start = (run: string) => {
    ledger.join(run);
    const budgets = new BudgetTracker(withOrgCap(cap, ofAll), Date.now());
    budgets.useLedger(new BudgetGrants(5_000), withOrgCap(cap, ofAll), Date.now());
    const exchange = new BudgetExchange({
      budgets: budgets.holdings,
      ledger: {
        exchange: async (sequence, rows) => {
          const ms = world.latencies();
          if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
          if (world.isAway) return { ok: false, fault: { kind: 'store_unreachable', retryAfterSecs: 1 } };
          const isUnheard = ledger.unheard.has(run);
          const answered = ledger.exchange(run, sequence, rows);
          if (world.losesAnswer) {
            world.losesAnswer = false;
            world.isAway = true;
            return { ok: false, fault: { kind: 'store_unreachable', retryAfterSecs: 1 } };
          }
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
      await Promise.all([exchange.close(), vi.advanceTimersByTimeAsync(5_000)]);
    });
    let made = 0;
    /** As a check does: undefined where it may go on, else why not. */
    const check = (cost: number, orgId = AGENT.orgId) =>
      new Promise<string | undefined>((resolve) => {
        made += 1;
        const op = made as OpNumber;
        const asked = {};
        const attempt = (): void => {
          const agent = { ...AGENT, orgId };
          const reserved = budgets.reserve(agent, op, cost, Date.now());
          if (reserved.ok) return resolve(undefined);
          if (reserved.fault.doubt !== 'short') return resolve(reserved.fault.doubt ?? 'exceeded');
          exchange.park(asked, budgets.shortagesOf(agent, op, cost), attempt);
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
      const rows = budgets.holdings.dueRows(5, true, nowMs);
      const granted = rows.map(({ owner, period, keptMicroUsd, spentMicroUsd }) => ({
        ...{ owner, period, grantedMicroUsd: keptMicroUsd, spentByAllMicroUsd: spentMicroUsd },
        ...{ heldByAllMicroUsd: 0, alertPercent: undefined },
      }));
      budgets.holdings.takeGrants(rows, granted, nowMs);
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

  test('keeps what running operations may spend when it ends', async () => {
    const { start, account } = openCluster(10_000);
    const { check, exchange, spend } = start('one');
    expect(await answered(check(8_000))).toBeUndefined();
    spend(500);
    const closed = exchange.close();
    await vi.advanceTimersByTimeAsync(100);
    expect(await closed).toBe(true);
    expect(account()).toMatchObject({ spent: 500, out: 8_000 });
  });

  test('gives back a grant whose answer was lost', async () => {
    const { start, account, world } = openCluster(1_000);
    const [one, two] = [start('one'), start('two')];
    await vi.advanceTimersByTimeAsync(1_500);
    world.losesAnswer = true;
    expect(await answered(one.check(600))).toBe('unconfirmed');
    expect(account()).toMatchObject({ out: 600 });
    world.isAway = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await answered(two.check(500))).toBeUndefined();
  });

  test('gives back what it stopped spending after five minutes without the ledger', async () => {
    const { start, world } = openCluster(1_000);
    const [one, two] = [start('one'), start('two')];
    expect(await answered(one.check(600))).toBeUndefined();
    one.budgets.release(1 as OpNumber);
    world.isAway = true;
    await vi.advanceTimersByTimeAsync(6 * 60_000);
    world.isAway = false;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await answered(two.check(500))).toBeUndefined();
  });

  test('tells a gateway that asks for it also that it has nothing', async () => {
    const { ledger, start, account } = openCluster(1_000);
    const [one, two] = [start('one'), start('two')];
    expect(await answered(one.check(1))).toBeUndefined();
    one.budgets.release(1 as OpNumber);
    await vi.advanceTimersByTimeAsync(20_000);
    // As a grant of which the gateway knows nothing.
    ledger.runs.get('one')!.grants.set('org/acme d:2026-11-25', { granted: 900, spent: 0 });
    account()!.out = 900;
    expect(await answered(two.check(500))).toBeUndefined();
  });

  test.each([
    [2, 60],
    [6, 4],
    [16, 10],
  ])('has one of %i checks allowed that each fit alone, by answers up to %i ms late', async (count, latestMs) => {
    const { start, world } = openCluster(1_000, 1_000);
    let seed = 7;
    world.latencies = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % (latestMs + 1);
    };
    const all = Array.from({ length: count }, (_, at) => start(`gateway-${at}`));
    await vi.advanceTimersByTimeAsync(3_000);
    for (let round = 1; round <= 30; round += 1) {
      const asked = all.map(({ check }) => check(800));
      await vi.advanceTimersByTimeAsync(2_000);
      const refused = (await Promise.all(asked)).filter((each) => each !== undefined);
      expect(refused).toHaveLength(count - 1);
      for (const { budgets } of all) budgets.release(round as OpNumber);
      await vi.advanceTimersByTimeAsync(15_000);
    }
  });

  test('holds nothing of one cap for a check that another cap has no room for', async () => {
    const { start } = openCluster(1_000, 1_500);
    const [one, two] = [start('one'), start('two')];
    expect(await answered(two.check(1_000, 'other'))).toBeUndefined();
    const refused = one.check(900);
    await vi.advanceTimersByTimeAsync(20); // it has been granted its org's, and refused that of all
    const answer = two.check(200);
    await vi.advanceTimersByTimeAsync(400);
    expect(await answer).toBeUndefined();
    expect(await refused).toBe('exceeded');
  });

  test('needs nothing for a check that is over', async () => {
    const { ledger, start } = openCluster(1_000, 2_000);
    const [one, two] = [start('one'), start('two')];
    expect(await answered(two.check(950))).toBeUndefined();
    expect(await answered(two.check(900, 'other'))).toBeUndefined();
    await vi.advanceTimersByTimeAsync(15_000);
    const first = one.check(100);
    await vi.advanceTimersByTimeAsync(100);
    const second = one.check(200); // denied with the first
    await vi.advanceTimersByTimeAsync(400);
    expect([await first, await second]).toEqual(['exceeded', 'exceeded']);
    two.budgets.release(1 as OpNumber);
    two.budgets.release(2 as OpNumber);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(ledger.accounts.get('global d:2026-11-25')).toMatchObject({ out: 0 });
  });

  test('decides a check after a quarter of a second though the ledger does not answer', async () => {
    const { start, world } = openCluster(1_000);
    const { check } = start('one');
    world.latencyMs = 4_000;
    const askedMs = Date.now();
    const afterMs = check(600).then((refused) => [refused, Date.now() - askedMs]);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await afterMs).toEqual(['unconfirmed', 250]);
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
