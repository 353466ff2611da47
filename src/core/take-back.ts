/**
 * Undoes changes that could not be recorded, so that the refusal sent to the caller is true (contract: Audit). Later changes
 * by other commands are kept.
 */
import type { AgentRegistration, AgentRegistry } from './agents.ts';
import type { BudgetTracker } from './budget.ts';
import { NO_EFFECTS, type Effect } from './effects.ts';
import type { AgentKey, OpId, SecretDigest } from './ids.ts';
import type { OpState } from './op-state.ts';
import type { OpsRegistry, OpSlot } from './ops.ts';
import type { SignalBoxes } from './signals.ts';

/** What one command has changed, as far as it can be undone. */
export type Undo =
  | { readonly kind: 'move'; readonly opId: OpId; readonly from: OpState; readonly to: OpState; readonly atMs: number; readonly acknowledgedAtMs: number | undefined }
  | { readonly kind: 'ingest'; readonly opId: OpId; readonly atMs: number }
  /** `credential` is the one that the change has put in force, undefined after a deregistration. */
  | { readonly kind: 'registration'; readonly key: AgentKey; readonly credential: SecretDigest | undefined; readonly before: AgentRegistration | undefined };

export type Registries = { readonly agents: AgentRegistry; readonly ops: OpsRegistry; readonly budgets: BudgetTracker; readonly signals: SignalBoxes };

/** Returns the effects for the shell. They are not recorded. */
export function takeBack(registries: Registries, undo: Undo, nowMs: number): readonly Effect[] {
  switch (undo.kind) {
    case 'move': return takeBackMove(registries, undo, nowMs);
    case 'ingest': return takeBackIngest(registries, undo, nowMs);
    case 'registration': return takeBackRegistration(registries, undo);
  }
}

/** A reservation that ended with the operation does not come back: it held money that was not spent. */
function takeBackMove({ ops, budgets, signals }: Registries, { opId, from, to, atMs, acknowledgedAtMs }: Extract<Undo, { kind: 'move' }>, nowMs: number): readonly Effect[] {
  const slot = slotAsOf(ops, opId, to, [atMs, nowMs]);
  if (slot === undefined) return NO_EFFECTS;
  ops.restore(slot, from, nowMs);
  if (from === 'pending') budgets.release(slot); // held by the Allow that nobody received
  if (acknowledgedAtMs !== undefined) signals.setAcknowledged(opId, acknowledgedAtMs);
  return [{ kind: 'op-changed', op: { ...ops.recordOf(slot), acknowledgedAtMs } }];
}

function takeBackIngest({ agents, ops }: Registries, { opId, atMs }: Extract<Undo, { kind: 'ingest' }>, nowMs: number): readonly Effect[] {
  const slot = slotAsOf(ops, opId, 'pending', [atMs, nowMs]);
  if (slot === undefined) return NO_EFFECTS;
  const owner = ops.ownerOf(slot);
  ops.withdraw(slot);
  agents.forgetIfUnused(owner);
  return NO_EFFECTS;
}

function takeBackRegistration({ agents }: Registries, { key, credential, before }: Extract<Undo, { kind: 'registration' }>): readonly Effect[] {
  const entry = agents.get(key);
  if (entry?.credential !== credential) return NO_EFFECTS;
  const holder = before === undefined ? undefined : agents.ownerOf(before.credential);
  // If another agent has registered with the old token meanwhile, this one does not get it back.
  if (before !== undefined && (holder === undefined || holder === entry)) {
    // The old parent may descend from this agent by now, and a search for ancestors must not go in circles.
    const registration = before.parent !== undefined && agents.descends(before.parent, key) ? { ...before, parent: undefined } : before;
    agents.register(registration);
    return [{ kind: 'agent-saved', key, registration, rotated: credential !== undefined }];
  }
  if (entry === undefined || !agents.deregister(key)) return NO_EFFECTS;
  return [{ kind: 'agent-removed', identity: entry.identity, key }];
}

/** The operation, if it is in this state and last moved at one of these times. */
function slotAsOf(ops: OpsRegistry, opId: OpId, state: OpState, sinceMs: readonly number[]): OpSlot | undefined {
  const slot = ops.find(opId);
  return slot !== undefined && ops.stateOf(slot) === state && sinceMs.includes(ops.recordOf(slot).updatedAtMs) ? slot : undefined;
}

/**
 * Ends the operations that checks started at `sinceMs` or later and whose Allow could not be recorded, so that no caller ever
 * received it. Returns the operations it has ended.
 */
export function revokeUnrecorded({ ops, budgets }: Registries, opIds: readonly OpId[], sinceMs: number, nowMs: number): readonly Effect[] {
  return opIds.flatMap((opId) => {
    const slot = ops.find(opId);
    if (slot === undefined || ops.recordOf(slot).registeredAtMs < sinceMs) return [];
    const before = ops.stateOf(slot);
    const after = ops.advance(slot, 'terminate', nowMs);
    budgets.release(slot);
    return after === undefined || after === before ? [] : [{ kind: 'op-changed', op: { ...ops.recordOf(slot), acknowledgedAtMs: undefined } }];
  });
}
