/** Events on their way to another thread. Nearly all are about operations, and those are packed into plain arrays. */
import { OP_STATES } from '../core/op-state.ts';
import type { GatewayEvent } from '../gateway/events.ts';

type OpsChange = Extract<GatewayEvent, { kind: 'ops_change' }>;
type PackedChange = readonly [
  id: number,
  orgId: string | null,
  agentId: string | null,
  atMs: number,
  opId: OpsChange['payload']['opId'],
  state: number,
  registeredAtMs: number,
  updatedAtMs: number,
  teamId: string,
];
export type PackedEvents = { readonly type: 'events'; readonly events: readonly (PackedChange | GatewayEvent)[] };
type Events = { readonly type: 'events'; readonly events: readonly GatewayEvent[] };

export const packEvents = ({ events }: Events): PackedEvents => ({ type: 'events', events: events.map(pack) });

export const unpackEvents = ({ events }: PackedEvents): Events => ({
  type: 'events',
  events: events.map((event) => (isPacked(event) ? unpack(event) : event)),
});

function pack(event: GatewayEvent): PackedChange | GatewayEvent {
  if (event.kind !== 'ops_change') return event;
  const { id, orgId, agentId, atMs, payload } = event;
  return [
    id,
    orgId,
    agentId,
    atMs,
    payload.opId,
    OP_STATES.indexOf(payload.state),
    payload.registeredAtMs,
    payload.updatedAtMs,
    payload.teamId,
  ];
}

function unpack([id, orgId, agentId, atMs, opId, state, registeredAtMs, updatedAtMs, teamId]: PackedChange): OpsChange {
  return {
    id,
    kind: 'ops_change',
    orgId,
    agentId,
    atMs,
    payload: { opId, state: OP_STATES[state]!, registeredAtMs, updatedAtMs, teamId },
  };
}

const isPacked = (event: PackedChange | GatewayEvent): event is PackedChange => Array.isArray(event);
