/** Halts and approvals of a gateway in a cluster: those of all gateways. */
import type { Refreshes } from '../cluster/replicas.ts';
import { SharedApprovals } from '../cluster/shared-approvals.ts';
import { StateFeed } from '../cluster/state-feed.ts';
import type { Approval } from '../core/approvals/approval.ts';
import { ok } from '../core/base/result.ts';
import type { Governor } from '../core/governor.ts';
import type { Halt } from '../core/halts/halt.ts';
import type { Barrier, Bus, Membership, SharedStates, StateKind, StateRow, StateWrite } from '../ports/cluster.ts';
import type { Clock, DecisionStore, StateStore } from '../ports/ports.ts';
import type { Logger } from '../system/log.ts';
import type { CommandRunner, TurnTaking } from '../threads/main/command-runner.ts';
import type { HaltKeeper, HaltSharing } from '../use-cases/halts.ts';
import type { StartWait } from './start-wait.ts';

/** What people decide. */
type DecisionKind = Exclude<StateKind, 'controls' | 'orders'>;

export type StatesStart = {
  readonly shared: SharedStates;
  /** What this gateway had when it was alone; and messages of webhooks that the database could not take yet. */
  readonly own: StateStore;
  readonly bus: Bus;
  readonly barrier: Barrier;
  readonly log: Logger;
  readonly onError: (error: unknown, doing: string) => void;
  readonly trouble: () => string | undefined;
  readonly wait: StartWait;
};

type Followers = {
  readonly governor: Governor;
  readonly commands: CommandRunner;
  readonly haltKeeper: HaltKeeper;
  readonly membership: Membership;
  readonly clock: Clock;
  readonly onApproval: (approval: Approval) => void;
};

export type States = {
  readonly store: DecisionStore;
  readonly halting: HaltSharing;
  readonly turns: TurnTaking;
  readonly refreshes: Refreshes;
  /** Call it once the governor has what was loaded. */
  follow(followers: Followers): void;
  /** What time does to approvals. Call it often. */
  tickApprovals(): Promise<void>;
};

/** Longer than it takes to stop a hundred thousand operations. */
const ENFORCE_WITHIN_MS = 10_000;

export async function openStates(start: StatesStart): Promise<States> {
  const { barrier, own, onError } = start;
  const halts = await openFeed(start, 'halts');
  const approvals = await openFeed(start, 'approvals');
  const feeds = { halts, approvals };
  let keeper: HaltKeeper | undefined;
  let shared: SharedApprovals | undefined;
  return {
    store: {
      load: (table) => (table === 'webhooks' ? own.load(table) : feeds[table].load()),
      save: (table, id, row) => (table === 'webhooks' ? own.save(table, id, row) : feeds[table].save(id, row)),
      remove: (table, id) => (table === 'webhooks' ? own.remove(table, id) : feeds[table].remove(id)),
    },
    halting: {
      inTurn: (id, apply) => halts.inTurn(id, apply),
      opsElsewhere: async (id, without) => {
        let sum = 0;
        const onSaid = (said: unknown): void => {
          const { affected } = Object(said) as { readonly affected?: unknown };
          if (typeof affected === 'number') sum += affected;
        };
        await barrier.pass('halts', { followed: id }, { without, withinMs: ENFORCE_WITHIN_MS, onSaid });
        return sum;
      },
      changeApprovals: async (halt) => (halt.released === undefined ? shared?.halt(halt) : shared?.tick(true)),
    },
    turns: { take: (turn, decide, refuse) => shared?.take(turn, decide, refuse) },
    refreshes: {
      halts: async (detail) => {
        const read = await halts.refresh();
        const { followed } = Object(detail) as { readonly followed?: unknown };
        if (!read.ok || typeof followed !== 'string') return read;
        return ok({ affected: await keeper?.affected(followed) });
      },
      approvals: () => approvals.refresh(),
    },
    follow: ({ haltKeeper, onApproval, clock, ...followers }) => {
      keeper = haltKeeper;
      halts.follow({
        adopt: (rows) => {
          for (const { id, body } of rows) haltKeeper.adopt(id, body as Halt | undefined);
        },
        within: (_, work) => work(),
      });
      const nowMs = (): number => clock.nowMs();
      shared = new SharedApprovals({ ...followers, feed: approvals, onChanged: onApproval, nowMs, onError });
    },
    tickApprovals: async () => shared?.tick(),
  };
}

/** The first gateway of a cluster adds the rows that it had outside the cluster. */
async function openFeed(
  { shared, own, bus, barrier, log, onError, trouble, wait }: StatesStart,
  kind: DecisionKind,
): Promise<StateFeed> {
  const brings = Array.from(
    own.load(kind),
    ({ id, row }): StateWrite => ({ id, key: keyOf(kind, id, row), body: row }),
  );
  const brought = await wait.value(() => shared.adopt(kind, brings), trouble);
  if (brought > 0) log.info(`brought the ${kind} of this gateway into the cluster`, { [kind]: brought });
  const loaded = await wait.value(() => shared.load(kind), trouble);
  return new StateFeed({ kind, store: shared, bus, barrier, isAwaited: isAwaited[kind], onError }, inOrder(loaded));
}

const keyOf = (kind: DecisionKind, id: string, row: unknown): string =>
  kind === 'halts' ? id : (row as Approval).digest;

/** Of an approval that was used nobody is asked again: the database says so to whoever uses it next. */
const isAwaited = {
  halts: () => true,
  approvals: (body: unknown) => (body as Approval | undefined)?.state !== 'used',
} satisfies Record<DecisionKind, (body: unknown) => boolean>;

/** The oldest first. */
const inOrder = (rows: readonly StateRow[]): readonly StateRow[] =>
  rows.toSorted((one, other) => bornAtMs(one.body) - bornAtMs(other.body));

function bornAtMs(body: unknown): number {
  const { createdAtMs, requestedAtMs } = body as Partial<Halt & Approval>;
  return createdAtMs ?? requestedAtMs ?? 0;
}
