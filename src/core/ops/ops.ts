import type { AgentEntry } from '../agents/agent-entry.ts';
import type { Brand, OpId } from '../base/ids.ts';
import { assert } from '../base/result.ts';
import { cutText } from '../base/text.ts';
import { FinishedOps } from './finished-ops.ts';
import type { AboutColumns, AboutFilter, OpAbout, OpVerdict } from './op-about.ts';
import { CHUNK_BITS, Chunk, FREE, firstTaken, LIST_AT, NONE, type OpList, SLOT_MASK } from './op-chunk.ts';
import { OpIndex } from './op-index.ts';
import {
  addToCount,
  CODE_OF,
  END_BY,
  isFinished,
  nextState,
  OP_STATES,
  type OpCounts,
  type OpEnd,
  type OpState,
  type OpTrigger,
  zeroOpCounts,
} from './op-state.ts';
import type { OpRecord } from './op-view.ts';

/** The position of an operation in the registry. Valid until the operation is swept. */
export type OpSlot = Brand<number, 'OpSlot'>;

/**
 * An org, team or agent as the holder of a linked list of its operations, oldest first. The registry keeps both ends.
 */
export type OpHolder = { firstOp: number; lastOp: number };

/**
 * A place in the walk over a list: go on with the first operation whose number is at least `from`, looking from `slot`
 * on if that still holds the operation with the number `number`, else from the beginning.
 */
export type OpPlace = { readonly from: number; readonly slot: number; readonly number: number };

/** The remaining work that one page of a listing may cost. */
export type ScanBudget = { steps: number };

function moveOne(counts: OpCounts, from: OpState, to: OpState): void {
  addToCount(counts, from, -1);
  addToCount(counts, to, 1);
}

/** Characters of errors that are kept in full, of all operations together: an agent may report a kilobyte for each. */
const MAX_ERROR_CHARACTERS = 16_000_000;
/** The length to which an error is cut once the total is exceeded. */
const LEAST_ERROR = 64;

/**
 * The registry of operations in flight: authoritative, in memory, owned by one thread (docs/spec.md, States and
 * transitions).
 */
export class OpsRegistry {
  readonly #chunks: Chunk[] = [];
  readonly #finished = new FinishedOps(this.#chunks);
  readonly #index: OpIndex;
  readonly #counts: OpCounts = zeroOpCounts();
  #size = 0;
  #ingested = 0;
  #used = 0; // slots ever handed out
  #free = NONE;
  #errorCharacters = 0;

