/**
 * What goes over the WebSocket, as bytes that many readers share (spec: Events; contract: WebSocket):
 *
 *     {"id","event_type","org_id","agent_id","timestamp","payload"}
 *
 * `id` is a string of its own for every frame. The payloads:
 *
 * | event_type   | payload |
 * |--------------|---------|
 * | `ops_change` | `op_id`, `state`, `updated_at`; with `lineage=true` also `team_id` |
 * | `violation`  | `reason`, `action`, `team_id`, `claimed_org_id`, `claimed_team_id`, `claimed_agent_id` |
 * | `budget`     | `tier`, `team_id`, `period`, `percent`, `spent_usd`, `limit_usd` |
 * | `agent`      | `change` (`registered`, `rotated`, `deregistered`), `team_id`, `key`, and `parent` unless deregistered |
 * | `account`    | `change`, `account_id`, `email`, `role` |
 * | `lagged`     | `dropped`; such a frame has no other fields |
 */
import type { OpView } from '../../core/commands.ts';
import type { GatewayEvent } from '../../gateway/events.ts';

const text = JSON.stringify as (value: string | null) => string;

// Events come in bursts within one millisecond, and a date costs more than all the rest of a frame.
let lastMs = Number.NaN;
let lastTime = '';
function time(ms: number): string {
  if (ms !== lastMs) {
    lastTime = new Date(ms).toISOString();
    lastMs = ms;
  }
  return lastTime;
}

/** `lineage`: the payload of an `ops_change` names the team; other kinds are the same either way. */
export function frameOf(event: GatewayEvent, lineage: boolean): Buffer {
  const head = `{"id":"${event.id}","event_type":"${event.kind}","org_id":${text(event.orgId)},"agent_id":${text(event.agentId)},"timestamp":"${time(event.atMs)}","payload":`;
  if (event.kind !== 'ops_change') return Buffer.from(`${head}${JSON.stringify(event.payload)}}`);
  const { opId, state, updatedAtMs, teamId } = event.payload;
  return Buffer.from(`${head}{"op_id":${text(opId)},"state":"${state}","updated_at":"${time(updatedAtMs)}"${lineage ? `,"team_id":${text(teamId)}` : ''}}}`);
}

/** An operation as the snapshot tells it: the change that led to its state. */
export function snapshotFrame(id: string, { opId, state, updatedAtMs, agent }: OpView, lineage: boolean): Buffer {
  const at = time(updatedAtMs);
  return Buffer.from(`{"id":"${id}","event_type":"ops_change","org_id":${text(agent.orgId === '' ? null : agent.orgId)},"agent_id":${text(agent.agentId)},"timestamp":"${at}",`
    + `"payload":{"op_id":${text(opId)},"state":"${state}","updated_at":"${at}"${lineage ? `,"team_id":${text(agent.teamId)}` : ''}}}`);
}

/** Takes the place of events that this reader was too slow for. */
export const laggedFrame = (dropped: number): Buffer => Buffer.from(`{"event_type":"lagged","payload":{"dropped":${dropped}}}`);
