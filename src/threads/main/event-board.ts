import { claimOf } from '../../core/agents/identify.ts';
import type { Approval } from '../../core/approvals/approval.ts';
import type { AgentIdentity } from '../../core/base/ids.ts';
import type { Mapping } from '../../core/base/mapping.ts';
import { microToUsd } from '../../core/base/money.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { Effect } from '../../core/effects.ts';
import { type Halt, orgOfScope, parseHaltScope } from '../../core/halts/halt.ts';
import { agentOfKey, orgOfKey } from '../../core/limits/keys.ts';
import type { LimitAlert } from '../../core/limits/reached.ts';
import { noteOf } from '../../core/limits/said.ts';
import type { GatewayEvent, Interest, UnnumberedEvent } from '../../ports/events.ts';
import { type IoId, PEERS } from '../protocol.ts';

type Deliver = (io: IoId, event: GatewayEvent) => void;
type OtherEvent = Exclude<GatewayEvent, { readonly kind: 'ops_change' }>;

/**
 * Gives every event its id, and sends to each I/O thread only the events that one of its readers may see. The payloads
 * are sent to readers as they are here, with the names that docs/live-stream.md gives their fields; only that of
 * `ops_change` is translated.
 */
export class EventBoard {
  readonly #interests = new Map<IoId, 'all' | ReadonlySet<string>>();
  readonly #deliver: Deliver;
  #nextId: number;
  #onInterest: ((interest: Interest) => void) | undefined;

  /** Ids begin with the current time in microseconds, so that a later run uses different ids. */
  constructor(deliver: Deliver, startedAtMs: number) {
    this.#deliver = deliver;
    this.#nextId = Math.floor(startedAtMs) * 1000 + 1;
  }

  get isWatched(): boolean {
    return this.#interests.size > 0;
  }

  setInterest(io: IoId, interest: Interest): void {
    if (interest !== 'all' && interest.length === 0) this.#interests.delete(io);
    else this.#interests.set(io, interest === 'all' ? 'all' : new Set(interest));
    this.#reportInterest(io);
  }

  dropThread(io: IoId): void {
    this.#interests.delete(io);
    this.#reportInterest(io);
  }

  /** `listener` gets what the readers of this gateway watch, whenever that changes. */
  followInterest(listener: (interest: Interest) => void): void {
    this.#onInterest = listener;
  }

  #reportInterest(io: IoId): void {
    if (this.#onInterest === undefined || io === PEERS) return;
    const orgs = new Set<string>();
    for (const [thread, interest] of this.#interests) {
      if (thread === PEERS) continue;
      if (interest === 'all') return this.#onInterest('all');
      for (const org of interest) orgs.add(org);
    }
    this.#onInterest([...orgs]);
  }

  /** Publishes the event of an effect. Most effects have none. */
  publishEffect(effect: Effect, atMs: number): void {
    if (!this.isWatched) return;
    const event = eventOf(effect, this.#nextId, atMs);
    if (event !== undefined) this.#publish(event);
  }

  publish(event: Omit<OtherEvent, 'id'>): void {
    if (this.isWatched) this.#publish({ id: this.#nextId, ...event });
  }

  /** Shows another gateway's event to the readers of this one. */
  show(event: UnnumberedEvent): void {
    this.#publish({ id: this.#nextId, ...event }, PEERS);
  }

  /** Reports lost events of other gateways to every thread with readers. */
  reportLost(report: (io: IoId) => void): void {
    for (const io of this.#interests.keys()) if (io !== PEERS) report(io);
  }

  #publish(event: GatewayEvent, except?: IoId): void {
    this.#nextId += 1;
    for (const [io, interest] of this.#interests) {
      if (io === except) continue;
      if (interest === 'all' || (event.orgId !== null && interest.has(event.orgId))) this.#deliver(io, event);
    }
  }
}

function eventOf(effect: Effect, id: number, atMs: number): GatewayEvent | undefined {
  switch (effect.kind) {
    case 'op-changed': {
      const { agent, acknowledgedAtMs: _, ...op } = effect.op;
      const { orgId, teamId, agentId } = agent;
      return { id, kind: 'ops_change', orgId: orgOf(orgId), agentId, atMs, payload: { ...op, teamId } };
    }
    case 'violation': {
      const {
        agent: { orgId, teamId, agentId },
        reason,
        claimed,
        action,
      } = effect;
      const payload = { reason, action, team_id: teamId, ...claimOf(claimed) };
      return { id, kind: 'violation', orgId: orgOf(orgId), agentId, atMs, payload };
    }
    case 'budget-alert': {
      const { tier, orgId, teamId, agentId, period, percent, spentMicroUsd, limitMicroUsd } = effect.alert;
      const payload = {
        tier,
        team_id: teamId,
        period,
        percent,
        spent_usd: microToUsd(spentMicroUsd),
        limit_usd: microToUsd(limitMicroUsd),
      };
      return { id, kind: 'budget', orgId: orgOf(orgId), agentId, atMs, payload };
    }
    case 'limit-alert':
      return limitEvent(effect.alert, id, atMs);
    case 'agent-saved': {
      const { key, rotated, registration } = effect;
      const { identity, parent = null } = registration;
      const payload = { change: rotated ? 'rotated' : 'registered', team_id: identity.teamId, key, parent };
      return agentEvent(identity, payload, id, atMs);
    }
    case 'agent-removed': {
      const { key, identity } = effect;
      return agentEvent(identity, { change: 'deregistered', team_id: identity.teamId, key }, id, atMs);
    }
    case 'approval-changed':
      return approvalEvent(effect.approval, id, atMs);
    case 'halt-changed':
      return haltEvent(effect.halt, id, atMs);
    default:
      return undefined;
  }
}

function agentEvent({ orgId, agentId }: AgentIdentity, payload: Mapping, id: number, atMs: number): GatewayEvent {
  return { id, kind: 'agent', orgId: orgOf(orgId), agentId, atMs, payload };
}

function limitEvent(alert: LimitAlert, id: number, atMs: number): GatewayEvent {
  const { limit, key, percent } = alert;
  const payload = { ...noteOf(alert), unit: limit.unit, percent };
  return { id, kind: 'limit', orgId: orgOf(orgOfKey(key)), agentId: agentOfKey(limit.per, key), atMs, payload };
}

function approvalEvent(approval: Approval, id: number, atMs: number): GatewayEvent {
  const isNew = approval.state === 'pending' && approval.decisions.length === 0;
  const payload = {
    change: isNew ? 'requested' : approval.state,
    approval_id: approval.id,
    state: approval.state,
    op_id: approval.opIds[0] ?? null,
    team_id: approval.agent.teamId,
    action: approval.action,
    resource: approval.resource,
    digest: approval.digest,
    policy: approval.policy,
    rule_id: approval.ruleId,
    expires_at: rfc3339(approval.expiresAtMs),
  };
  const { orgId, agentId } = approval.agent;
  return { id, kind: 'approval', orgId: orgOf(orgId), agentId, atMs, payload };
}

function haltEvent(halt: Halt, id: number, atMs: number): GatewayEvent {
  const scope = parseHaltScope(halt.scope);
  return {
    id,
    kind: 'halt',
    orgId: scope === undefined ? null : orgOfScope(scope),
    agentId: null,
    atMs,
    payload: {
      change: halt.released === undefined ? 'created' : 'released',
      halt_id: halt.id,
      scope: halt.scope,
      mode: halt.mode,
      reason: halt.released?.reason ?? halt.reason,
    },
  };
}

const orgOf = (orgId: string | null): string | null => (orgId === '' ? null : orgId);
