/** Operations outside a check: their registration, the orders to them, their end, and what callers see of them. */

import type { AgentRegistry } from '../agents/agents.ts';
import { ownedBy, speakerOf } from '../agents/own-calls.ts';
import { leaveApprovals } from '../approvals/commands.ts';
import { type ApprovalContext, withSteps } from '../approvals/steps.ts';
import { redactText } from '../audit/redact-text.ts';
import { agentKeyOf } from '../base/ids.ts';
import { BAD_CURSOR } from '../base/page.ts';
import { fail, ok } from '../base/result.ts';
import { type CheckState, refuseIfFull } from '../check/check.ts';
import type { CommandOf, Completion, Replies } from '../commands.ts';
import type { HaltRegistry } from '../halts/halts.ts';
import { orgInReach } from '../identity/access.ts';
import { seesOrg } from '../identity/roles.ts';
import { pageOfOps } from '../listings/ops-page.ts';
import { type Outcome, unchanged } from '../outcome.ts';
import { completionPayload } from '../prices/payload.ts';
import { visibleOp } from './find.ts';
import type { Moved, OpMoves } from './moves.ts';
import type { OpSlot, OpsRegistry } from './ops.ts';

export type OpContext = {
  readonly agents: AgentRegistry;
  readonly approvals: ApprovalContext;
  readonly halts: HaltRegistry;
  readonly moves: OpMoves;
  readonly ops: OpsRegistry;
  readonly state: CheckState;
};

export function registerOp(
  { agents, halts, moves, ops, state }: OpContext,
  { principal, opId, agent }: CommandOf<'register-op'>,
  nowMs: number,
): Outcome<'register-op'> {
  if (!seesOrg(principal, agent.orgId)) return unchanged(fail({ kind: 'org_forbidden', orgId: agent.orgId }));
  const known = ops.find(opId, agent.orgId);
  if (known !== undefined) {
    const owner = ops.ownerOf(known);
    if (owner.key === agentKeyOf(agent)) return unchanged(ok({ op: moves.viewOf(known), created: false }));
    return unchanged(fail({ kind: 'conflict', detail: `operation ${opId} belongs to another agent` }));
  }
  const entry = agents.lookUp(agent);
  const halt = halts.coveringAll(entry);
  if (halt !== undefined) return unchanged(fail({ kind: 'halted', haltId: halt.id, reason: halt.reason }));
  const full = refuseIfFull(state, entry);
  if (full !== undefined) return unchanged(full);
  const slot = ops.ingest(opId, agents.keep(entry), nowMs);
  return {
    reply: ok({ op: moves.viewOf(slot), created: true }),
    effects: moves.moved(slot, 'OpRegistered', principal.subject),
    undo: {
      kind: 'op',
      slot,
      number: ops.lastNumber,
      from: 'absent',
      about: undefined,
      heldMicroUsd: 0,
      heldUntilMs: 0,
      acknowledgedAtMs: undefined,
    },
  };
}

export function controlOp(context: OpContext, command: CommandOf<'control-op'>, nowMs: number): Outcome<'control-op'> {
  const { approvals, halts, moves, ops } = context;
  const { principal, trigger } = command;
  const found = visibleOp(ops, command);
  if (!found.ok) return unchanged(found);
  const slot = found.value;
  if (trigger === 'resume') {
    // A halt keeps a paused operation from running on.
    const halt = halts.coveringAny(ops.ownerOf(slot), (isCovered) => ops.isAnyAction(slot, isCovered));
    if (halt !== undefined) return unchanged(fail({ kind: 'halted', haltId: halt.id, reason: halt.reason }));
  }
  const actor = principal.subject;
  if (trigger === 'complete') return complete(moves, slot, actor, command, nowMs);
  const isWaiting = trigger === 'terminate' && ops.stateOf(slot) === 'pending';
  const moved = moves.move(slot, { trigger, actor }, nowMs);
  if (!isWaiting || moved.undo === undefined) return moved;
  const left = { agent: ops.ownerOf(slot).identity, opId: command.opId, actor };
  return withSteps(moved, moved.undo, leaveApprovals(approvals, left, nowMs));
}

export function completeOp(
  { agents, moves, ops }: OpContext,
  command: CommandOf<'complete-op'>,
  nowMs: number,
): Outcome<'complete-op'> {
  const speaker = speakerOf(agents, command, nowMs);
  if ('reply' in speaker) return speaker;
  const slot = ownedBy(ops, speaker.entry, command.opId);
  if (!slot.ok) return unchanged(slot);
  return complete(moves, slot.value, speaker.actor, command, nowMs);
}

function complete(
  moves: OpMoves,
  slot: OpSlot,
  actor: string,
  { outcome, error, priced }: Completion,
  nowMs: number,
): Moved {
  const end = outcome === 'failure' ? 'failed' : 'completed';
  const shown = error === undefined ? undefined : redactText(error);
  const payload = completionPayload(outcome, shown, priced);
  return moves.move(slot, { trigger: 'complete', end, error: shown, actor, payload }, nowMs);
}

export function getOp({ moves, ops }: OpContext, command: CommandOf<'get-op'>): Replies['get-op'] {
  const slot = visibleOp(ops, command);
  return slot.ok ? ok(moves.viewOf(slot.value)) : slot;
}

export function listOps({ agents, moves, ops }: OpContext, command: CommandOf<'list-ops'>): Replies['list-ops'] {
  const org = orgInReach(command.principal, command.orgId);
  if (!org.ok) return org;
  const page = pageOfOps({ agents, ops }, { ...command, orgId: org.value });
  if (page === undefined) return BAD_CURSOR;
  return ok({ items: page.items.map((slot) => moves.viewOf(slot)), next: page.next });
}
