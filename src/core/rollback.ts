/**
 * Rolls back changes that could not be recorded, so that the refusal sent to the caller is true (docs/spec.md, Audit).
 * The last one is undone first, so each finds what it has changed as it left it.
 */
import type { AgentRegistration, AgentRegistry } from './agents/agents.ts';
import type { ApprovalRegistry } from './approvals/approvals.ts';
import { type ApprovalUndo, rollBackApproval } from './approvals/changes.ts';
import type { AgentKey, SecretDigest } from './base/ids.ts';
import { assertNever } from './base/result.ts';
import type { BudgetTracker } from './budget/budget.ts';
import type { CheckCommand } from './commands.ts';
import { type Effect, NO_EFFECTS } from './effects.ts';
import { explain } from './fault.ts';
import type { Halt } from './halts/halt.ts';
import type { HaltRegistry } from './halts/halts.ts';
import type { LimitTracker, LimitUndo, SaidUndo } from './limits/limits.ts';
import type { OpAbout, OpVerdict } from './ops/op-about.ts';
import { isFinished, type OpState } from './ops/op-state.ts';
import { viewOfOp } from './ops/op-view.ts';
import type { OpSlot, OpsRegistry } from './ops/ops.ts';
import type { SignalBoxes } from './ops/signals.ts';

/**
 * The operation was in the state `from`, or `absent` before it was registered. `number` is its own in the registry:
 * after it was swept, another operation may be in its slot.
 */
export type OpUndo = {
  readonly kind: 'op';
  readonly slot: OpSlot;
  readonly number: number;
  readonly from: OpState | 'absent';
  /** Its earlier description; undefined: unchanged. */
  readonly about: OpAbout | undefined;
  readonly heldMicroUsd: number;
  readonly heldUntilMs: number;
  readonly acknowledgedAtMs: number | undefined;
};
/** `credential` is the one that the change has put in force, undefined after a deregistration. */
type RegistrationUndo = {
  readonly kind: 'registration';
  readonly key: AgentKey;
  readonly credential: SecretDigest | undefined;
  readonly before: AgentRegistration | undefined;
};

/** The halt as it was, with the operations that it kept paused: slots by their numbers. Undefined: there was none. */
type HaltUndo = {
  readonly kind: 'halt';
  readonly id: string;
  readonly before: Halt | undefined;
  readonly paused: readonly (readonly [number: number, slot: number])[];
};
/** The moves of one slice of a halt. */
type OpsUndo = { readonly kind: 'ops'; readonly ops: readonly OpUndo[] };

/** In the order of the changes. */
type SeveralUndo = { readonly kind: 'several'; readonly undos: readonly Undo[] };

/** The changes of one command, as far as they can be undone. */
export type Undo = OpUndo | OpsUndo | RegistrationUndo | HaltUndo | ApprovalUndo | LimitUndo | SaidUndo | SeveralUndo;

export type Registries = {
  readonly agents: AgentRegistry;
  readonly ops: OpsRegistry;
  readonly budgets: BudgetTracker;
  readonly signals: SignalBoxes;
  readonly halts: HaltRegistry;
  readonly approvals: ApprovalRegistry;
  readonly limits: LimitTracker;
};

const COUNTS_CHANGED: readonly Effect[] = [{ kind: 'spend-recorded' }];

/** Returns the effects for the shell. They are not recorded. */
export function rollBack(registries: Registries, undo: Undo, nowMs: number): readonly Effect[] {
  switch (undo.kind) {
    case 'op':
      return rollBackOp(registries, undo, nowMs);
    case 'ops':
      return undo.ops.toReversed().flatMap((each) => rollBackOp(registries, each, nowMs));
    case 'registration':
      return rollBackRegistration(registries, undo);
    case 'halt':
      return rollBackHalt(registries, undo);
    case 'approval':
      return rollBackApproval(registries.approvals, undo);
    case 'limits':
      registries.limits.takeBack(undo, nowMs);
      return COUNTS_CHANGED;
    case 'limit-said':
      registries.limits.unsay(undo);
      return COUNTS_CHANGED;
    case 'several':
      return undo.undos.toReversed().flatMap((each) => rollBack(registries, each, nowMs));
    default:
      return assertNever(undo);
  }
}

