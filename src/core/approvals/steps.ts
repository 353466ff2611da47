/** How commands change approvals, one after the other, and what each change does to those who wait. */
import type { AgentIdentity, OpId } from '../base/ids.ts';
import type { Effect } from '../effects.ts';
import type { Halt } from '../halts/halt.ts';
import type { Outcome } from '../outcome.ts';
import type { Undo } from '../rollback.ts';
import { type Approval, agentOf } from './approval.ts';
import type { ApprovalRegistry, ApprovalTurns } from './approvals.ts';
import { ENDED, endedReason } from './asking.ts';
import { changeApproval } from './changes.ts';

export type ApprovalContext = {
  readonly approvals: ApprovalRegistry;
  /** Undefined where nobody shares them. */
  readonly turnsOf: () => ApprovalTurns | undefined;
  /** The halt in force that covers this action of the agent. */
  readonly haltOf: (agent: AgentIdentity, action: string) => Halt | undefined;
  readonly haltById: (id: string) => Halt | undefined;
  /** Whether this halt covers this action of the agent. */
  readonly reaches: (haltId: string, agent: AgentIdentity, action: string) => boolean;
  /** Ends an operation of the agent that waits; undefined where it does not wait. */
  readonly endOp: (
    agent: AgentIdentity,
    opId: OpId,
    how: { readonly end: 'denied' | 'halted' | 'expired'; readonly reason: string; readonly actor: string },
    nowMs: number,
  ) => { readonly effects: readonly Effect[]; readonly undo: Undo } | undefined;
  /** The signal to an operation of the agent that it may be checked again; undefined where it does not wait. */
  readonly sendOn: (agent: AgentIdentity, opId: OpId) => Effect | undefined;
  /** Whether an operation of the agent may still wait: it does so here, or is not known here. */
  readonly mayWait: (agent: AgentIdentity, opId: OpId) => boolean;
  /** A limit is raised for the key of the approval, or is not; undefined where it changes nothing. */
  readonly decideLimit: (
    approval: Approval,
    nowMs: number,
  ) => { readonly effects: readonly Effect[]; readonly undo: Undo } | undefined;
  /** Forgets an operation of the agent that waits here and has begun elsewhere. */
  readonly dropPending: (agent: AgentIdentity, opId: OpId) => void;
};

/** The effects of a command so far, and how to undo them. */
export type Steps = { readonly effects: Effect[]; readonly undos: Undo[] };
export const newSteps = (): Steps => ({ effects: [], undos: [] });

/** The outcome of a change, with what else its command has done. */
export const withSteps = <O extends Pick<Outcome, 'effects' | 'undo'>>(outcome: O, undo: Undo, steps: Steps): O => ({
  ...outcome,
  effects: [...outcome.effects, ...steps.effects],
  undo: { kind: 'several', undos: [undo, ...steps.undos] },
});

/** Puts the change in force, and lets the operations that waited know if it ends their waiting. */
export function apply(
  context: ApprovalContext,
  after: Approval,
  { end, ...entry }: NonNullable<Parameters<typeof changeApproval>[2]> & { readonly end?: 'halted' },
  nowMs: number,
  steps: Steps,
): void {
  const changed = changeApproval(context.approvals, after, entry, nowMs);
  steps.effects.push(...changed.effects);
  steps.undos.push(changed.undo);
  const limited = context.decideLimit(after, nowMs);
  if (limited !== undefined) {
    steps.effects.push(...limited.effects);
    steps.undos.push(limited.undo);
  }
  endOrSendOn(context, after, end, entry.actor, nowMs, steps);
}

/** Without a yes they end. */
export function endOrSendOn(
  context: ApprovalContext,
  after: Approval,
  end: 'halted' | undefined,
  actor: string,
  nowMs: number,
  { effects, undos }: Steps,
): void {
  const { state } = after;
  if (state === 'approved') {
    const signals = after.opIds.map((opId) => context.sendOn(agentOf(after, opId), opId));
    effects.push(...signals.filter((signal) => signal !== undefined));
  }
  if (!ENDED.has(state)) return;
  const how = {
    end: end ?? (state === 'expired' ? 'expired' : 'denied'),
    reason: endedReason(after, state),
    actor,
  } as const;
  for (const opId of after.opIds) {
    const ended = context.endOp(agentOf(after, opId), opId, how, nowMs);
    if (ended === undefined) continue;
    effects.push(...ended.effects);
    undos.push(ended.undo);
  }
}

export function save({ approvals }: ApprovalContext, after: Approval, nowMs: number, { effects, undos }: Steps): void {
  const changed = changeApproval(approvals, after, undefined, nowMs);
  effects.push(...changed.effects);
  undos.push(changed.undo);
}

export const outcomeOf = ({ effects, undos }: Steps): { readonly effects: readonly Effect[]; readonly undo: Undo } => ({
  effects,
  undo: { kind: 'several', undos },
});
