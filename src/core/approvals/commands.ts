/** Approvals as people and agents handle them: listed, decided, cancelled, and ended by time and by halts. */
import { orgInReach } from '../access.ts';
import { type AgentIdentity, agentKeyOf, type OpId } from '../base/ids.ts';
import { BAD_CURSOR, firstPage } from '../base/page.ts';
import { fail, ok, type Result } from '../base/result.ts';
import type { CommandOf, Replies } from '../commands.ts';
import type { Effect } from '../effects.ts';
import type { Fault } from '../fault.ts';
import type { Halt } from '../halts/halt.ts';
import { holds, type Principal, seesOrg } from '../identity/roles.ts';
import { type Outcome, unchanged } from '../outcome.ts';
import type { Undo } from '../rollback.ts';
import {
  type Approval,
  canBeUsed,
  cancelled,
  decided,
  expired,
  frozen,
  isDue,
  nextApprovalState,
  stateAt,
  thawed,
} from './approval.ts';
import type { ApprovalRegistry } from './approvals.ts';
import { endedReason } from './asking.ts';
import { changeApproval } from './changes.ts';

export type ApprovalContext = {
  readonly approvals: ApprovalRegistry;
  /** The halt in force that covers this action of the agent. */
  readonly haltOf: (agent: AgentIdentity, action: string) => Halt | undefined;
  /** Whether this halt covers this action of the agent. */
  readonly reaches: (haltId: string, agent: AgentIdentity, action: string) => boolean;
  /** Ends an operation of the agent that waits; undefined where it does not wait. */
  readonly endOp: (
    agent: AgentIdentity,
    opId: OpId,
    how: { readonly end: 'denied' | 'halted' | 'expired'; readonly reason: string; readonly actor: string },
    nowMs: number,
  ) => { readonly effects: readonly Effect[]; readonly undo: Undo } | undefined;
};

const GATEWAY_ACTOR = 'gateway';

/** What a command has done so far. */
export type Steps = { readonly effects: Effect[]; readonly undos: Undo[] };
const newSteps = (): Steps => ({ effects: [], undos: [] });

export function getApproval(
  { approvals }: ApprovalContext,
  { principal, id }: CommandOf<'get-approval'>,
  nowMs: number,
): Replies['get-approval'] {
  const approval = visible(approvals, principal, id);
  return approval === undefined ? noApproval(id) : ok(asOf(approval, nowMs));
}

/** As of now, also where the timer has not come by yet. */
const asOf = (approval: Approval, nowMs: number): Approval => {
  const state = stateAt(approval, nowMs);
  return state === approval.state ? approval : { ...approval, state };
};

/** An approval of the agent's own. */
export function ownApproval(
  approvals: ApprovalRegistry,
  agent: AgentIdentity,
  id: string,
  nowMs: number,
): Result<Approval, Fault> {
  const approval = approvals.get(id);
  return approval !== undefined && agentKeyOf(approval.agent) === agentKeyOf(agent)
    ? ok(asOf(approval, nowMs))
    : noApproval(id);
}

export function listApprovals(
  { approvals }: ApprovalContext,
  { principal, orgId, state, perPage, cursor }: CommandOf<'list-approvals'>,
  nowMs: number,
): Replies['list-approvals'] {
  const org = orgInReach(principal, orgId);
  if (!org.ok) return org;
  const isListed = (approval: Approval): boolean =>
    (org.value === undefined || approval.agent.orgId === org.value) &&
    (state === undefined || stateAt(approval, nowMs) === state);
  let isAfter = cursor === undefined;
  const listed: Approval[] = [];
  for (const approval of approvals.all()) {
    if (isAfter && isListed(approval)) listed.push(approval);
    if (approval.id === cursor) isAfter = true;
    if (listed.length > perPage) break;
  }
  // The approval that the last page ended with may have been dropped since.
  return isAfter
    ? ok(
        firstPage(
          listed.map((approval) => asOf(approval, nowMs)),
          perPage,
          ({ id }) => id,
        ),
      )
    : BAD_CURSOR;
}

export function decideApproval(
  context: ApprovalContext,
  { principal, id, kind, reason, names }: CommandOf<'decide-approval'>,
  nowMs: number,
): Outcome<'decide-approval'> {
  const before = visible(context.approvals, principal, id);
  if (before === undefined) return unchanged(noApproval(id));
  const refused = refuseApprover(before, principal, kind, names);
  if (refused !== undefined) return unchanged(refused);
  const halt = context.haltOf(before.agent, before.action);
  if (halt !== undefined) return unchanged(fail({ kind: 'halted', haltId: halt.id, reason: halt.reason }));
  const from = stateAt(before, nowMs);
  if (from !== 'pending') return unchanged(fail({ kind: 'invalid_transition', approvalId: id, from, trigger: kind }));
  const by = principal.subject;
  if (kind === 'approve' && before.decisions.some((each) => each.by === by)) return unchanged(ok(before));
  const after = decided(before, { kind, by, reason, atMs: nowMs });
  const steps = newSteps();
  const eventType = kind === 'deny' ? 'ApprovalDenied' : 'ApprovalApproved';
  apply(context, after, { eventType, actor: by, opId: after.opIds[0], reason }, nowMs, steps);
  return { reply: ok(after), ...outcomeOf(steps) };
}

