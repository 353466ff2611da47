/** Halts as operators handle them: put in force, enforced on what runs, released, listed (docs/spec.md, Halts). */

import type { AgentRegistry } from '../agents/agents.ts';
import { lineageOfOrg } from '../audit/audit.ts';
import { agentKeyOf } from '../base/ids.ts';
import { BAD_CURSOR, firstPage } from '../base/page.ts';
import { fail, ok } from '../base/result.ts';
import type { CommandOf, Replies } from '../commands.ts';
import type { Effect } from '../effects.ts';
import { invalid } from '../fault.ts';
import { refuseWithout } from '../identity/access.ts';
import { type Principal, seesOrg } from '../identity/roles.ts';
import type { OpSlot, OpsRegistry } from '../ops/ops.ts';
import { type Outcome, unchanged } from '../outcome.ts';
import type { OpUndo } from '../rollback.ts';
import {
  type EnforcementPlace,
  formatHaltScope,
  HALT_SCOPE_FORMS,
  type Halt,
  type HaltScope,
  orgOfScope,
  parseHaltScope,
} from './halt.ts';
import { type HaltRegistry, MAX_ACTIVE_HALTS } from './halts.ts';
import { isKnown } from './match.ts';

export type HaltContext = {
  readonly halts: HaltRegistry;
  readonly agents: AgentRegistry;
  readonly ops: OpsRegistry;
};

/**
 * The cause recorded for every operation that a halt moves; the same object for a whole slice, which is encoded faster.
 */
type Cause = { readonly actor: string; readonly payload: { readonly halt_id: string } };

/** Moves an operation for a halt; undefined where it stays as it is. */
export type MoveOp = (
  slot: OpSlot,
  trigger: 'pause' | 'resume' | 'terminate',
  cause: Cause,
) => { readonly effects: readonly Effect[]; readonly undo: OpUndo } | undefined;

/**
 * Puts a halt in force: from here on, nothing that it covers begins. Running operations are stopped by {@link
 * enforceHalt}.
 */
export function createHalt(
  { agents, halts }: HaltContext,
  { principal, halt: asked }: CommandOf<'create-halt'>,
  nowMs: number,
): Outcome<'create-halt'> {
  const scope = parseHaltScope(asked.scope);
  if (scope === undefined) return unchanged(invalid('scope', `must be ${HALT_SCOPE_FORMS}`));
  // Agents may have names with a star, and are stopped by them.
  if (asked.scope.includes('*') && !isKnown(agents, scope))
    return unchanged(invalid('scope', 'is a name, not a pattern: halt each by its name, or global'));
  const refused = refuseOutOfReach(principal, scope);
  if (refused !== undefined) return unchanged(refused);
  if (asked.expiresAtMs !== undefined && asked.expiresAtMs <= nowMs)
    return unchanged(invalid('expires_at', 'must be in the future'));
  if (halts.activeCount >= MAX_ACTIVE_HALTS)
    return unchanged(
      fail({ kind: 'conflict', detail: `${MAX_ACTIVE_HALTS} halts are in force; release those no longer needed` }),
    );
  const halt: Halt = {
    ...asked,
    scope: formatHaltScope(scope),
    createdBy: principal.subject,
    createdAtMs: nowMs,
    released: undefined,
  };
  halts.put(halt);
  return {
    reply: ok(halt),
    undo: { kind: 'halt', id: halt.id, before: undefined, paused: [] },
    effects: [{ kind: 'state-saved', table: 'halts', id: halt.id, row: halt }, auditOf(halt), changedOf(halt)],
  };
}

