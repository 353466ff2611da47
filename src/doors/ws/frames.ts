/**
 * Frames of the WebSocket, as bytes that many readers share (docs/spec.md, Live stream):
 *
 *     {"id","event_type","org_id","agent_id","timestamp","payload"}
 *
 * `id` is a string of its own for every frame. docs/live-stream.md has the payload of each kind; a frame of the kind
 * `lagged` has nothing but that and its payload.
 */

import { escapeControls, quote, quoteOrNull } from '../../core/base/text.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { OpView } from '../../core/ops/op-view.ts';
import type { GatewayEvent } from '../../ports/events.ts';
import { aboutView } from '../shared/about-view.ts';

type Head = Pick<GatewayEvent, 'kind' | 'orgId' | 'agentId' | 'atMs'> & { readonly id: number | string };
type OpsChange = Head & Pick<Extract<GatewayEvent, { readonly kind: 'ops_change' }>, 'payload'>;

/** Up to the payload. */
const beginningOf = ({ id, kind, orgId, agentId, atMs }: Head): string =>
  `{"id":"${id}","event_type":"${kind}","org_id":${quoteOrNull(orgId)},"agent_id":${quoteOrNull(agentId)},"timestamp":"${rfc3339(atMs)}","payload":`;

/**
 * `lineage`: the payload of an `ops_change` also names the team, when the operation was registered, and what it is
 * about; other kinds are the same either way.
 */
export const frameOf = (event: GatewayEvent, lineage: boolean, home?: string): Buffer =>
  event.kind === 'ops_change'
    ? opsChange(event, lineage, home)
    : Buffer.from(`${beginningOf(event)}${JSON.stringify(event.payload)}}`);

/** An operation as the snapshot tells it: the change that led to its state. */
export const snapshotFrame = (
  id: string,
  { agent: { orgId, teamId, agentId }, ...op }: OpView,
  lineage: boolean,
  home?: string,
): Buffer =>
  opsChange(
    {
      id,
      kind: 'ops_change',
      orgId: orgId === '' ? null : orgId,
      agentId,
      atMs: op.updatedAtMs,
      payload: { ...op, teamId },
    },
    lineage,
    home,
  );

/** `home`: that of this gateway, if it is one of a cluster. */
function opsChange(event: OpsChange, lineage: boolean, home: string | undefined): Buffer {
  const { opId, state, registeredAtMs, updatedAtMs, teamId } = event.payload;
  const at = home === undefined ? '' : `,"op_home":"${event.payload.home ?? home}"`;
  const about = lineage
    ? `,"registered_at":"${rfc3339(registeredAtMs)}","team_id":${quote(teamId)},${membersOf(aboutView(event.payload))}`
    : '';
  const updated = `"updated_at":"${rfc3339(updatedAtMs)}"${at}${about}`;
  return Buffer.from(`${beginningOf(event)}{"op_id":${quote(opId)},"state":"${state}",${updated}}}`);
}

/** The JSON of an object that has some, without its braces. */
const membersOf = (value: object): string => escapeControls(JSON.stringify(value)).slice(1, -1);

/** Takes the place of events that this reader was too slow for. */
export const laggedFrame = (dropped: number): Buffer =>
  Buffer.from(`{"event_type":"lagged","payload":{"dropped":${dropped}}}`);