export function cancelApproval(
  context: ApprovalContext,
  before: Approval,
  actor: string,
  nowMs: number,
): Outcome<'cancel-approval'> {
  const from = stateAt(before, nowMs);
  if (from === 'cancelled') return unchanged(ok(before));
  if (nextApprovalState(from, 'cancel') === undefined)
    return unchanged(fail({ kind: 'invalid_transition', approvalId: before.id, from, trigger: 'cancel' }));
  const reason = `cancelled by ${actor}`;
  const steps = newSteps();
  const after = cancelled(before, reason, nowMs);
  apply(context, after, { eventType: 'ApprovalCancelled', actor, opId: before.opIds[0], reason }, nowMs, steps);
  return { reply: ok(after), ...outcomeOf(steps) };
}

/**
 * What time does: those that are due expire, at most `most` at once. It also puts right what a crash has left half
 * done: whether a halt freezes an approval.
 */
export function tickApprovals(
  context: ApprovalContext,
  { most }: CommandOf<'tick-approvals'>,
  nowMs: number,
): Outcome<'tick-approvals'> {
  const steps = newSteps();
  let changes = 0;
  for (const approval of context.approvals.unused()) {
    if (changes === most) break;
    const isCovered = context.haltOf(approval.agent, approval.action) !== undefined;
    if (isCovered !== (approval.frozenAtMs !== undefined)) {
      save(context, isCovered ? frozen(approval, nowMs) : thawed(approval, nowMs), nowMs, steps);
      changes += 1;
    } else if (isDue(approval, nowMs)) {
      const entry = { eventType: 'ApprovalExpired', actor: GATEWAY_ACTOR, opId: approval.opIds[0] } as const;
      apply(context, expired(approval, nowMs), { ...entry, reason: undefined }, nowMs, steps);
      changes += 1;
    }
  }
  return { reply: ok({ changes }), ...outcomeOf(steps) };
}

/** A new halt freezes what it covers, and one that terminates ends it. */
export function haltApprovals(context: ApprovalContext, halt: Halt, nowMs: number): Steps {
  const steps = newSteps();
  for (const approval of [...context.approvals.all()]) {
    const { state, agent, action } = approval;
    const isUnused = state === 'pending' || state === 'approved';
    if (!(isUnused || canBeUsed(approval, nowMs)) || !context.reaches(halt.id, agent, action)) continue;
    if (halt.mode === 'terminate' && isUnused && !isDue(approval, nowMs)) {
      const reason = `halt ${halt.id}`;
      const entry = { eventType: 'ApprovalCancelled', actor: halt.createdBy, opId: approval.opIds[0], reason } as const;
      apply(context, cancelled(approval, reason, nowMs), { ...entry, end: 'halted' }, nowMs, steps);
    } else if (halt.mode === 'terminate') {
      // It was used, and is not to be used again.
      save(context, { ...approval, expiresAtMs: nowMs }, nowMs, steps);
    } else if (isUnused && approval.frozenAtMs === undefined) {
      save(context, frozen(approval, nowMs), nowMs, steps);
    }
  }
  return steps;
}

/** After the release of a halt, the clocks of approvals go on that no other halt freezes. */
export function thawApprovals(context: ApprovalContext, nowMs: number): Steps {
  const steps = newSteps();
  for (const approval of context.approvals.unused()) {
    if (approval.frozenAtMs === undefined || context.haltOf(approval.agent, approval.action) !== undefined) continue;
    save(context, thawed(approval, nowMs), nowMs, steps);
  }
  return steps;
}

/** Puts the change in force, and ends the operations that waited if it ends their waiting without a yes. */
function apply(
  context: ApprovalContext,
  after: Approval,
  { end, ...entry }: NonNullable<Parameters<typeof changeApproval>[2]> & { readonly end?: 'halted' },
  nowMs: number,
  { effects, undos }: Steps,
): void {
  const changed = changeApproval(context.approvals, after, entry, nowMs);
  effects.push(...changed.effects);
  undos.push(changed.undo);
  const { state } = after;
  if (state !== 'denied' && state !== 'expired' && state !== 'cancelled') return;
  const how = {
    end: end ?? (state === 'expired' ? 'expired' : 'denied'),
    reason: endedReason(after, state),
    actor: entry.actor,
  } as const;
  for (const opId of after.opIds) {
    const ended = context.endOp(after.agent, opId, how, nowMs);
    if (ended === undefined) continue;
    effects.push(...ended.effects);
    undos.push(ended.undo);
  }
}

function save({ approvals }: ApprovalContext, after: Approval, nowMs: number, { effects, undos }: Steps): void {
  const changed = changeApproval(approvals, after, undefined, nowMs);
  effects.push(...changed.effects);
  undos.push(changed.undo);
}

const outcomeOf = ({ effects, undos }: Steps): { readonly effects: readonly Effect[]; readonly undo: Undo } => ({
  effects,
  undo: { kind: 'several', undos },
});

function visible(approvals: ApprovalRegistry, principal: Principal, id: string): Approval | undefined {
  const approval = approvals.get(id);
  return approval !== undefined && seesOrg(principal, approval.agent.orgId) ? approval : undefined;
}

const noApproval = (id: string) => fail({ kind: 'not_found', what: `approval ${id}` } as const);

/** Whoever asked may still deny. */
function refuseApprover(
  { id, terms: { approvers }, requesters }: Approval,
  { scopes, subject }: Principal,
  kind: 'approve' | 'deny',
  names: readonly string[],
): Result<never, Fault> | undefined {
  if (approvers.length === 0 && !holds(scopes, 'admin'))
    return fail({ kind: 'insufficient_scope', needed: 'admin', held: scopes });
  const known = new Set(names.map((name) => name.toLowerCase()));
  if (approvers.length > 0 && !approvers.some((each) => known.has(each.toLowerCase())))
    return fail({ kind: 'not_approver', approvalId: id, approvers });
  return kind === 'approve' && requesters.includes(subject) ? fail({ kind: 'own_request', approvalId: id }) : undefined;
}
