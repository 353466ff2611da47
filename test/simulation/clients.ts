/** Random requests of clients: agents that act and spend, operators that stop them. */
import { type AgentIdentity, agentKeyOf, type SecretDigest } from '../../src/core/base/ids.ts';
import type { Command } from '../../src/core/commands.ts';
import type { ControlTrigger } from '../../src/core/ops/op-state.ts';
import { ADMIN, checkOf, controlOf, digestOf, opId } from '../support/governor.ts';

/** Registered before the first start, and for good. */
export const AGENTS: readonly AgentIdentity[] = ['acme', 'globex'].flatMap((orgId) =>
  ['first', 'second', 'third'].map((agentId) => ({ orgId, teamId: 'search', agentId })),
);
/** They come and go, with one token or another. */
const COMING: readonly AgentIdentity[] = ['one', 'other'].map((agentId) => ({
  orgId: 'acme',
  teamId: 'search',
  agentId,
}));
const UNKNOWN = 'digest-of-nobody' as SecretDigest;
const TRIGGERS: readonly ControlTrigger[] = ['pause', 'pause', 'resume', 'resume', 'terminate', 'complete'];
/** Operations that are named again; older ones are left alone. */
const RECENT = 16;

type Named = { readonly id: string; readonly agent: AgentIdentity };
type Usage = { readonly id: string; readonly agent: AgentIdentity; readonly costMicroUsd: number };

export class Clients {
  readonly #random: () => number;
  readonly #ops: Named[] = [];
  readonly #usages: Usage[] = [];
  #count = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  isNamed(id: string): boolean {
    return this.#ops.some((op) => op.id === id);
  }

  command(): Command {
    const kind = pick(this.#random, [
      [52, 'check'],
      [15, 'control'],
      [5, 'complete'],
      [4, 'register-op'],
      [12, 'usage'],
      [5, 'agent'],
      [7, 'read'],
    ] as const);
    switch (kind) {
      case 'check':
        return this.#check();
      case 'control':
        return controlOf(this.#recentOp().id, this.#of(TRIGGERS));
      case 'complete': {
        const { id, agent } = this.#recentOp();
        return { type: 'complete-op', agent, credential: digestOf(agent), principal: undefined, opId: opId(id) };
      }
      case 'register-op': {
        const { id, agent } = this.#newOp('t');
        return { type: 'register-op', principal: ADMIN, opId: opId(id), agent };
      }
      case 'usage':
        return this.#usage();
      case 'agent':
        return this.#registration();
      default:
        return this.#read();
    }
  }

  /** Picks the scope of a halt: an agent, or an org. */
  scope(): { readonly scope: string; readonly covers: (agent: AgentIdentity) => boolean } {
    const { orgId } = this.#of(AGENTS);
    if (this.#random() < 0.2) return { scope: `org:${orgId}`, covers: (agent) => agent.orgId === orgId };
    const key = agentKeyOf(this.#of(AGENTS));
    return { scope: `agent:${key}`, covers: (agent) => agentKeyOf(agent) === key };
  }

  #check(): Command {
    const chanceOfNew = this.#random();
    const { id, agent } =
      chanceOfNew < 0.06 ? this.#newOp('w') : chanceOfNew < 0.4 ? this.#newOp('t') : this.#recentOp();
    const isAsking = id.startsWith('w');
    const resource = isAsking ? 'asked' : this.#random() < 0.1 ? 'forbidden' : 'web';
    const check = checkOf(agent, id, {
      resource,
      estimatedCostMicroUsd: isAsking || this.#random() < 0.6 ? 0 : 1 + Math.floor(this.#random() * 40),
      dryRun: this.#random() < 0.03,
    });
    const chance = this.#random();
    if (chance < 0.02) return { ...check, credential: UNKNOWN };
    return chance < 0.04 ? { ...check, credential: digestOf(this.#of(AGENTS)) } : check;
  }

  #usage(): Command {
    let usage = this.#of(this.#usages);
    if (usage === undefined || this.#random() < 0.8) {
      this.#count += 1;
      usage = { id: `u${this.#count}`, agent: this.#of(AGENTS), costMicroUsd: 1 + Math.floor(this.#random() * 12) };
      this.#usages.push(usage);
      if (this.#usages.length > RECENT) this.#usages.shift();
    }
    const { id, agent, costMicroUsd } = usage;
    return {
      type: 'record-usage',
      agent,
      credential: digestOf(agent),
      principal: undefined,
      costMicroUsd,
      opId: undefined,
      usageId: id,
    };
  }

  #registration(): Command {
    const agent = this.#of(COMING);
    if (this.#random() < 0.3) return { type: 'deregister-agent', principal: ADMIN, agent };
    const credential = `${agentKeyOf(agent)}-${Math.floor(this.#random() * 3)}` as SecretDigest;
    return { type: 'register-agent', principal: ADMIN, agent, credential, parent: undefined };
  }

  #read(): Command {
    const { id, agent } = this.#recentOp();
    const credential = digestOf(agent);
    const voucher = { agent, credential, principal: undefined };
    return this.#of<Command>([
      { type: 'get-op', principal: ADMIN, opId: opId(id) },
      { type: 'list-ops', principal: ADMIN, orgId: undefined, perPage: 5, cursor: undefined },
      { type: 'list-budgets', principal: ADMIN, orgId: undefined, perPage: 5, cursor: undefined },
      { type: 'open-control', ...voucher, stream: 1 },
      { type: 'ack-signal', ...voucher, opId: opId(id), sequence: 1 },
    ]);
  }

  #recentOp(): Named {
    return this.#ops.length === 0 ? this.#newOp('t') : this.#of(this.#ops);
  }

  /** Names that begin with `w` are of operations that wait for people. */
  #newOp(prefix: 't' | 'w'): Named {
    this.#count += 1;
    const op = { id: `${prefix}${this.#count}:s`, agent: this.#of(AGENTS) };
    this.#ops.push(op);
    if (this.#ops.length > RECENT) this.#ops.shift();
    return op;
  }

  #of<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)]!;
  }
}

/** Picks one at random, the more often the greater its weight. */
export function pick<T extends string>(random: () => number, weights: readonly (readonly [number, T])[]): T {
  let at = random() * weights.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, name] of weights) {
    at -= weight;
    if (at < 0) return name;
  }
  return weights[0]![1];
}
