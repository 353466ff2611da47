/** A gateway of a cluster without its doors: the escrow of budgets as the gateway has it, against a real ledger. */
import { randomUUID } from 'node:crypto';
import { BudgetExchange } from '../../src/cluster/exchange.ts';
import { BudgetTracker } from '../../src/core/budget/budget.ts';
import type { BudgetConfig } from '../../src/core/budget/config.ts';
import type { BudgetHandle } from '../../src/core/budget/envelope.ts';
import { BudgetGrants } from '../../src/core/budget/grants.ts';
import type { OpNumber } from '../../src/core/budget/reservations.ts';
import type { Ledger, RunId } from '../../src/ports/cluster.ts';
import { createPostgresLedger } from '../../src/stores/postgres/cluster/ledger.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../src/stores/postgres/postgres.ts';

const LEASE_MS = 60_000;
const SLICE_MS = 5_000;
const TICK_MS = 100;
const TEAMS = 10;

export type Trade = { exchanges: number; rows: number; readonly tookMs: number[]; spends: number; waits: number };

export type MemberOptions = {
  readonly url: string;
  readonly name: string;
  readonly caps: BudgetConfig;
  readonly agents: number;
  readonly checksPerSecond: number;
  /** The sum of all members' exchanges. */
  readonly trade: Trade;
};

export type SimulatedMember = { start(): void; stop(): Promise<void> };

/** Nothing of it is shared but the database: it has a connection of its own, as every gateway does. */
export async function joinMember(options: MemberOptions): Promise<SimulatedMember> {
  const { url, name, caps, agents, checksPerSecond, trade } = options;
  const log = { info: () => undefined, warn: (message: string) => console.error(`${name}: ${message}`) };
  const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS, maxConnections: 1 }, log);
  const run = randomUUID() as string as RunId;
  const joined = await postgres.attempt((on) =>
    on.query(`SELECT cluster_join($1, $2, $3, '1', '{1,1}', 'serve', NULL, '{}', '{}', '{}')`, [run, name, LEASE_MS]),
  );
  if (!joined.ok) throw new Error(`${name} cannot join: ${JSON.stringify(joined.fault)}`);
  const budgets = new BudgetTracker(caps, Date.now());
  budgets.useLedger(new BudgetGrants(SLICE_MS), caps, Date.now());
  const exchange = new BudgetExchange({
    budgets: budgets.holdings,
    ledger: counted(createPostgresLedger({ postgres, run, leaseMs: LEASE_MS, policyVersion: () => 'v1' }), trade),
    bus: { isConnected: true, send: () => true, onMessage: () => undefined, onGap: () => undefined },
    nowMs: Date.now,
    steadyMs: () => performance.now(),
    onAlerts: () => undefined,
    onError: (error) => console.error(error),
  });
  const handles = Array.from(
    { length: agents },
    (_, at) => budgets.handleOf({ orgId: 'acme', teamId: `${name}-${at % TEAMS}`, agentId: `${name}-${at}` }, true)!,
  );
  const perTick = (checksPerSecond * TICK_MS) / 1_000 / agents;
  let timer: NodeJS.Timeout | undefined;
  let ops = 0;
  /** All checks of an agent in this tick as one: what the ledger hears of them is the same. */
  const spend = (handle: BudgetHandle): void => {
    ops += 1;
    const op = ops as OpNumber;
    const cost = Math.round(perTick * 1_000);
    const check = {};
    let hasWaited = false;
    const attempt = (): void => {
      const reserved = budgets.reserve(handle, op, cost, Date.now());
      if (reserved.ok) {
        budgets.record(handle, cost, { op }, Date.now());
        budgets.release(op);
        trade.spends += 1;
        if (hasWaited) trade.waits += 1;
        return;
      }
      if (reserved.fault.doubt !== 'short') return;
      hasWaited = true;
      exchange.park(check, budgets.shortagesOf(handle, op, cost), attempt);
    };
    attempt();
  };
  return {
    start: () => {
      exchange.start();
      timer = setInterval(() => {
        for (const handle of handles) spend(handle);
      }, TICK_MS);
    },
    stop: async () => {
      clearInterval(timer);
      await exchange.close();
      await postgres.close();
    },
  };
}

const counted = (ledger: Ledger, trade: Trade): Ledger => ({
  ...ledger,
  exchange: async (sequence, rows) => {
    const startedMs = performance.now();
    const answered = await ledger.exchange(sequence, rows);
    trade.tookMs.push(performance.now() - startedMs);
    trade.exchanges += 1;
    trade.rows += rows.length;
    return answered;
  },
});
