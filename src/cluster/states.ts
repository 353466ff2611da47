/** Opens the log that all gateways of a cluster share, with the parts of this gateway that act by it. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentRegistration } from '../core/agents/agents.ts';
import type { Approval } from '../core/approvals/approval.ts';
import { agentKeyOf } from '../core/base/ids.ts';
import type { CommandOf, CommandType } from '../core/commands.ts';
import type { Governor } from '../core/governor.ts';
import type { Halt } from '../core/halts/halt.ts';
import type { SignalMessage } from '../core/ops/op-view.ts';
import type { Barrier, Bus, MemberStore, Membership, Peers, RunId } from '../ports/cluster.ts';
import { type Entry, type LogStore, noticeOf, type Whole } from '../ports/cluster-log.ts';
import type { AgentStore, Clock, DecisionStore } from '../ports/ports.ts';
import type { Logger } from '../system/log.ts';
import type { HaltKeeper, HaltSharing, OwnCommands } from '../use-cases/halts.ts';
import { SharedAgents, type SharedAgentsOptions } from './agent-lookup.ts';
import { AppliedEverywhere } from './applied.ts';
import type { ClusterClock } from './clock.ts';
import { LogDecisions } from './decisions.ts';
import { proposed, SharedLog } from './log.ts';
import { LogFollower, type Told } from './log-follower.ts';
import { type CarryOut, SharedOrders } from './orders.ts';
import type { ClusterPolicies } from './policies.ts';
import type { Replicas } from './replicas.ts';
import { SharedApprovals } from './shared-approvals.ts';
import { ReplayedIds } from './trial.ts';

export type StatesStart = {
  readonly run: RunId;
  readonly logStore: LogStore;
  /** The log as it was when the gateway started. */
  readonly whole: Whole;
  readonly findAgents: SharedAgentsOptions['find'];
  /** The data directory's. */
  readonly own: { readonly agents: Pick<AgentStore, 'load'>; readonly states: DecisionStore };
  readonly members: Pick<MemberStore, 'noteUnconfirmed'>;
  readonly membership: Membership;
  readonly clock: ClusterClock;
  readonly bus: Bus;
  readonly peers: Peers;
  readonly replicas: Replicas;
  readonly threads: Told;
  readonly log: Logger;
  readonly onError: (error: unknown, doing: string) => void;
};

type Followers = {
  readonly commands: OwnCommands & { readonly carryOut: CarryOut };
  readonly haltKeeper: HaltKeeper;
  readonly clock: Clock;
  readonly onApproval: (approval: Approval) => void;
  readonly deliver: (agent: Parameters<SharedOrders['pendingOf']>[0], message: SignalMessage) => void;
};

export type States = {
  readonly log: SharedLog;
  readonly everywhere: AppliedEverywhere;
  readonly orders: SharedOrders;
  readonly agents: SharedAgents;
  /** For what is kept in tables of its own: that it has changed is said in the log. */
  readonly barrier: Barrier;
  readonly ids: ReplayedIds;
  readonly agentStore: AgentStore;
  readonly store: DecisionStore;
  readonly halting: HaltSharing;
  /** Call it once the governor has what was loaded. */
  share(governor: Governor, clock: Clock): LogDecisions;
  /** Call it once there is somebody to carry out what the log says. */
  follow(followers: Followers): void;
  /** Puts the policies in force that the log says are. */
  followPolicies(policies: ClusterPolicies): void;
  /** Enters what this gateway had when it was alone, where there was nothing. Call it once it has joined. */
  bring(): Promise<void>;
  /** Ends approvals whose time is over, and removes old orders. Call it often. */
  tick(): Promise<void>;
  stop(): void;
};

const DECIDED_WITHIN_MS = 3_000;
/** An order to an operation of this gateway holds here, whatever the database does. */
const ORDERED_WITHIN_MS = 700;
const TRIED_WITHIN_MS = 50;
const NOTICED_WITHIN_MS = 3_000;
const BROUGHT_WITHIN_MS = 60_000;
const BROUGHT_AT_ONCE = 500;