/** Ends a halt. Operations it has paused are resumed by {@link resumeHalted}. Released again, it stays as it is. */
export function releaseHalt(
  { halts }: HaltContext,
  { principal, id, reason }: CommandOf<'release-halt'>,
  nowMs: number,
): Outcome<'release-halt'> {
  const before = halts.get(id);
  const scope = before === undefined ? undefined : parseHaltScope(before.scope);
  if (before === undefined || scope === undefined || !isVisible(principal, scope))
    return unchanged(fail({ kind: 'not_found', what: `halt ${id}` }));
  const refused = refuseOutOfReach(principal, scope);
  if (refused !== undefined) return unchanged(refused);
  if (before.released !== undefined) return unchanged(ok({ halt: before, paused: [] }));
  const paused = [...halts.pausedBy(id)];
  const halt: Halt = { ...before, released: { atMs: nowMs, by: principal.subject, reason } };
  halts.put(halt);
  const dropped = [...halts.excess()].map((old): Effect => {
    halts.remove(old);
    return { kind: 'state-removed', table: 'halts', id: old };
  });
  return {
    reply: ok({ halt, paused }),
    undo: { kind: 'halt', id, before, paused },
    effects: [{ kind: 'state-saved', table: 'halts', id, row: halt }, ...dropped, auditOf(halt), changedOf(halt)],
  };
}

/**
 * Adopts another gateway's halt. The operations it covers here are stopped, or resumed, as for a halt of this gateway.
 */
export function adoptHalt({ halts }: HaltContext, { id, halt }: CommandOf<'adopt-halt'>): Replies['adopt-halt'] {
  const before = halts.get(id);
  const paused = [...halts.pausedBy(id)];
  if (halt === undefined) halts.remove(id);
  else halts.put(halt);
  return ok({ before, paused: halt === undefined || halt.released !== undefined ? paused : [] });
}

export function listHalts(
  { halts }: HaltContext,
  { principal, active, perPage, cursor }: CommandOf<'list-halts'>,
): Replies['list-halts'] {
  const visible = [...halts.all()].filter((halt) => {
    const scope = parseHaltScope(halt.scope);
    const isWanted = active === undefined || active === (halt.released === undefined);
    return isWanted && scope !== undefined && isVisible(principal, scope);
  });
  const start = cursor === undefined ? 0 : visible.findIndex(({ id }) => id === cursor) + 1;
  // The halt that the last page ended with may have been dropped since.
  if (cursor !== undefined && start === 0) return BAD_CURSOR;
  return ok(firstPage(visible.slice(start), perPage, ({ id }) => id));
}

/**
 * Stops some of what the halt covers: `most` operations are looked at. Called again with the place it returns, until
 * there is none. Nothing that the halt covers begins meanwhile, so one walk finds all.
 */
export function enforceHalt(
  context: HaltContext,
  { id, from, most }: CommandOf<'enforce-halt'>,
  move: MoveOp,
): Outcome<'enforce-halt'> {
  const halt = context.halts.get(id);
  const scope = halt === undefined ? undefined : parseHaltScope(halt.scope);
  if (halt === undefined || scope === undefined || halt.released !== undefined)
    return unchanged(ok({ changed: 0, next: undefined }));
  const { ops, next } = slice(context, scope, from, most);
  const effects: Effect[] = [];
  const undos: OpUndo[] = [];
  const cause = { actor: halt.createdBy, payload: { halt_id: halt.id } };
  for (const slot of ops) {
    const stopped = stop(context, halt, slot, (trigger) => move(slot, trigger, cause));
    if (stopped === undefined) continue;
    effects.push(...stopped.effects);
    undos.push(stopped.undo);
  }
  return { reply: ok({ changed: undos.length, next }), effects, undo: { kind: 'ops', ops: undos } };
}

/** Resumes operations that a released halt had paused, unless another halt keeps them paused. */
export function resumeHalted(
  { ops, halts }: HaltContext,
  { halt, actor, paused }: CommandOf<'resume-halted'>,
  move: MoveOp,
): Outcome<'resume-halted'> {
  const effects: Effect[] = [];
  const undos: OpUndo[] = [];
  const cause = { actor, payload: { halt_id: halt.id } };
  for (const [number, at] of paused) {
    const slot = at as OpSlot;
    if (!ops.holds(slot, number) || halts.isKeptPaused(number)) continue;
    // A halt that came into force since the release found the operation paused, and left it so.
    const other = halts.coveringAny(ops.ownerOf(slot), (isCovered) => ops.isAnyAction(slot, isCovered));
    if (other !== undefined) {
      if (ops.stateOf(slot) === 'paused') halts.keepPaused(other.id, number, slot);
      continue;
    }
    const resumed = move(slot, 'resume', cause);
    if (resumed === undefined) continue;
    effects.push(...resumed.effects);
    undos.push(resumed.undo);
  }
  return { reply: ok({ changed: undos.length }), effects, undo: { kind: 'ops', ops: undos } };
}