/** The store follows: it took the change before the log could not. */
function rollBackHalt({ halts }: Registries, { id, before, paused }: HaltUndo): readonly Effect[] {
  halts.remove(id);
  if (before === undefined) return [{ kind: 'state-removed', table: 'halts', id }];
  halts.put(before);
  for (const [number, slot] of paused) halts.keepPaused(id, number, slot);
  return [
    { kind: 'state-saved', table: 'halts', id, row: before },
    { kind: 'halt-changed', halt: before },
  ];
}

function rollBackOp(
  { agents, ops, budgets, signals }: Registries,
  { slot, number, from, about, heldMicroUsd, heldUntilMs, acknowledgedAtMs }: OpUndo,
  nowMs: number,
): readonly Effect[] {
  if (!ops.holds(slot, number)) return NO_EFFECTS;
  const owner = ops.ownerOf(slot);
  if (from === 'absent') {
    signals.forget({ agent: owner.key, slot, number });
    ops.withdraw(slot);
    agents.dropIfUnused(owner);
    return NO_EFFECTS;
  }
  const to = ops.stateOf(slot);
  // Usage recorded meanwhile reduces the restored reservation. An operation that had finished held nothing to use.
  const microUsd = isFinished(to) ? heldMicroUsd : Math.min(heldMicroUsd, budgets.heldBy(slot));
  budgets.holdAgain(owner.budget ?? owner.identity, slot, { microUsd, untilMs: heldUntilMs }, nowMs);
  if (about !== undefined) ops.restoreAbout(slot, about);
  if (to === from) return NO_EFFECTS;
  ops.restore(slot, from, nowMs);
  if (acknowledgedAtMs !== undefined) signals.setAcknowledged(slot, number, acknowledgedAtMs);
  return [{ kind: 'op-changed', op: viewOfOp(ops.recordOf(slot), acknowledgedAtMs) }];
}

/** The store may have taken a later registration before this one, so that the later one is recorded, and stands. */
function rollBackRegistration(
  { agents }: Registries,
  { key, credential, before }: RegistrationUndo,
): readonly Effect[] {
  const entry = agents.get(key);
  if (entry?.credential !== credential) return NO_EFFECTS;
  const holder = before === undefined ? undefined : agents.ownerOf(before.credential);
  // If another agent has registered with the old token meanwhile, this one does not get it back.
  if (before !== undefined && (holder === undefined || holder === entry)) {
    // The old parent may descend from this agent by now, and a search for ancestors must not go in circles.
    const registration =
      before.parent !== undefined && agents.descends(before.parent, key) !== false
        ? { ...before, parent: undefined }
        : before;
    agents.register(registration);
    return [{ kind: 'agent-saved', key, registration, rotated: credential !== undefined }];
  }
  if (entry === undefined || !agents.deregister(key)) return NO_EFFECTS;
  return [{ kind: 'agent-removed', identity: entry.identity, key }];
}

/** A check that may have begun an operation. */
export type Begun = Pick<CheckCommand, 'opId' | 'agent'>;

const UNRECORDED: OpVerdict = {
  policy: undefined,
  ruleId: undefined,
  reason: explain({ kind: 'audit_unavailable' }),
  cause: 'unrecorded',
};

/**
 * Terminates the operations that these checks began after the operation with the number `lastBefore`, as nobody
 * received their Allow. They are not withdrawn, because their agents may know them.
 */
export function terminateBegun(
  { ops, budgets }: Registries,
  checks: readonly Begun[],
  lastBefore: number,
  nowMs: number,
): readonly Effect[] {
  return checks.flatMap(({ opId, agent }) => {
    const slot = ops.find(opId, agent.orgId);
    if (slot === undefined || ops.numberOf(slot) <= lastBefore) return [];
    const before = ops.stateOf(slot);
    const after = ops.advance(slot, 'terminate', nowMs, 'denied');
    if (after !== before) ops.decide(slot, UNRECORDED, undefined);
    budgets.release(slot);
    return after === before ? [] : [{ kind: 'op-changed', op: viewOfOp(ops.recordOf(slot), undefined) }];
  });
}