export function openStates(start: StatesStart): States {
  const { run, logStore, whole, members, membership, bus, replicas, threads, onError } = start;
  const follower = new LogFollower({ replicas, threads });
  const log: SharedLog = new SharedLog(
    {
      store: logStore,
      follower,
      steadyMs: () => performance.now(),
      sleep: (ms) => sleep(ms, undefined, { ref: false }),
      onActed: (place) => everywhere.say(place),
      onRestored: (place) => everywhere.forget(place),
      onAppended: (seq) => bus.send('all', { type: 'appended', seq }),
      onError,
    },
    whole,
  );
  const everywhere = new AppliedEverywhere({
    ...{ self: run, bus, store: members },
    isSame: (place) => log.isSame(place),
    steadyMs: () => performance.now(),
    after: (ms, call) => {
      const timer = setTimeout(call, ms);
      return () => clearTimeout(timer);
    },
  });
  bus.onMessage((_, message) => {
    if (message.type === 'appended' && message.seq > log.applied) void log.follow();
  });
  bus.onGap(() => void log.follow());
  const agents = new SharedAgents({
    find: start.findAgents,
    follow: () => log.follow(),
    onRevoked: (agent) => follower.revoke(agent),
    steadyMs: () => performance.now(),
  });
  const orders = new SharedOrders({ log, everywhere, membership, bus, clock: start.clock, onError });
  orders.restore(whole.states);
  follower.tell({ agents, orders });
  return statesOf(start, { log, everywhere, agents, orders }, follower);
}

type Opened = Pick<States, 'log' | 'everywhere' | 'agents' | 'orders'>;

function statesOf(
  { own, whole, membership, peers, onError, log: logger }: StatesStart,
  opened: Opened,
  follower: LogFollower,
): States {
  const brings = broughtOf(own, whole);
  const { log, everywhere, agents, orders } = opened;
  const ids = new ReplayedIds(randomUUID);
  let followers: Followers | undefined;
  let approvals: SharedApprovals | undefined;
  let decisions: LogDecisions | undefined;
  const save = async (entry: Entry): Promise<readonly string[]> => (await decisions?.save(entry)) ?? [];
  peers.serve('halted', async ({ id }) => ({ affected: (await followers?.haltKeeper.affected(id)) ?? 0 }));
  return {
    ...{ ...opened, ids, barrier: barrierOf(log, everywhere, membership) },
    agentStore: {
      load: () => [...whole.agents, ...brings.agents],
      save: (registration) => save({ kind: 'agents', id: agentKeyOf(registration.identity), body: registration }),
      remove: (key) => save({ kind: 'agents', id: key, body: null }),
    },
    store: storeOf(own.states, whole, brings.states, save),
    halting: haltingOf(peers, () => approvals),
    share: (governor, clock) => {
      agents.keepIn(governor.agents);
      const nowMs = (): number => clock.nowMs();
      approvals = new SharedApprovals({
        ...{ governor, membership, nowMs, onError },
        commands: {
          ask: <T extends CommandType>(command: CommandOf<T> & { readonly type: T }) =>
            followers!.commands.ask<T>(command),
        },
        onChanged: (approval) => followers?.onApproval(approval),
      });
      follower.tell({ governor, approvals });
      const { turns } = approvals;
      const withinMs = patienceOf(membership);
      decisions = new LogDecisions({ log, everywhere, orders, governor, ids, turns, nowMs, withinMs });
      return decisions;
    },
    follow: (given) => {
      followers = given;
      follower.tell({ haltKeeper: given.haltKeeper });
      orders.follow(given.deliver, (command) => given.commands.carryOut(command));
    },
    followPolicies: (policies) => follower.tell({ policies }),
    bring: () => bring(brings, log, logger),
    tick: async () => {
      orders.tidy();
      await approvals?.tick();
    },
    stop: () => {
      log.stop();
      orders.stop();
    },
  };
}

