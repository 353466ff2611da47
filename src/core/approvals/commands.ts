/** Approvals as people and agents handle them: listed, decided, cancelled, and ended by time and by halts. */

import { type AgentIdentity, agentKeyOf, type OpId } from '../base/ids.ts';
import { BAD_CURSOR, firstPage } from '../base/page.ts';
import { assertNever, fail, ok, type Result } from '../base/result.ts';
import type { CommandOf, Replies } from '../commands.ts';
import type { Fault } from '../fault.ts';
import type { Halt } from '../halts/halt.ts';
import { orgInReach } from '../identity/access.ts';
import { holds, type Principal, seesOrg } from '../identity/roles.ts';
import { type ApprovalTurn, type Outcome, unchanged } from '../outcome.ts';
import {
  type Approval,
  agentOf,
  canBeUsed,
  cancelled,
  decided,
  expired,
  frozen,
  isAskedBy,
  isDue,
  nextApprovalState,
  stateAt,
  thawed,
} from './approval.ts';
import type { ApprovalRegistry } from './approvals.ts';
import { isNamed, type Lineage, personBehind } from './approvers.ts';
import { ENDED } from './asking.ts';
import { type ApprovalContext, apply, endOrSendOn, newSteps, outcomeOf, type Steps, save } from './steps.ts';

const GATEWAY_ACTOR = 'gateway';
/** The answer while no database takes the turn. */
const NOT_DECIDED = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the database of the cluster' } as const);

/** The outcome of a command that is answered with an approval. */
type ApprovalOutcome = Pick<Outcome, 'effects' | 'undo' | 'turn'> & { readonly reply: Result<Approval, Fault> };

type ApprovalCommandType =
  | 'list-approvals'
  | 'get-approval'
  | 'decide-approval'
  | 'cancel-approval'
  | 'tick-approvals'
  | 'halt-approval'
  | 'leave-approval'
  | 'adopt-approval'
  | 'follow-approval';

/** Carries out a command of people, or of the gateway. */
export function applyToApprovals(
  context: ApprovalContext,
  command: CommandOf<ApprovalCommandType>,
  nowMs: number,
): Outcome {
  switch (command.type) {
    case 'list-approvals':
      return unchanged(listApprovals(context, command, nowMs));
    case 'get-approval':
      return readApproval(context, command, nowMs);
    case 'decide-approval':
      return decideApproval(context, command, nowMs);
    case 'cancel-approval':
      return cancelVisibleApproval(context, command, nowMs);
    case 'tick-approvals':
      return tickApprovals(context, command, nowMs);
    case 'halt-approval':
      return haltApproval(context, command, nowMs);
    case 'leave-approval':
      return leaveApproval(context, command, nowMs);
    case 'adopt-approval':
      return unchanged(adoptApproval(context, command));
    case 'follow-approval':
      return followApproval(context, command, nowMs);
    default:
      return assertNever(command);
  }
}

function readApproval(
  context: ApprovalContext,
  { principal, id }: Pick<CommandOf<'get-approval'>, 'principal' | 'id'>,
  nowMs: number,
): ApprovalOutcome {
  const approval = visible(context.approvals, principal, id);
  return orUnknown(context, id, approval === undefined ? noApproval(id) : ok(asOf(approval, nowMs)));
}

/** An approval that is unknown here may be known to the gateways that share approvals. */
const orUnknown = (context: ApprovalContext, id: string, reply: Result<Approval, Fault>): ApprovalOutcome =>
  reply.ok ? unchanged(reply) : { ...unchanged(reply), ...turnFor(context, { unknownId: id }) };

/** As of now, also where the timer has not come by yet. */
const asOf = (approval: Approval, nowMs: number): Approval => {
  const state = stateAt(approval, nowMs);
  return state === approval.state ? approval : { ...approval, state };
};

/** An approval of the agent's own. */
export function readOwnApproval(
  context: ApprovalContext,
  { agent, id }: { readonly agent: AgentIdentity; readonly id: string },
  nowMs: number,
): ApprovalOutcome {
  const approval = context.approvals.get(id);
  const isOwn = approval !== undefined && isAskedBy(approval, agentKeyOf(agent));
  return orUnknown(context, id, isOwn ? ok(asOf(approval, nowMs)) : noApproval(id));
}