  /** `hashKey` is random: see {@link OpIndex}. */
  constructor(hashKey: Int32Array) {
    this.#index = new OpIndex(hashKey, (slot, id, orgId) => {
      const { ids, owners } = this.#chunks[slot >> CHUNK_BITS]!;
      const at = slot & SLOT_MASK;
      return ids[at] === id && (orgId === undefined || owners[at]!.identity.orgId === orgId);
    });
  }

  get size(): number {
    return this.#size;
  }

  /** See `Chunk`. */
  setBack(nowMs: number): void {
    for (const chunk of this.#chunks) chunk.setBack(nowMs);
  }

  /** How many operations are in each state right now. */
  get counts(): Readonly<OpCounts> {
    return this.#counts;
  }

  /** The number of the latest operation. Each gets a higher one than all before it. */
  get lastNumber(): number {
    return this.#ingested;
  }

  /** The org's operation of this id. */
  find(opId: OpId, orgId: string): OpSlot | undefined {
    return this.#index.find(opId, orgId) as OpSlot | undefined;
  }

  /** The operations of this id, of all orgs. */
  findAll(opId: OpId): readonly OpSlot[] {
    return this.#index.findAll(opId) as readonly OpSlot[];
  }

  /**
   * Adds an operation that {@link find} does not know in its owner's org, in state Pending. The id is kept, and must be
   * no part of a longer text, which would be kept with it.
   */
  ingest(opId: OpId, owner: AgentEntry, nowMs: number): OpSlot {
    const slot = this.#takeSlot();
    const chunk = this.#chunkOf(slot);
    const at = slot & SLOT_MASK;
    chunk.ids[at] = opId;
    chunk.owners[at] = owner;
    chunk.states[at] = 0;
    chunk.live += 1;
    this.#ingested += 1;
    chunk.numbers[at] = this.#ingested;
    chunk.registeredAtMs[at] = nowMs;
    chunk.updatedAtMs[at] = nowMs;
    this.#append(LIST_AT.org, slot, chunk, owner.org);
    this.#append(LIST_AT.team, slot, chunk, owner.team);
    this.#append(LIST_AT.agent, slot, chunk, owner);
    this.#index.add(opId, slot);
    this.#size += 1;
    this.#counts.pending += 1;
    owner.ops += 1;
    owner.org.ops.pending += 1;
    owner.team.ops.pending += 1;
    owner.unfinishedOps += 1;
    return slot;
  }

  stateOf(slot: OpSlot): OpState {
    return OP_STATES[this.#chunkOf(slot).states[slot & SLOT_MASK]!]!;
  }

  numberOf(slot: OpSlot): number {
    return this.#chunkOf(slot).numbers[slot & SLOT_MASK]!;
  }

  /** Whether the operation of this number still lives in this slot. */
  holds(slot: OpSlot, number: number): boolean {
    return slot < this.#used && this.#chunkOf(slot).states[slot & SLOT_MASK] !== FREE && this.numberOf(slot) === number;
  }

  ownerOf(slot: OpSlot): AgentEntry {
    const owner = this.#chunkOf(slot).owners[slot & SLOT_MASK];
    assert(owner !== undefined, 'an operation in the registry has an owner');
    return owner;
  }

  idOf(slot: OpSlot): OpId {
    return this.#chunkOf(slot).ids[slot & SLOT_MASK]!;
  }

  registeredAtMs(slot: OpSlot): number {
    return this.#chunkOf(slot).registeredAtMs[slot & SLOT_MASK]!;
  }

  aboutOf(slot: OpSlot): OpAbout {
    return this.#aboutOf(slot).get(slot & SLOT_MASK);
  }

  /** Describes the check that it waits for, or runs under: without secrets, and cut. */
  describe(slot: OpSlot, action: string, resource: string, estimatedMicroUsd: number): void {
    this.#aboutOf(slot).describe(slot & SLOT_MASK, action, resource, estimatedMicroUsd);
  }

  /** Why it runs, waits or has ended. */
  decide(slot: OpSlot, verdict: OpVerdict, approvalId: string | undefined): void {
    this.#aboutOf(slot).decide(slot & SLOT_MASK, verdict, approvalId);
  }

  isAction(slot: OpSlot, action: string): boolean {
    return this.#aboutOf(slot).isAction(slot & SLOT_MASK, action);
  }

  addAction(slot: OpSlot, action: string): void {
    this.#aboutOf(slot).addAction(slot & SLOT_MASK, action);
  }

  isAnyAction(slot: OpSlot, isCovered: (action: string) => boolean): boolean {
    return this.#aboutOf(slot).isAnyAction(slot & SLOT_MASK, isCovered);
  }

  /** Stores the error that its agent reported. */
  setError(slot: OpSlot, error: string): void {
    const isFull = this.#errorCharacters + error.length > MAX_ERROR_CHARACTERS;
    const kept = isFull ? cutText(error, LEAST_ERROR) : error;
    this.#aboutOf(slot).setError(slot & SLOT_MASK, kept);
    this.#errorCharacters += kept.length;
  }

  /** Why it has ended without a decision of a rule. */
  setReason(slot: OpSlot, reason: string): void {
    this.#aboutOf(slot).setReason(slot & SLOT_MASK, reason);
  }

  /** How it ended; undefined: it has not. */
  endOf(slot: OpSlot): OpEnd | undefined {
    return this.#aboutOf(slot).endOf(slot & SLOT_MASK);
  }

  addSpend(slot: OpSlot, microUsd: number): void {
    this.#aboutOf(slot).spentMicroUsd[slot & SLOT_MASK]! += microUsd;
  }

  /** Moves the operation along the table; undefined, and nothing changed, where the table has no such row. */
  advance(
    slot: OpSlot,
    trigger: OpTrigger,
    nowMs: number,
    end: OpEnd | undefined = END_BY[trigger],
  ): OpState | undefined {
    const chunk = this.#chunkOf(slot);
    const at = slot & SLOT_MASK;
    const from = OP_STATES[chunk.states[at]!]!;
    const to = nextState(from, trigger);
    if (to === undefined || to === from) return to;
    assert(nowMs >= chunk.updatedAtMs[at]!, 'the clock handed to the core never runs backwards');
    chunk.states[at] = CODE_OF[to];
    chunk.updatedAtMs[at] = nowMs;
    const owner = chunk.owners[at]!;
    this.#recount(owner, from, to);
    if (isFinished(to)) {
      owner.unfinishedOps -= 1;
      chunk.about.end(at, end);
      this.#finished.add(slot);
    }
    return to;
  }

  recordOf(slot: OpSlot): OpRecord {
    const chunk = this.#chunkOf(slot);
    const at = slot & SLOT_MASK;
    const agent = chunk.owners[at]!.identity;
    const about = chunk.about.viewOf(at, agent);
    // Field by field: of a spread, Node.js 20 would make an object with a hidden class of its own (docs/style.md, 3).
    return {
      opId: chunk.ids[at]!,
      state: OP_STATES[chunk.states[at]!]!,
      registeredAtMs: chunk.registeredAtMs[at]!,
      updatedAtMs: chunk.updatedAtMs[at]!,
      agent,
      action: about.action,
      resource: about.resource,
      policy: about.policy,
      ruleId: about.ruleId,
      reason: about.reason,
      estimatedMicroUsd: about.estimatedMicroUsd,
      spentMicroUsd: about.spentMicroUsd,
      approvalId: about.approvalId,
      error: about.error,
      ended: about.ended,
    };
  }

  /** Drops at most `limit` operations that finished at least `ttlMs` ago, oldest first. Costs only what it removes. */
  sweep(
    nowMs: number,
    ttlMs: number,
    limit: number,
    onRemoved: (opId: OpId, owner: AgentEntry, number: number, slot: OpSlot) => void,
  ): number {
    let removed = 0;
    while (removed < limit) {
      const slot = this.#finished.take(nowMs, ttlMs) as OpSlot;
      if (slot === NONE) break;
      const chunk = this.#chunkOf(slot);
      const at = slot & SLOT_MASK;
      const opId = chunk.ids[at]!;
      const owner = chunk.owners[at]!;
      const number = chunk.numbers[at]!;
      this.#drop(slot);
      onRemoved(opId, owner, number, slot);
      removed += 1;
    }
    return removed;
  }

  /** Undoes the description by a check or a completion. Spending remains. */
  restoreAbout(slot: OpSlot, about: OpAbout): void {
    const columns = this.#aboutOf(slot);
    const at = slot & SLOT_MASK;
    this.#errorCharacters -= columns.errorOf(at)?.length ?? 0;
    columns.set(at, about);
    this.#errorCharacters += columns.errorOf(at)?.length ?? 0;
  }

  /** Undoes a move: the operation is in the state `to` again, and has been since `atMs`. */
  restore(slot: OpSlot, to: OpState, atMs: number): void {
    const chunk = this.#chunkOf(slot);
    const at = slot & SLOT_MASK;
    const from = OP_STATES[chunk.states[at]!]!;
    const owner = chunk.owners[at]!;
    assert(!isFinished(to), 'an operation is put back among those that run');
    chunk.states[at] = CODE_OF[to];
    chunk.updatedAtMs[at] = atMs;
    this.#recount(owner, from, to);
    if (!isFinished(from)) return;
    chunk.about.end(at, undefined);
    owner.unfinishedOps += 1;
    this.#finished.revive(slot);
  }

  /** Removes an unfinished operation as if it had never existed. */
  withdraw(slot: OpSlot): void {
    const { owners, states } = this.#chunkOf(slot);
    assert(!isFinished(OP_STATES[states[slot & SLOT_MASK]!]!), 'what has finished is left to the sweep');
    owners[slot & SLOT_MASK]!.unfinishedOps -= 1;
    this.#finished.forget(slot);
    this.#drop(slot);
  }

  #drop(slot: OpSlot): void {
    const chunk = this.#chunkOf(slot);
    const at = slot & SLOT_MASK;
    const owner = chunk.owners[at]!;
    const state = OP_STATES[chunk.states[at]!]!;
    this.#index.remove(chunk.ids[at]!, slot);
    this.#unlink(LIST_AT.org, slot, chunk, owner.org);
    this.#unlink(LIST_AT.team, slot, chunk, owner.team);
    this.#unlink(LIST_AT.agent, slot, chunk, owner);
    addToCount(this.#counts, state, -1);
    addToCount(owner.org.ops, state, -1);
    addToCount(owner.team.ops, state, -1);
    chunk.states[at] = FREE;
    this.#errorCharacters -= chunk.about.errorOf(at)?.length ?? 0;
    chunk.about.clear(at);
    chunk.live -= 1;
    chunk.ids[at] = undefined;
    chunk.owners[at] = undefined;
    chunk.next[at] = this.#free;
    this.#free = slot;
    this.#size -= 1;
    owner.ops -= 1;
  }

  /**
   * A page of operations in the order of their slots. An operation that exists, and stays in that state, during the
   * whole walk is seen exactly once. Only the column of states is read to find the next slot, so a rare state costs no
   * more than a common one. Filters by `about` look at one operation after the other, as far as the budget allows.
   */
  list(
    state: OpState | undefined,
    limit: number,
    from = 0,
    about?: { readonly filter: AboutFilter; readonly budget: ScanBudget },
  ): { readonly ops: readonly OpSlot[]; readonly next: number | undefined } {
    const ops: OpSlot[] = [];
    for (let slot = this.#nextIn(state, from); slot !== NONE; slot = this.#nextIn(state, slot + 1)) {
      if (about !== undefined) {
        if (about.budget.steps === 0) return { ops, next: slot };
        about.budget.steps -= 1;
        if (!this.#isAbout(slot as OpSlot, about.filter)) continue;
      }
      // Goes on at the next match, not at the next slot: whether there is a next page must not depend on other holders.
      if (ops.length === limit) return { ops, next: slot };
      ops.push(slot as OpSlot);
    }
    return { ops, next: undefined };
  }

  /** The first slot from this one on that holds an operation in this state, or in any. */
  #nextIn(state: OpState | undefined, from: number): number {
    const code = state === undefined ? undefined : CODE_OF[state];
    for (let slot = from; slot < this.#used; slot = (slot | SLOT_MASK) + 1) {
      const { states, live } = this.#chunkOf(slot as OpSlot);
      if (live === 0) continue;
      const start = slot & SLOT_MASK;
      const at = code === undefined ? firstTaken(states, start) : states.indexOf(code, start);
      if (at !== NONE) return slot - start + at;
    }
    return NONE;
  }

  /**
   * A page of one holder's operations, in one state or in any, oldest first, with the same promise. It has at most
   * `limit` of them, and looks at no more than the budget allows. It looks only at the holder's own, so neither its
   * time nor the number of pages tells what others do. `next` is undefined at the end of the list.
   */
  walk(
    list: OpList,
    holder: OpHolder,
    state: OpState | undefined,
    limit: number,
    budget: ScanBudget,
    place?: OpPlace,
    about?: AboutFilter,
  ): { readonly ops: readonly OpSlot[]; readonly next: OpPlace | undefined } {
    const ops: OpSlot[] = [];
    const code = state === undefined ? undefined : CODE_OF[state];
    const from = place?.from ?? 0;
    let slot = place !== undefined && this.#isAt(place, list, holder) ? place.slot : holder.firstOp;
    while (slot !== NONE) {
      const chunk = this.#chunkOf(slot as OpSlot);
      const at = slot & SLOT_MASK;
      const number = chunk.numbers[at]!;
      const isMatch =
        number >= from &&
        (code === undefined || chunk.states[at] === code) &&
        (about === undefined || chunk.about.matches(at, about));
      if (budget.steps === 0 || (isMatch && ops.length === limit))
        return { ops, next: { from: Math.max(from, number), slot, number } };
      if (isMatch) ops.push(slot as OpSlot);
      budget.steps -= 1;
      slot = chunk.links[LIST_AT[list]]!.newer[at]!;
    }
    return { ops, next: undefined };
  }

  /** Whether the operation of this place is still there, and in this list. */
  #isAt({ slot, number }: OpPlace, list: OpList, holder: OpHolder): boolean {
    if (slot >= this.#used) return false;
    const { owners, numbers } = this.#chunkOf(slot as OpSlot);
    const owner = owners[slot & SLOT_MASK];
    return (
      owner !== undefined && numbers[slot & SLOT_MASK] === number && holder === (list === 'agent' ? owner : owner[list])
    );
  }

  /** Moves one operation of this owner from one state to another in every count that includes it. */
  #recount({ org, team }: AgentEntry, from: OpState, to: OpState): void {
    moveOne(this.#counts, from, to);
    moveOne(org.ops, from, to);
    moveOne(team.ops, from, to);
  }

  #append(list: number, slot: OpSlot, chunk: Chunk, holder: OpHolder): void {
    const links = chunk.links[list]!;
    const at = slot & SLOT_MASK;
    const older = holder.lastOp;
    links.older[at] = older;
    links.newer[at] = NONE;
    if (older === NONE) holder.firstOp = slot;
    else this.#chunkOf(older as OpSlot).links[list]!.newer[older & SLOT_MASK] = slot;
    holder.lastOp = slot;
  }

  #unlink(list: number, slot: OpSlot, chunk: Chunk, holder: OpHolder): void {
    const links = chunk.links[list]!;
    const older = links.older[slot & SLOT_MASK]!;
    const newer = links.newer[slot & SLOT_MASK]!;
    if (older === NONE) holder.firstOp = newer;
    else this.#chunkOf(older as OpSlot).links[list]!.newer[older & SLOT_MASK] = newer;
    if (newer === NONE) holder.lastOp = older;
    else this.#chunkOf(newer as OpSlot).links[list]!.older[newer & SLOT_MASK] = older;
  }

  #isAbout(slot: OpSlot, filter: AboutFilter): boolean {
    return this.#aboutOf(slot).matches(slot & SLOT_MASK, filter);
  }

  #aboutOf(slot: OpSlot): AboutColumns {
    return this.#chunkOf(slot).about;
  }

  #chunkOf(slot: OpSlot): Chunk {
    return this.#chunks[slot >> CHUNK_BITS]!;
  }

  #takeSlot(): OpSlot {
    if (this.#free !== NONE) {
      const slot = this.#free as OpSlot;
      this.#free = this.#chunkOf(slot).next[slot & SLOT_MASK]!;
      return slot;
    }
    const slot = this.#used as OpSlot;
    if ((slot & SLOT_MASK) === 0) this.#chunks.push(new Chunk());
    this.#used += 1;
    return slot;
  }
}
