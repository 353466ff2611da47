import type { OpId } from '../base/ids.ts';
import { Multimap } from '../base/lists.ts';
import { type Approval, isOpen, setBackTo } from './approval.ts';

/** Approvals that wait for people, in all orgs together and in one; beyond that, checks that need one are refused. */
export const MAX_PENDING = 10_000;
export const MAX_PENDING_OF_ORG = 2_000;
/** Approvals that are over and still listed; the oldest are dropped. */
const MAX_OVER = 10_000;

/**
 * In a cluster, an approval changes only in a turn, during which no other gateway changes any with its digest, and from
 * its newest state.
 */
export type ApprovalTurns = {
  /** The digest whose turn it is. */
  current: string | undefined;
  /** Whether a turn of this digest may still fail. */
  isBusy: (digest: string) => boolean;
  /** Has the operation leave those who wait for the approval, in a turn to come. */
  leave: (approval: Approval, opId: OpId, actor: string) => void;
};

/** No org has a space in its name. */
const opKeyOf = (orgId: string, opId: OpId): string => `${orgId} ${opId}`;

/** Approvals by id, by what they are bound to, and by the operations that wait for them. */
export class ApprovalRegistry {
  readonly #byId = new Map<string, Approval>();
  /** The latest of each digest: at most one of them is open. */
  readonly #byDigest = new Map<string, string>();
  readonly #byOp = new Multimap<string, string>();
  /** Approvals whose time may end: pending or approved. */
  readonly #ticking = new Set<string>();
  /** Approvals that are over, in the order in which they ended here. */
  readonly #over = new Set<string>();
  readonly #pendingOfOrg = new Map<string, number>();
  #pending = 0;

  get size(): number {
    return this.#byId.size;
  }

  get pendingCount(): number {
    return this.#pending;
  }

  pendingOfOrg(orgId: string): number {
    return this.#pendingOfOrg.get(orgId) ?? 0;
  }

  get(id: string): Approval | undefined {
    return this.#byId.get(id);
  }

  /** The newest first. */
  *all(): Iterable<Approval> {
    for (const approval of [...this.#byId.values()].reverse()) yield approval;
  }

  /** Iterates over approvals that are pending, or approved and not yet used. */
  *unused(): Iterable<Approval> {
    for (const id of [...this.#ticking]) {
      const approval = this.#byId.get(id);
      if (approval !== undefined) yield approval;
    }
  }

  /** The one that waits, or can be used, for a check with this digest. */
  openFor(digest: string, nowMs: number): Approval | undefined {
    const approval = this.latestFor(digest);
    return approval !== undefined && isOpen(approval, nowMs) ? approval : undefined;
  }

  latestFor(digest: string): Approval | undefined {
    return this.#byId.get(this.#byDigest.get(digest) ?? '');
  }

  /** Whether the operation waited for an approval, or used one. */
  hasOp(orgId: string, opId: OpId): boolean {
    return this.#byId.size > 0 && this.#byOp.has(opKeyOf(orgId, opId));
  }

  /** Iterates over approvals that the operation waited for or used, the oldest first. */
  *ofOp(orgId: string, opId: OpId): Iterable<Approval> {
    for (const id of this.#byOp.of(opKeyOf(orgId, opId))) {
      const approval = this.#byId.get(id);
      if (approval !== undefined) yield approval;
    }
  }

  /** Adds the approval, or puts it in place of the one with its id. */
  put(approval: Approval): void {
    const before = this.#byId.get(approval.id);
    if (before !== undefined) this.#unindex(before);
    this.#byId.set(approval.id, approval);
    const latest = this.latestFor(approval.digest);
    if (latest === undefined || latest.requestedAtMs <= approval.requestedAtMs)
      this.#byDigest.set(approval.digest, approval.id);
    const { orgId } = approval.agent;
    for (const opId of [...approval.opIds, ...approval.usedBy]) this.#byOp.add(opKeyOf(orgId, opId), approval.id);
    if (approval.state === 'pending') this.#countPending(orgId, 1);
    if (approval.state === 'pending' || approval.state === 'approved') this.#ticking.add(approval.id);
    else this.#over.add(approval.id);
  }

  /** The clock was set back: none was asked for later than now, or lasts longer than one that changes now. */
  setBack(nowMs: number): void {
    for (const approval of [...this.#byId.values()]) {
      const setBack = setBackTo(approval, nowMs);
      if (setBack !== approval) this.put(setBack);
    }
  }

  remove(id: string): void {
    const approval = this.#byId.get(id);
    if (approval === undefined) return;
    this.#unindex(approval);
    this.#byId.delete(id);
    if (this.#byDigest.get(approval.digest) === id) this.#byDigest.delete(approval.digest);
  }

  /**
   * Iterates over approvals that are over and that listings no longer need; the caller removes them, from its store
   * too.
   */
  *excess(nowMs: number): Iterable<string> {
    let excess = this.#over.size - MAX_OVER;
    for (const id of this.#over) {
      if (excess <= 0) return;
      const approval = this.#byId.get(id);
      if (approval !== undefined && isOpen(approval, nowMs)) continue;
      excess -= 1;
      yield id;
    }
  }

  #unindex({ id, state, agent: { orgId }, opIds, usedBy }: Approval): void {
    this.#ticking.delete(id);
    this.#over.delete(id);
    if (state === 'pending') this.#countPending(orgId, -1);
    for (const opId of [...opIds, ...usedBy]) this.#byOp.delete(opKeyOf(orgId, opId), id);
  }

  #countPending(orgId: string, by: 1 | -1): void {
    this.#pending += by;
    const count = this.pendingOfOrg(orgId) + by;
    if (count === 0) this.#pendingOfOrg.delete(orgId);
    else this.#pendingOfOrg.set(orgId, count);
  }
}