function listApprovals(
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

function decideApproval(
  context: ApprovalContext,
  { principal, id, kind, reason, lineage, people }: CommandOf<'decide-approval'>,
  nowMs: number,
): Outcome<'decide-approval'> {
  const before = visible(context.approvals, principal, id);
  if (before === undefined) return { ...unchanged(noApproval(id)), ...turnFor(context, { unknownId: id }) };
  const turn = turnFor(context, before);
  if (turn !== undefined) return { ...unchanged(NOT_DECIDED), ...turn };
  const isKnown = [...before.requesters, ...before.decisions.map(({ by }) => by)].every((each) => each in people);
  if (!isKnown) return unchanged(fail({ kind: 'conflict', detail: `approval ${id} has just changed; try again` }));
  const person = personBehind(lineage);
  const asked = before.requesters.map((each) => people[each]);
  const refused = refuseApprover(before, principal, lineage) ?? refuseOwn(before, kind, asked.includes(person));
  if (refused !== undefined) return unchanged(refused);
  const halt = haltOver(context, before);
  if (halt !== undefined) return unchanged(fail({ kind: 'halted', haltId: halt.id, reason: halt.reason }));
  const from = stateAt(before, nowMs);
  if (from !== 'pending') return unchanged(fail({ kind: 'invalid_transition', approvalId: id, from, trigger: kind }));
  const by = principal.subject;
  // The same person again, with whatever credential, is no further approver.
  if (kind === 'approve' && before.decisions.some((each) => people[each.by] === person)) return unchanged(ok(before));
  const after = decided(before, { kind, by, reason, atMs: nowMs });
  const steps = newSteps();
  const eventType = kind === 'deny' ? 'ApprovalDenied' : 'ApprovalApproved';
  apply(context, after, { eventType, actor: by, opId: after.opIds[0], reason }, nowMs, steps);
  return { reply: ok(after), ...outcomeOf(steps) };
}

function cancelVisibleApproval(
  context: ApprovalContext,
  command: CommandOf<'cancel-approval'>,
  nowMs: number,
): ApprovalOutcome {
  const found = readApproval(context, command, nowMs);
  return found.reply.ok ? cancelApproval(context, found.reply.value, command.principal.subject, nowMs) : found;
}

export function cancelOwnApproval(
  context: ApprovalContext,
  command: CommandOf<'cancel-own-approval'>,
  actor: string,
  nowMs: number,
): ApprovalOutcome {
  const found = readOwnApproval(context, command, nowMs);
  if (!found.reply.ok) return found;
  const approval = found.reply.value;
  return isSharedWith(approval, command.agent)
    ? leaveLimit(context, approval, command.agent, actor, nowMs)
    : cancelApproval(context, approval, actor, nowMs);
}

/** Whether another agent's operations wait for it as well. */
const isSharedWith = (approval: Approval, agent: AgentIdentity): boolean =>
  approval.state === 'pending' &&
  approval.limit !== undefined &&
  approval.opIds.some((opId) => agentKeyOf(agentOf(approval, opId)) !== agentKeyOf(agent));

/** Others go on to wait: only the agent's own operations do not. */
function leaveLimit(
  context: ApprovalContext,
  before: Approval,
  agent: AgentIdentity,
  actor: string,
  nowMs: number,
): ApprovalOutcome {
  const turn = turnFor(context, before);
  if (turn !== undefined) return { ...unchanged(NOT_DECIDED), ...turn };
  const isOwn = (opId: OpId): boolean => agentKeyOf(agentOf(before, opId)) === agentKeyOf(agent);
  const steps = newSteps();
  const after = { ...before, opIds: before.opIds.filter((opId) => !isOwn(opId)) };
  save(context, after, nowMs, steps);
  for (const opId of before.opIds.filter(isOwn)) {
    const how = { end: 'denied', reason: `${actor} does not wait for approval ${before.id} any more`, actor } as const;
    const ended = context.endOp(agent, opId, how, nowMs);
    if (ended === undefined) continue;
    steps.effects.push(...ended.effects);
    steps.undos.push(ended.undo);
  }
  return { reply: ok(after), ...outcomeOf(steps) };
}

function cancelApproval(context: ApprovalContext, before: Approval, actor: string, nowMs: number): ApprovalOutcome {
  const turn = turnFor(context, before);
  if (turn !== undefined) return { ...unchanged(NOT_DECIDED), ...turn };
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
 * Expires approvals that are due, at most `most` at once. It also repairs the frozen state of approvals that a crash
 * left half done.
 */
function tickApprovals(
  context: ApprovalContext,
  { most, only }: CommandOf<'tick-approvals'>,
  nowMs: number,
): Outcome<'tick-approvals'> {
  const steps = newSteps();
  let changes = 0;
  for (const approval of context.approvals.unused()) {
    if (changes === most) break;
    if (only !== undefined && approval.id !== only) continue;
    const halt = haltOver(context, approval);
    if (isDue(approval, nowMs)) {
      const entry = { eventType: 'ApprovalExpired', actor: GATEWAY_ACTOR, opId: approval.opIds[0] } as const;
      apply(context, expired(approval, nowMs), { ...entry, reason: undefined }, nowMs, steps);
      changes += 1;
    } else if ((halt !== undefined) !== (approval.frozenAtMs !== undefined)) {
      if (halt === undefined) save(context, thawed(approval, nowMs), nowMs, steps);
      else haltOne(context, halt, approval, nowMs, steps);
      changes += 1;
    }
  }
  return { reply: ok({ changes }), ...outcomeOf(steps) };
}

/** Iterates over approvals that time or a halt is to change. */
export function* changing(context: ApprovalContext, nowMs: number): Iterable<Approval> {
  for (const approval of context.approvals.unused()) {
    const isCovered = haltOver(context, approval) !== undefined;
    if (isCovered !== (approval.frozenAtMs !== undefined) || isDue(approval, nowMs)) yield approval;
  }
}

/** A limit is not about one action, and others may wait for it: no halt freezes its approval. */
const haltOver = ({ haltOf }: ApprovalContext, { agent, action, limit }: Approval): Halt | undefined =>
  limit === undefined ? haltOf(agent, action) : undefined;

/** Iterates over approvals that a halt is to freeze or to end. */
export function* coveredBy({ approvals, reaches }: ApprovalContext, halt: Halt, nowMs: number): Iterable<Approval> {
  for (const approval of approvals.all()) {
    const { state, agent, action, limit } = approval;
    if (limit !== undefined) continue;
    const isUnused = state === 'pending' || state === 'approved';
    if ((isUnused || canBeUsed(approval, nowMs)) && reaches(halt.id, agent, action)) yield approval;
  }
}

/** A new halt freezes what it covers, and one that terminates ends it. */
export function haltApprovals(context: ApprovalContext, halt: Halt, covered: Iterable<Approval>, nowMs: number): Steps {
  const steps = newSteps();
  for (const approval of covered) haltOne(context, halt, approval, nowMs, steps);
  return steps;
}

function haltOne(context: ApprovalContext, halt: Halt, approval: Approval, nowMs: number, steps: Steps): void {
  const isUnused = approval.state === 'pending' || approval.state === 'approved';
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

/** The same for one approval, in a turn of its digest. */
function haltApproval(
  context: ApprovalContext,
  { haltId, id }: CommandOf<'halt-approval'>,
  nowMs: number,
): Outcome<'halt-approval'> {
  const halt = context.haltById(haltId);
  const covered = halt === undefined ? [] : [...coveredBy(context, halt, nowMs)].filter((each) => each.id === id);
  const steps = halt === undefined ? newSteps() : haltApprovals(context, halt, covered, nowMs);
  return { reply: ok(undefined), ...outcomeOf(steps) };
}

/** Iterates over approvals that the operation waits for. */
function* waitedForBy(approvals: ApprovalRegistry, orgId: string, opId: OpId): Iterable<Approval> {
  for (const approval of approvals.ofOp(orgId, opId)) {
    const isUnused = approval.state === 'pending' || approval.state === 'approved';
    if (isUnused && approval.opIds.includes(opId)) yield approval;
  }
}

/**
 * An operator has terminated an operation that waited: nothing is to begin because of what it asked for, so an approval
 * for which no other operation waits is cancelled. Gateways that share approvals do so in a turn of each.
 */
export function leaveApprovals(
  context: ApprovalContext,
  { agent, opId, actor }: { readonly agent: AgentIdentity; readonly opId: OpId; readonly actor: string },
  nowMs: number,
): Steps {
  const steps = newSteps();
  const turns = context.turnsOf();
  for (const approval of waitedForBy(context.approvals, agent.orgId, opId)) {
    if (turns === undefined) leaveOne(context, approval, opId, actor, nowMs, steps);
    else turns.leave(approval, opId, actor);
  }
  return steps;
}

function leaveApproval(
  context: ApprovalContext,
  { id, opId, actor }: CommandOf<'leave-approval'>,
  nowMs: number,
): Outcome<'leave-approval'> {
  const steps = newSteps();
  const orgId = context.approvals.get(id)?.agent.orgId ?? '';
  for (const approval of waitedForBy(context.approvals, orgId, opId))
    if (approval.id === id) leaveOne(context, approval, opId, actor, nowMs, steps);
  return { reply: ok(undefined), ...outcomeOf(steps) };
}

function leaveOne(
  context: ApprovalContext,
  approval: Approval,
  opId: OpId,
  actor: string,
  nowMs: number,
  steps: Steps,
): void {
  const others = approval.opIds.filter((each) => each !== opId && context.mayWait(agentOf(approval, each), each));
  if (others.length > 0) return save(context, { ...approval, opIds: others }, nowMs, steps);
  if (isDue(approval, nowMs)) return;
  const reason = `${actor} terminated operation ${opId}, which waited for it`;
  const after = cancelled(approval, reason, nowMs);
  apply(context, after, { eventType: 'ApprovalCancelled', actor, opId, reason }, nowMs, steps);
}

/** After the release of a halt, the clocks of approvals go on that no other halt freezes. */
export function thawApprovals(context: ApprovalContext, nowMs: number): Steps {
  const steps = newSteps();
  for (const approval of context.approvals.unused()) {
    if (approval.frozenAtMs === undefined || haltOver(context, approval) !== undefined) continue;
    save(context, thawed(approval, nowMs), nowMs, steps);
  }
  return steps;
}

/** Adopts another gateway's decision; undefined: the approval is gone. */
function adoptApproval(
  { approvals, decideLimit, dropPending }: ApprovalContext,
  { id, approval }: CommandOf<'adopt-approval'>,
): Replies['adopt-approval'] {
  if (approval === undefined) {
    approvals.remove(id);
    return ok({ isDecided: false });
  }
  const isNews = approvals.get(id)?.state !== approval.state;
  approvals.put(approval);
  // An operation runs at the gateway that checked it again: the pending one here was its first part.
  for (const opId of approval.usedBy) if (approval.opIds.includes(opId)) dropPending(approval.agent, opId);
  if (isNews) decideLimit(approval, approval.changedAtMs);
  return ok({ isDecided: ENDED.has(approval.state) || (approval.state === 'approved' && isNews) });
}

/** Ends the operations of this gateway that wait for an approval which is over, or sends them on. */
function followApproval(
  context: ApprovalContext,
  { id }: CommandOf<'follow-approval'>,
  nowMs: number,
): Outcome<'follow-approval'> {
  const steps = newSteps();
  const approval = context.approvals.get(id);
  if (approval !== undefined) {
    const isHalted = approval.state === 'cancelled' && approval.cancelReason?.startsWith('halt ') === true;
    endOrSendOn(context, approval, isHalted ? 'halted' : undefined, GATEWAY_ACTOR, nowMs, steps);
  }
  return { reply: ok(undefined), ...outcomeOf(steps) };
}

function visible(approvals: ApprovalRegistry, principal: Principal, id: string): Approval | undefined {
  const approval = approvals.get(id);
  return approval !== undefined && seesOrg(principal, approval.agent.orgId) ? approval : undefined;
}

/** Undefined where the command may be decided now. */
function turnFor({ turnsOf }: ApprovalContext, wanted: ApprovalTurn): { readonly turn: ApprovalTurn } | undefined {
  const turns = turnsOf();
  if (turns === undefined || ('digest' in wanted && turns.current === wanted.digest)) return undefined;
  return { turn: 'digest' in wanted ? { digest: wanted.digest } : wanted };
}

const noApproval = (id: string) => fail({ kind: 'not_found', what: `approval ${id}` } as const);

function refuseApprover(
  { id, terms: { approvers } }: Approval,
  { scopes }: Principal,
  lineage: Lineage,
): Result<never, Fault> | undefined {
  if (approvers.length > 0)
    return isNamed(lineage, approvers) ? undefined : fail({ kind: 'not_approver', approvalId: id, approvers });
  return holds(scopes, 'admin') ? undefined : fail({ kind: 'insufficient_scope', needed: 'admin', held: scopes });
}

/** The requester may still deny. */
const refuseOwn = ({ id }: Approval, kind: 'approve' | 'deny', isOwn: boolean): Result<never, Fault> | undefined =>
  kind === 'approve' && isOwn ? fail({ kind: 'own_request', approvalId: id }) : undefined;