/** Undefined if the operation is not the halt's to stop, or is stopped already. */
function stop(
  { halts, ops }: HaltContext,
  halt: Halt,
  slot: OpSlot,
  move: (trigger: 'pause' | 'terminate') => ReturnType<MoveOp>,
): ReturnType<MoveOp> {
  const entry = ops.ownerOf(slot);
  if (!halts.reaches(halt.id, entry, (isCovered) => ops.isAnyAction(slot, isCovered))) return undefined;
  const number = ops.numberOf(slot);
  const state = ops.stateOf(slot);
  if (halt.mode === 'terminate') return move('terminate');
  if (state === 'paused' && halts.isKeptPaused(number)) halts.keepPaused(halt.id, number, slot);
  if (state !== 'running') return undefined;
  halts.keepPaused(halt.id, number, slot);
  return move('pause');
}

/** The operations of the scope, or of the org around it: a lineage may reach across the teams of its org. */
function slice(
  { agents, ops }: HaltContext,
  scope: HaltScope,
  from: EnforcementPlace | undefined,
  most: number,
): { readonly ops: readonly OpSlot[]; readonly next: EnforcementPlace | undefined } {
  if (scope.tier === 'global') {
    const page = ops.list(undefined, most, from !== undefined && 'slot' in from ? from.slot : 0);
    return { ops: page.ops, next: page.next === undefined ? undefined : { slot: page.next } };
  }
  const org = agents.groups.orgs.get(scope.orgId);
  const [list, holder] =
    scope.tier === 'agent'
      ? (['agent', agents.get(agentKeyOf(scope))] as const)
      : scope.tier === 'team'
        ? (['team', org?.teams.get(scope.teamId)] as const)
        : (['org', org] as const);
  if (holder === undefined) return { ops: [], next: undefined };
  const place = from !== undefined && 'place' in from ? from.place : undefined;
  const page = ops.walk(list, holder, undefined, most, { steps: most }, place);
  return { ops: page.ops, next: page.next === undefined ? undefined : { place: page.next } };
}

/** An org-bound credential sees the halts of its org, and the global ones. */
const isVisible = (principal: Principal, scope: HaltScope): boolean =>
  scope.tier === 'global' || seesOrg(principal, scope.orgId);

/** The gateway itself, where a halt expires. */
export const GATEWAY: Principal = { subject: 'gateway', scopes: ['admin'], orgId: null };

function refuseOutOfReach(principal: Principal, scope: HaltScope) {
  const withoutScope = refuseWithout('admin', principal);
  if (withoutScope !== undefined) return withoutScope;
  const orgId = orgOfScope(scope);
  if (principal.orgId === null || principal.orgId === orgId) return undefined;
  return fail({ kind: 'org_forbidden', orgId: orgId ?? undefined } as const);
}

function auditOf(halt: Halt): Effect {
  const scope = parseHaltScope(halt.scope);
  const { released } = halt;
  return {
    kind: 'audit',
    draft: {
      eventType: released === undefined ? 'HaltCreated' : 'HaltReleased',
      lineage: lineageOfOrg(scope === undefined ? null : orgOfScope(scope)),
      actor: released === undefined ? halt.createdBy : released.by,
      reason: released === undefined ? halt.reason : released.reason,
      payload: { halt_id: halt.id, scope: halt.scope, mode: halt.mode, actions: halt.actions },
    },
  };
}

const changedOf = (halt: Halt): Effect => ({ kind: 'halt-changed', halt });
