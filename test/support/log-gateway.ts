/** Gateways that share a log, as far as they decide: the real classes over a model of the head, without processes. */

import { SharedAgents } from '../../src/cluster/agent-lookup.ts';
import { AppliedEverywhere } from '../../src/cluster/applied.ts';
import { LogDecisions } from '../../src/cluster/decisions.ts';
import { SharedLog } from '../../src/cluster/log.ts';
import { SharedOrders } from '../../src/cluster/orders.ts';
import { SharedApprovals } from '../../src/cluster/shared-approvals.ts';
import { ReplayedIds } from '../../src/cluster/trial.ts';
import type { Approval } from '../../src/core/approvals/approval.ts';
import { fail } from '../../src/core/base/result.ts';
import type { Command, CommandOf, CommandType, Replies } from '../../src/core/commands.ts';
import type { Governor } from '../../src/core/governor.ts';
import type { Halt } from '../../src/core/halts/halt.ts';
import type { SignalMessage } from '../../src/core/ops/op-view.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import type { Member } from '../../src/ports/cluster.ts';
import type { Entry, LogStore } from '../../src/ports/cluster-log.ts';
import { FakeCluster, type FakeMember } from './fake-cluster.ts';
import { openGovernor } from './governor.ts';
import { ModelHead } from './model-log.ts';

type Given = Parameters<typeof openGovernor>[0];

const MOST_ROWS = 100;

/** The parts that the gateways of one test share. */
export class LogWorld {
  readonly cluster = new FakeCluster();
  head = new ModelHead();
  /** The database cannot be reached. */
  isAway = false;
  /** Appends are made, and not answered, so many times. */
  losesAnswers = 0;
  nowMs = Date.parse('2026-11-25T12:00:00Z');
  readonly gateways: LogGateway[] = [];

  open(name: string, parts?: Given): LogGateway {
    const gateway = new LogGateway(this, this.cluster.join(name), parts);
    this.gateways.push(gateway);
    return gateway;
  }

  /** With every run that takes part. */
  members(): readonly Member[] {
    const [first, ...others] = this.gateways;
    if (first === undefined) return [];
    const all = [...first.fake.membership.others()];
    const own = others[0]?.fake.membership.others().find(({ run }) => run === first.fake.run);
    return own === undefined ? [{ ...all[0]!, run: first.fake.run, name: first.fake.membership.name }] : [own, ...all];
  }

  /** Until nothing is under way. */
  async settle(): Promise<void> {
    for (let nth = 0; nth < 8; nth += 1) {
      await this.cluster.settle();
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
  }
}

export class LogGateway {
  readonly fake: FakeMember;
  readonly governor: Governor;
  readonly log: SharedLog;
  readonly everywhere: AppliedEverywhere;
  readonly orders: SharedOrders;
  readonly agents: SharedAgents;
  readonly decisions: LogDecisions;
  readonly delivered: SignalMessage[] = [];
  readonly revoked: string[] = [];
  /** It is stopped: nothing that is read from the log gets here. */
  isStopped = false;
  readonly #world: LogWorld;
  readonly #approvals: SharedApprovals;

