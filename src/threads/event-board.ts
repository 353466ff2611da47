import type { Effect } from '../core/effects.ts';
import { microToUsd } from '../core/money.ts';
import type { EventKind, GatewayEvent, Interest } from '../gateway/events.ts';
import type { IoId } from './protocol.ts';

type Deliver = (io: IoId, event: GatewayEvent) => void;

/**
 * Gives every event its id, and sends to each I/O thread only the events that one of its readers may see. The payloads are
 * described where they become frames, in wire/ws/frames.ts: from here on their fields have the names of the wire.
 */
export class EventBoard {
  readonly #interests = new Map<IoId, 'all' | ReadonlySet<string>>();
  readonly #deliver: Deliver;
  #lastId: number;

  /** Ids begin with the current time in microseconds, so that a later run gives other ids. */
  constructor(deliver: Deliver, startedAtMs: number) {
    this.#deliver = deliver;
    this.#lastId = Math.floor(startedAtMs) * 1000;
  }

  get isWatched(): boolean { return this.#interests.size > 0; }

  setInterest(io: IoId, interest: Interest): void {
    if (interest !== 'all' && interest.length === 0) this.#interests.delete(io);
    else this.#interests.set(io, interest === 'all' ? 'all' : new Set(interest));
  }

  dropThread(io: IoId): void { this.#interests.delete(io); }

  /** Publishes the event of an effect. Most effects have none. */
  publishEffect(effect: Effect, atMs: number): void {
    if (!this.isWatched) return;
    switch (effect.kind) {
      case 'op-changed': {
        const { opId, state, updatedAtMs, agent } = effect.op;
        return this.#publish({ id: this.#nextId(), kind: 'ops_change', orgId: orgOf(agent.orgId), agentId: agent.agentId, atMs, payload: { opId, state, updatedAtMs, teamId: agent.teamId } });
      }
      case 'violation': {
        const { agent, reason, claimed, action } = effect;
        return this.publish('violation', orgOf(agent.orgId), agent.agentId, atMs, {
          reason, action, team_id: agent.teamId,
          claimed_org_id: orgOf(claimed.orgId), claimed_team_id: claimed.teamId, claimed_agent_id: claimed.agentId,
        });
      }
      case 'budget-alert': {
        const { tier, orgId, teamId, agentId, period, percent, spentMicroUsd, limitMicroUsd } = effect.alert;
        return this.publish('budget', orgId === null ? null : orgOf(orgId), agentId, atMs, { tier, team_id: teamId, period, percent, spent_usd: microToUsd(spentMicroUsd), limit_usd: microToUsd(limitMicroUsd) });
      }
      case 'agent-saved': {
        const { identity, parent } = effect.registration;
        return this.publish('agent', orgOf(identity.orgId), identity.agentId, atMs, { change: effect.rotated ? 'rotated' : 'registered', team_id: identity.teamId, key: effect.key, parent: parent ?? null });
      }
      case 'agent-removed':
        return this.publish('agent', orgOf(effect.identity.orgId), effect.identity.agentId, atMs, { change: 'deregistered', team_id: effect.identity.teamId, key: effect.key });
      default:
    }
  }

  publish(kind: Exclude<EventKind, 'ops_change'>, orgId: string | null, agentId: string | null, atMs: number, payload: Readonly<Record<string, unknown>>): void {
    if (this.isWatched) this.#publish({ id: this.#nextId(), kind, orgId, agentId, atMs, payload });
  }

  #publish(event: GatewayEvent): void {
    for (const [io, interest] of this.#interests) {
      if (interest === 'all' || (event.orgId !== null && interest.has(event.orgId))) this.#deliver(io, event);
    }
  }

  #nextId(): number { return (this.#lastId += 1); }
}

const orgOf = (orgId: string): string | null => (orgId === '' ? null : orgId);