/** For how long the database is waited for. */
const patienceOf =
  (membership: Membership) =>
  ({ type }: { readonly type: string }): number => {
    if (type !== 'control-op') return DECIDED_WITHIN_MS;
    return membership.isLeased ? ORDERED_WITHIN_MS : TRIED_WITHIN_MS;
  };

const haltingOf = (peers: Peers, approvals: () => SharedApprovals | undefined): HaltSharing => ({
  opsElsewhere: async (id, without) => {
    const asked = await peers.askAll('halted', { id }, undefined, without);
    return asked.ok ? asked.value.answers.reduce((sum, { answer }) => sum + answer.affected, 0) : 0;
  },
  changeApprovals: async (halt) => (halt.released === undefined ? approvals()?.halt(halt) : approvals()?.tick(true)),
});

const barrierOf = (log: SharedLog, everywhere: AppliedEverywhere, membership: Membership): Barrier => ({
  pass: async (topic, detail) => {
    const written = await proposed(log, [noticeOf(topic, detail)], NOTICED_WITHIN_MS);
    if (written.ok) return everywhere.pass(written.value);
    return [...membership.others().map(({ name }) => name), 'database'];
  },
});

type Brought = { readonly agents: readonly AgentRegistration[]; readonly states: readonly Entry[] };

/** The first gateway of a cluster brings what it had when it was alone. */
function broughtOf(own: StatesStart['own'], { agents, states }: Whole): Brought {
  const kinds = (['halts', 'approvals'] as const).filter((kind) => !states.some((each) => each.kind === kind));
  return {
    agents: agents.length > 0 ? [] : [...own.agents.load()],
    states: kinds.flatMap((kind) =>
      Array.from(own.states.load(kind), ({ id, row }) => ({ kind, id, body: row, expects: 0 })),
    ),
  };
}

async function bring({ agents, states }: Brought, log: SharedLog, logger: Logger): Promise<void> {
  const entries: Entry[] = agents.map((body) => ({ kind: 'agents', id: agentKeyOf(body.identity), body, expects: 0 }));
  entries.push(...states);
  if (entries.length === 0) return;
  for (let at = 0; at < entries.length; at += BROUGHT_AT_ONCE)
    await Promise.all(
      entries.slice(at, at + BROUGHT_AT_ONCE).map((entry) => proposed(log, [entry], BROUGHT_WITHIN_MS)),
    );
  const count = (kind: string): number => entries.filter((entry) => entry.kind === kind).length;
  const counts = { agents: count('agents'), halts: count('halts'), approvals: count('approvals') };
  logger.info('brought what this gateway had into the cluster', counts);
}

function storeOf(
  own: DecisionStore,
  whole: Whole,
  brought: readonly Entry[],
  save: (entry: Entry) => Promise<readonly string[]>,
): DecisionStore {
  return {
    load: (table) =>
      table === 'webhooks'
        ? own.load(table)
        : inOrder([...whole.states, ...brought].filter(({ kind }) => kind === table)).map(({ id, body }) => ({
            id,
            row: body,
          })),
    save: (table, id, row) => (table === 'webhooks' ? own.save(table, id, row) : save({ kind: table, id, body: row })),
    remove: (table, id) => (table === 'webhooks' ? own.remove(table, id) : save({ kind: table, id, body: null })),
  };
}

/** The oldest first. */
const inOrder = (rows: readonly Entry[]): readonly Entry[] =>
  rows.toSorted((one, other) => bornAtMs(one.body) - bornAtMs(other.body));

function bornAtMs(body: unknown): number {
  const { createdAtMs, requestedAtMs } = body as Partial<Halt & Approval>;
  return createdAtMs ?? requestedAtMs ?? 0;
}
