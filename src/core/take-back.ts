/**
 * Undoes changes that could not be recorded, so that the refusal sent to the caller is true (contract: Audit). Later changes
 * by other commands are kept.
 */
import type { AgentRegistration, AgentRegistry } from './agents.ts';
import type { BudgetTracker } from './budget.ts';
import { NO_EFFECTS, type Effect } from './effects.ts';
import type { AgentKey, OpId, SecretDigest } from './ids.ts';
import { isFinished, type OpState } from './op-state.ts';
import type { OpsRegistry } from './ops.ts';
import type { SignalBoxes } from './signals.ts';

/** What one command has changed, as far as it can be undone. */
export type Undo =
  | OpUndo
  /** `credential` is the one that the change has put in force, undefined after a deregistration. */
  | { readonly kind: 'registration'; readonly key: AgentKey; readonly credential: SecretDigest | undefined; readonly before: AgentRegistration | undefined };

/** What the operation held, and its number in the registry: after it was swept, another may have its id. */
type HoldUndo = { readonly opId: OpId; readonly number: number; readonly heldMicroUsd: number };
/**
 * The operation was `from`. One that was `absent` has been registered. One that was `terminated` was begun by a check: it is not
 * withdrawn but ended, because its agent may know it.
 */
type MoveUndo = HoldUndo & { readonly kind: 'move'; readonly from: OpState | 'absent'; readonly to: OpState; readonly acknowledgedAtMs: number | undefined };
type OpUndo = MoveUndo | (HoldUndo & { readonly kind: 'hold' });

/** An Allow begins an operation that is in one of these states, and moves no other. */
const BEGINS: ReadonlySet<MoveUndo['from']> = new Set(['absent', 'pending', 'terminated']);

/** The commands of a batch that are on their way to the log together. */
export type Applied = {
  /** In the order of the commands. */
  readonly undos: Undo[];
  /** The operations that its checks were allowed for, each with its highest estimate. */
  readonly allowed: ReadonlyMap<OpId, number>;
};

export type Registries = { readonly agents: AgentRegistry; readonly ops: OpsRegistry; readonly budgets: BudgetTracker; readonly signals: SignalBoxes };

/**
 * Undoes one change of a batch. `later` are the batches behind it, whose fate is open: where one of them builds on the change,
 * what it goes back to is all that changes, since it stands if that one is recorded. Returns the effects for the shell. They are
 * not recorded.
 */
export function takeBack(registries: Registries, undo: Undo, later: readonly Applied[], nowMs: number): readonly Effect[] {
  if (undo.kind === 'registration') return inheritRegistration(undo, later) ? NO_EFFECTS : takeBackRegistration(registries, undo);
  return inherit(registries, undo, later) || undo.kind === 'hold' ? NO_EFFECTS : takeBackMove(registries, undo, nowMs);
}

/** What undoes the beginnings of those of these operations that checks of a batch began: their numbers are above `since`. */
export function beginnings(ops: OpsRegistry, checked: readonly OpId[], undos: readonly Undo[], since: number): readonly MoveUndo[] {
  const registered = new Set(undos.flatMap((undo) => (undo.kind === 'move' && undo.from === 'absent' ? [undo.opId] : [])));
  return [...new Set(checked)].flatMap((opId) => {
    const slot = ops.find(opId);
    const number = slot === undefined ? since : ops.numberOf(slot);
    return number <= since || registered.has(opId) ? [] : { kind: 'move', opId, number, from: 'terminated', to: 'running', heldMicroUsd: 0, acknowledgedAtMs: undefined } as const;
  });
}

/** The changes of a batch, those of one operation in one: either all of them stand, or none. */
export function merged(undos: readonly Undo[]): readonly Undo[] {
  const others: Undo[] = [];
  const ofOps = new Map<number, OpUndo>();
  for (const undo of undos) {
    if (undo.kind === 'registration') others.push(undo);
    else ofOps.set(undo.number, both(ofOps.get(undo.number), undo));
  }
  return [...others, ...ofOps.values()];
}

function both(first: OpUndo | undefined, second: OpUndo): OpUndo {
  if (first === undefined) return second;
  if (second.kind === 'hold') return first;
  if (first.kind === 'hold') return { ...second, heldMicroUsd: first.heldMicroUsd };
  return { ...first, to: second.to, acknowledgedAtMs: first.acknowledgedAtMs ?? second.acknowledgedAtMs };
}

/** Of the money, only what is held for others remains. Whether a later batch has the operation in a state that builds on this move. */
function inherit({ ops, budgets }: Registries, undo: OpUndo, later: readonly Applied[]): boolean {
  const { opId, number } = undo;
  let heldMicroUsd = undo.heldMicroUsd;
  let isInherited = false;
  for (const { undos, allowed } of later) {
    const held = heldMicroUsd;
    let isKnown = false;
    for (const [at, next] of undos.entries()) {
      if (next.kind === 'registration' || next.number !== number) continue;
      isKnown = true;
      const least = Math.min(next.heldMicroUsd, held);
      if (undo.kind === 'move' && next.kind === 'move' && !isInherited) {
        undos[at] = { ...next, heldMicroUsd: least, from: undo.from, acknowledgedAtMs: undo.acknowledgedAtMs ?? next.acknowledgedAtMs };
        isInherited = true;
      } else undos[at] = { ...next, heldMicroUsd: least };
    }
    const estimate = allowed.get(opId);
    if (estimate === undefined) continue;
    heldMicroUsd = Math.max(held, estimate);
    if (!isInherited && undo.kind === 'move' && BEGINS.has(undo.from)) {
      undos.unshift(undo);
      isInherited = true;
    } else if (!isKnown && estimate > held) undos.unshift({ kind: 'hold', opId, number, heldMicroUsd: held });
  }
  const slot = ops.find(opId);
  if (slot !== undefined && ops.numberOf(slot) === number) budgets.holdAtMost(slot, heldMicroUsd);
  return isInherited;
}

function takeBackMove({ agents, ops, budgets, signals }: Registries, { opId, number, from, to, heldMicroUsd, acknowledgedAtMs }: MoveUndo, nowMs: number): readonly Effect[] {
  const slot = ops.find(opId);
  if (slot === undefined || ops.numberOf(slot) !== number || ops.stateOf(slot) !== to || from === to) return NO_EFFECTS;
  const owner = ops.ownerOf(slot);
  ops.restore(slot, from === 'absent' || from === 'terminated' ? 'pending' : from, nowMs);
  if (from === 'absent') {
    ops.withdraw(slot);
    agents.forgetIfUnused(owner);
    return NO_EFFECTS;
  }
  if (from === 'terminated') ops.advance(slot, 'terminate', nowMs);
  else if (isFinished(to)) budgets.holdAgain(owner.budget ?? owner.identity, slot, heldMicroUsd, nowMs);
  if (acknowledgedAtMs !== undefined) signals.setAcknowledged(opId, acknowledgedAtMs);
  return [{ kind: 'op-changed', op: { ...ops.recordOf(slot), acknowledgedAtMs } }];
}

function inheritRegistration({ key, before }: Extract<Undo, { kind: 'registration' }>, later: readonly Applied[]): boolean {
  for (const { undos } of later) {
    const at = undos.findIndex((next) => next.kind === 'registration' && next.key === key);
    const next = undos[at];
    if (next?.kind !== 'registration') continue;
    undos[at] = { ...next, before };
    return true;
  }
  return false;
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
