/** An approval as people read it, in `svc approvals show` and in the inbox. */
import { printable, printableLines } from '../terminal/printable.ts';
import { cellText, fieldLines, type Row } from '../terminal/table.ts';
import { agentText } from './listing.ts';

export const APPROVALS = '/api/v1/approvals';
export const pathOf = (id: string): string => `${APPROVALS}/${encodeURIComponent(id)}`;

/** Shows an approver the facts, the arguments last: they may be long. */
export function approvalLines(approval: Row): readonly string[] {
  const { id, state, agent, op_id, action, resource, estimated_cost_usd, digest, reason } = approval;
  const { expires_at, frozen_at, attributes, min, valid_secs, cancel_reason } = approval;
  const decisions = Array.isArray(approval.decisions) ? (approval.decisions as readonly Row[]) : [];
  return [
    ...fieldLines([
      ['approval', `${String(id)} (${String(state)})`],
      ['agent', agentText(agent)],
      ['action', action],
      ['resource', resource],
      ['cost', `${String(estimated_cost_usd)} USD`],
      ...limitFields(approval),
      ['operation', op_id],
      ['reason', reason],
      ['digest', digest],
      ['expires', frozen_at === null ? expires_at : 'not while a halt freezes it'],
      ...(typeof min === 'number' && min > 1 ? [['approvers', `${decisions.length} of ${min}`] as const] : []),
      ...(typeof valid_secs === 'number' ? [['valid', `${valid_secs} s from the approval on`] as const] : []),
      ...decisions.map(
        ({ decision, by, reason: why }) => [cellText(decision), `${String(by)}: ${String(why)}`] as const,
      ),
      ...(typeof cancel_reason === 'string' ? [['cancelled', cancel_reason] as const] : []),
    ]),
    'arguments',
    ...printableLines(JSON.stringify(attributes ?? {}, null, 2))
      .split('\n')
      .map((line) => `  ${line}`),
  ];
}

/** Says which maximum an approval of a limit raises, and for whom. */
function limitFields({ limit, step }: Row): readonly (readonly [string, unknown])[] {
  if (typeof limit !== 'object' || limit === null) return [];
  const { id, policy, per, key, used, max, unit } = limit as Row;
  return [
    ['limit', `${String(id)} of policy ${String(policy)}`],
    [String(per), key],
    ['used', `${String(used)} of ${String(max)} ${unit === 'usd' ? 'USD' : String(unit)}`],
    ['raises by', step],
  ];
}

/** After a decision: several approvers may be needed. */
export const outcomeOf = ({ id, state, min, decisions }: Row): string =>
  printable(
    state === 'pending'
      ? `Noted: approval ${String(id)} has ${Array.isArray(decisions) ? decisions.length : 0} of ${String(min)} approvers.`
      : `Approval ${String(id)} is ${String(state)}.`,
  );