  constructor(world: LogWorld, fake: FakeMember, parts: Given = {}) {
    this.#world = world;
    this.fake = fake;
    const { run, bus, membership } = fake;
    const ids = new ReplayedIds(() => `${membership.name}-${(this.#ids += 1)}`);
    this.governor = openGovernor({ ...parts, newApprovalId: ids.next });
    const onError = (error: unknown): void => {
      throw error;
    };
    this.log = new SharedLog(
      {
        store: this.#store(),
        follower: {
          apply: (entry, row, isOwn) => {
            if (entry.kind === 'orders') this.orders.apply(entry, row, isOwn);
            else this.#apply(entry);
            return undefined;
          },
          restore: ({ agents, states }) => {
            this.agents.restore(agents);
            this.orders.restore(states);
            for (const entry of states) this.#apply(entry);
            return undefined;
          },
        },
        steadyMs: () => performance.now(),
        sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref()),
        onActed: (place) => this.everywhere.say(place),
        onRestored: (place) => this.everywhere.forget(place),
        onAppended: (seq) => bus.send('all', { type: 'appended', seq }),
        onError,
      },
      world.head.whole(),
    );
    this.everywhere = new AppliedEverywhere({
      ...{ self: run, bus, store: { noteUnconfirmed: async () => ({ ok: true, value: undefined }) } },
      isSame: (place) => this.log.isSame(place),
      steadyMs: () => performance.now(),
      after: (ms, call) => {
        const timer = setTimeout(call, ms);
        return () => clearTimeout(timer);
      },
    });
    this.everywhere.say(this.log.place);
    this.agents = new SharedAgents({
      find: async () => ({ ok: true, value: [] }),
      follow: () => this.log.follow(),
      onRevoked: (agent) => this.revoked.push(agent),
      steadyMs: () => 0,
    });
    this.agents.keepIn(this.governor.agents);
    const nowMs = (): number => world.nowMs;
    const clock = { nowMs };
    this.orders = new SharedOrders({ log: this.log, everywhere: this.everywhere, membership, bus, clock, onError });
    this.orders.follow(
      (_, message) => this.delivered.push(message),
      async (command) => this.#now(command) as Replies['control-op'],
    );
    this.governor.closedElsewhere = (agent, opId) => this.orders.closedElsewhere(agent, opId);
    this.#approvals = new SharedApprovals({
      ...{ governor: this.governor, membership, onChanged: () => undefined, nowMs, onError },
      commands: { ask: (command) => this.decide(command as Command) as never },
    });
    this.decisions = new LogDecisions({
      ...{ log: this.log, everywhere: this.everywhere, orders: this.orders, governor: this.governor, ids },
      ...{ turns: this.#approvals.turns, nowMs, withinMs: () => 500 },
    });
    bus.onMessage((_, message) => {
      if (message.type === 'appended' && message.seq > this.log.applied && !this.isStopped) void this.log.follow();
    });
  }

  #ids = 0;

  #store(): LogStore {
    const world = this.#world;
    const answered = async <T>(ask: () => T) => {
      await Promise.resolve();
      if (world.isAway) return { ok: false, fault: { kind: 'store_unreachable', retryAfterSecs: 1 } } as const;
      return { ok: true, value: ask() } as const;
    };
    return {
      append: async (nonce, place, groups) => {
        const plain = JSON.parse(JSON.stringify(groups)) as Entry[][];
        const answer = await answered(() =>
          world.head.append(this.fake.run, nonce, place, plain, MOST_ROWS, world.members()),
        );
        if (world.losesAnswers === 0) return answer;
        world.losesAnswers -= 1;
        return { ok: false, fault: { kind: 'store_unreachable', retryAfterSecs: 1 } };
      },
      after: (place) => answered(() => world.head.after(place, MOST_ROWS, world.members())),
      placesAfter: (seq) => answered(() => world.head.placesAfter(seq)),
      whole: () => answered(() => world.head.whole()),
    };
  }

  #apply({ kind, id, body }: Entry): void {
    if (kind === 'agents') this.agents.apply({ kind, id, body });
    if (kind === 'halts') this.#now({ type: 'adopt-halt', id, halt: (body ?? undefined) as Halt | undefined });
    if (kind === 'approvals') this.#approvals.adopt(id, (body ?? undefined) as Approval | undefined);
  }

  #outcome(command: Command): Outcome {
    return this.governor.apply<CommandType>(command as never, this.#world.nowMs);
  }

  #now(command: Command): Replies[CommandType] {
    const { reply, effects } = this.#outcome(command);
    for (const effect of effects)
      if (effect.kind === 'signal') void this.orders.save(effect, this.orders.nextSequence(this.#world.nowMs), 0);
    return reply;
  }

  tickApprovals(): Promise<void> {
    return this.#approvals.tick();
  }

  /** As the main thread has a command decided; with the names of gateways that do not act by it. */
  async decide<T extends CommandType>(
    command: CommandOf<T>,
  ): Promise<Replies[T] & { unconfirmed?: readonly string[] }> {
    return (await this.#decided(command as Command)) as never;
  }

  #decided(command: Command, tries = 0): Promise<Replies[CommandType]> {
    if (!this.decisions.concerns(command)) {
      const { turn } = this.decisions.tryOut(command, undefined, this.#world.nowMs).outcome;
      if (turn === undefined || !('digest' in turn)) return Promise.resolve(this.#now(command));
      return this.#inLog(command, turn.digest, tries);
    }
    return this.#inLog(command, undefined, tries);
  }

  #inLog(command: Command, digest: string | undefined, tries: number): Promise<Replies[CommandType]> {
    const trial = this.decisions.tryOut(command, digest, this.#world.nowMs);
    if (trial.entries.length === 0) return Promise.resolve(this.decisions.decide(trial).reply);
    return new Promise((resolve) => {
      this.decisions.propose(trial, {
        accepted: (accepted) => {
          const { reply } = this.decisions.decide(trial);
          void this.decisions
            .confirmed(accepted, trial)
            .then((unconfirmed) => resolve(Object.assign({ unconfirmed }, reply)));
        },
        refused: (verdict) =>
          resolve(
            verdict === 'changed' && tries < 50
              ? this.#inLog(command, digest, tries + 1)
              : fail({ kind: 'conflict', detail: verdict }),
          ),
        failed: (fault) => resolve(fail(fault)),
      });
    });
  }
}
