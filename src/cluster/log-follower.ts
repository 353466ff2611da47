/** Carries out in this gateway what the log of its cluster says. */

import type { Approval } from '../core/approvals/approval.ts';
import type { AgentKey } from '../core/base/ids.ts';
import type { Governor } from '../core/governor.ts';
import type { Halt } from '../core/halts/halt.ts';
import type { Topic } from '../ports/cluster.ts';
import type { Entry, LogRow, Whole } from '../ports/cluster-log.ts';
import type { HaltKeeper } from '../use-cases/halts.ts';
import type { SharedAgents } from './agent-lookup.ts';
import type { Acting, Follower } from './log.ts';
import type { SharedOrders } from './orders.ts';
import type { ClusterPolicies } from './policies.ts';
import type { Replicas } from './replicas.ts';
import type { SharedApprovals } from './shared-approvals.ts';

/** The threads that hold connections of agents. */
export type Told = {
  broadcast(message: { readonly type: 'agent-revoked'; readonly agent: AgentKey }): void;
  /** Resolves when all have carried out what they were told. */
  confirmed(): Promise<void>;
};

export type LogFollowerOptions = {
  readonly replicas: Replicas;
  readonly threads: Told;
};

/** The parts that act by it. They come one after the other while the gateway starts; before, nobody is told. */
type Actors = {
  agents: SharedAgents;
  orders: SharedOrders;
  governor: Governor;
  approvals: SharedApprovals;
  haltKeeper: HaltKeeper;
  policies: ClusterPolicies;
};

const TOPICS: readonly Topic[] = ['api-keys', 'accounts', 'webhooks', 'shadow'];

/** Applies entries to the governor before it returns; what threads have to do about them comes after that. */
export class LogFollower implements Follower {
  readonly #options: LogFollowerOptions;
  readonly #actors: Partial<Actors> = {};
  /** Rows that the threads are told of already. */
  readonly #told = new WeakSet<LogRow>();
  #hasRevoked = false;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
  }

  tell(actors: Partial<Actors>): void {
    Object.assign(this.#actors, actors);
  }

  /** A credential is no longer good: what it has open is closed, in all threads. */
  revoke(agent: AgentKey): void {
    this.#hasRevoked = true;
    this.#options.threads.broadcast({ type: 'agent-revoked', agent });
  }

  apply(entry: Entry, row: LogRow, isOwn: boolean): Acting | undefined {
    const { kind, id, body } = entry;
    const { agents, orders, governor, haltKeeper, approvals } = this.#actors;
    switch (kind) {
      case 'agents':
        this.#hasRevoked = isOwn; // a rotation of this gateway has been told to its threads
        agents?.apply(entry);
        return this.#hasRevoked ? this.#inThreads(row) : undefined;
      case 'halts':
        if (!isSame(governor?.halts.get(id), body)) haltKeeper?.adopt(id, (body ?? undefined) as Halt | undefined);
        return undefined;
      case 'approvals':
        approvals?.adopt(id, (body ?? undefined) as Approval | undefined);
        return undefined;
      case 'guards':
        return undefined;
      case 'orders':
        return void orders?.apply(entry, row, isOwn);
      case 'policy': {
        const { version, by } = body as { readonly version: string; readonly by: string };
        return async () => (await this.#actors.policies?.followTo(version, by)) ?? true;
      }
      case 'notice':
        return async () => this.#readAgain(id as Topic, body);
    }
  }

  restore({ agents, states, policy }: Whole): Acting {
    this.#actors.agents?.restore(agents);
    this.#actors.orders?.restore(states);
    this.#restoreStates(states);
    return async () => {
      const { policies } = this.#actors;
      if (policy !== undefined && (await policies?.followTo(policy.version, policy.by)) === false) return false;
      const { replicas, threads } = this.#options;
      const read = await Promise.all(TOPICS.map((topic) => replicas.refresh(topic)));
      await threads.confirmed();
      return read.every(({ ok }) => ok);
    };
  }

  #restoreStates(states: Whole['states']): void {
    const { governor, approvals, haltKeeper } = this.#actors;
    if (governor === undefined) return;
    const ids = new Set(states.map(({ kind, id }) => `${kind} ${id}`));
    for (const { id } of [...governor.halts.all()]) if (!ids.has(`halts ${id}`)) haltKeeper?.adopt(id, undefined);
    for (const { id } of [...governor.approvals.all()])
      if (!ids.has(`approvals ${id}`)) approvals?.adopt(id, undefined);
    for (const { kind, id, body } of states) {
      if (kind === 'halts' && !isSame(governor.halts.get(id), body)) haltKeeper?.adopt(id, body as Halt);
      if (kind === 'approvals') approvals?.adopt(id, body as Approval);
    }
  }

  /** Once for all of a row. */
  #inThreads(row: LogRow): Acting | undefined {
    if (this.#told.has(row)) return undefined;
    this.#told.add(row);
    return async () => (await this.#options.threads.confirmed(), true);
  }

  async #readAgain(topic: Topic, detail: unknown): Promise<boolean> {
    const read = await this.#options.replicas.refresh(topic, detail);
    if (read.ok) await this.#options.threads.confirmed();
    return read.ok;
  }
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
