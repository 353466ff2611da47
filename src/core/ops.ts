import type { AgentGroup, OpCounts } from './agent-groups.ts';
import type { AgentEntry } from './agents.ts';
import type { AgentIdentity, OpId } from './ids.ts';
import { isFinished, nextState, OP_STATES, type OpState, type OpTrigger } from './op-state.ts';
import { assert } from './result.ts';

/** An operation as others see it (spec: Operation record). Milliseconds here; RFC 3339 exists only in wire/. */
export type OpRecord = {
  readonly opId: OpId;
  readonly state: OpState;
  readonly registeredAtMs: number;
  readonly updatedAtMs: number;
  readonly agent: AgentIdentity;
};

/** Where an operation lives in the registry. Valid until the operation is swept. */
export type OpSlot = number & { readonly __slot: never };

/** A place in the walk over an org's operations: the next one to look at, by its number and where it was then. */
export type OrgPlace = { readonly number: number; readonly slot: number };

export type OpFilter = {
  readonly teamId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly state?: OpState | undefined;
};

function count(counts: OpCounts, from: OpState, to: OpState): void {
  counts[from] -= 1;
  counts[to] += 1;
}

// A million operations as objects would be three million things for the garbage collector to walk, in pauses that every
// check feels. As columns of numbers they are a few hundred; only the ids remain as strings.
const CHUNK_BITS = 16;
const CHUNK_SLOTS = 1 << CHUNK_BITS;
const SLOT_MASK = CHUNK_SLOTS - 1;

class Chunk {
  readonly ids: (OpId | undefined)[] = new Array<OpId | undefined>(CHUNK_SLOTS).fill(undefined);
  readonly owners: (AgentEntry | undefined)[] = new Array<AgentEntry | undefined>(CHUNK_SLOTS).fill(undefined);
  readonly states = new Uint8Array(CHUNK_SLOTS);
  readonly registeredAtMs = new Float64Array(CHUNK_SLOTS);
  readonly updatedAtMs = new Float64Array(CHUNK_SLOTS);
  /** Links the queue of finished operations, and the list of free slots. */
  readonly next = new Int32Array(CHUNK_SLOTS);
  /** Counts up with every operation. */
  readonly numbers = new Float64Array(CHUNK_SLOTS);
  /** Link the operations of one org, oldest first. */
  readonly olderOfOrg = new Int32Array(CHUNK_SLOTS);
  readonly newerOfOrg = new Int32Array(CHUNK_SLOTS);
}

// One Map of a million keys doubles itself in a pause of a tenth of a second; 64 small ones do it one at a time.
const SHARDS = 64;
const NONE = -1;

// Trace and span ids differ most at their ends, so four characters from there and the middle spread them well enough.
function shardOf(opId: string): number {
  const end = opId.length - 1;
  const mixed = opId.charCodeAt(end) + opId.charCodeAt(end - 1) * 7 + opId.charCodeAt(end >> 1) * 31 + opId.charCodeAt(0) * 3;
  return mixed & (SHARDS - 1);
}

/** How many slots one page of a listing may look at, so that a rare filter never holds up the checks. */
const LIST_SCAN_SLOTS = 100_000;

/** The registry of operations in flight: authoritative, in memory, owned by one thread (spec: States and transitions). */
export class OpsRegistry {
  readonly #slots: readonly Map<OpId, OpSlot>[] = Array.from({ length: SHARDS }, () => new Map<OpId, OpSlot>());
  readonly #chunks: Chunk[] = [];
  readonly #counts: Record<OpState, number> = { pending: 0, running: 0, paused: 0, completing: 0, terminated: 0 };
  #size = 0;
  #ingested = 0;
  #used = 0; // slots ever handed out
  #free = NONE;
  #oldestFinished = NONE;
  #newestFinished = NONE;

  get size(): number { return this.#size; }

  /** How many operations are in each state right now. */
  get counts(): Readonly<Record<OpState, number>> { return this.#counts; }

  find(opId: OpId): OpSlot | undefined {
    return this.#slots[shardOf(opId)]!.get(opId);
  }

  /** Adds an operation that {@link find} does not know, in state Pending. */
  ingest(opId: OpId, owner: AgentEntry, nowMs: number): OpSlot {
    const slot = this.#takeSlot();
    const chunk = this.#chunkOf(slot);
    const at = slot & SLOT_MASK;
    chunk.ids[at] = opId;
    chunk.owners[at] = owner;
    chunk.states[at] = 0;
    chunk.registeredAtMs[at] = nowMs;
    chunk.updatedAtMs[at] = nowMs;
    this.#appendToOrg(slot, chunk, owner.org);
    this.#slots[shardOf(opId)]!.set(opId, slot);
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

  ownerOf(slot: OpSlot): AgentEntry {
    const owner = this.#chunkOf(slot).owners[slot & SLOT_MASK];
    assert(owner !== undefined, 'an operation in the registry has an owner');
    return owner;
  }

  /** Moves the operation along the table; undefined, and nothing changed, where the table has no such row. */
  advance(slot: OpSlot, trigger: OpTrigger, nowMs: number): OpState | undefined {
    const chunk = this.#chunkOf(slot);
    const at = slot & SLOT_MASK;
    const from = OP_STATES[chunk.states[at]!]!;
    const to = nextState(from, trigger);
    if (to === undefined || to === from) return to;
    assert(nowMs >= chunk.updatedAtMs[at]!, 'the clock handed to the core never runs backwards');
    chunk.states[at] = OP_STATES.indexOf(to);
    chunk.updatedAtMs[at] = nowMs;
    const owner = chunk.owners[at]!;
    count(this.#counts, from, to);
    count(owner.org.ops, from, to);
    count(owner.team.ops, from, to);
    if (isFinished(to)) {
      owner.unfinishedOps -= 1;
      this.#queueForSweep(slot);
    }
    return to;
  }

  recordOf(slot: OpSlot): OpRecord {
    const chunk = this.#chunkOf(slot);
    const at = slot & SLOT_MASK;
    return {
      opId: chunk.ids[at]!,
      state: OP_STATES[chunk.states[at]!]!,
      registeredAtMs: chunk.registeredAtMs[at]!,
      updatedAtMs: chunk.updatedAtMs[at]!,
      agent: chunk.owners[at]!.identity,
    };
  }

  /**
   * Drops operations that finished at least `ttlMs` ago, oldest first, at most `limit` of them, and tells each to
   * `onRemoved`. Costs only what it removes: finished operations wait in the order in which they finished.
   */
  sweep(nowMs: number, ttlMs: number, limit: number, onRemoved: (opId: OpId, owner: AgentEntry) => void): number {
    let removed = 0;
    while (removed < limit && this.#oldestFinished !== NONE) {
      const slot = this.#oldestFinished as OpSlot;
      const chunk = this.#chunkOf(slot);
      const at = slot & SLOT_MASK;
      if (nowMs - chunk.updatedAtMs[at]! < ttlMs) break;
      this.#oldestFinished = chunk.next[at]!;
      if (this.#oldestFinished === NONE) this.#newestFinished = NONE;
      const opId = chunk.ids[at]!;
      const owner = chunk.owners[at]!;
      this.#slots[shardOf(opId)]!.delete(opId);
      this.#removeFromOrg(slot, owner.org);
      const state = OP_STATES[chunk.states[at]!]!;
      this.#counts[state] -= 1;
      owner.org.ops[state] -= 1;
      owner.team.ops[state] -= 1;
      chunk.ids[at] = undefined;
      chunk.owners[at] = undefined;
      chunk.next[at] = this.#free;
      this.#free = slot;
      this.#size -= 1;
      owner.ops -= 1;
      onRemoved(opId, owner);
      removed += 1;
    }
    return removed;
  }

  /**
   * A page of operations of any org that match, in the order of their slots: one that exists during the whole walk is seen exactly
   * once. A page may be short, even empty, and still have a `next` to go on from.
   */
  list(filter: OpFilter, limit: number, from = 0): { readonly ops: readonly OpRecord[]; readonly next: number | undefined } {
    const ops: OpRecord[] = [];
    const end = Math.min(this.#used, from + LIST_SCAN_SLOTS);
    for (let slot = from; slot < end; slot += 1) {
      const owner = this.#chunkOf(slot as OpSlot).owners[slot & SLOT_MASK];
      if (owner === undefined || !this.#matches(slot as OpSlot, owner.identity, filter)) continue;
      // Goes on at the next match, not at the next slot: whether there is more must not depend on what others do.
      if (ops.length === limit) return { ops, next: slot };
      ops.push(this.recordOf(slot as OpSlot));
    }
    return { ops, next: end < this.#used ? end : undefined };
  }

  /**
   * A page of one org's operations that match, oldest first, under the same promise. It walks over nothing but the org's
   * own, so what others do shows neither in its time nor in the number of its pages.
   */
  listOfOrg(org: AgentGroup, filter: OpFilter, limit: number, from?: OrgPlace): { readonly ops: readonly OpRecord[]; readonly next: OrgPlace | undefined } {
    const ops: OpRecord[] = [];
    let slot = from === undefined ? org.firstOp : this.#resume(org, from);
    for (let seen = 0; slot !== NONE; seen += 1) {
      const chunk = this.#chunkOf(slot as OpSlot);
      const at = slot & SLOT_MASK;
      const isMatch = this.#matches(slot as OpSlot, chunk.owners[at]!.identity, filter);
      if (seen === LIST_SCAN_SLOTS || (isMatch && ops.length === limit)) return { ops, next: { number: chunk.numbers[at]!, slot } };
      if (isMatch) ops.push(this.recordOf(slot as OpSlot));
      slot = chunk.newerOfOrg[at]!;
    }
    return { ops, next: undefined };
  }

  /** The operation at this place, or, when it was swept meanwhile, the oldest of the org that came after it. */
  #resume(org: AgentGroup, { number, slot }: OrgPlace): number {
    if (slot < this.#used) {
      const chunk = this.#chunkOf(slot as OpSlot);
      const at = slot & SLOT_MASK;
      if (chunk.numbers[at] === number && chunk.owners[at]?.org === org) return slot;
    }
    let after = org.firstOp;
    while (after !== NONE && this.#chunkOf(after as OpSlot).numbers[after & SLOT_MASK]! < number) after = this.#chunkOf(after as OpSlot).newerOfOrg[after & SLOT_MASK]!;
    return after;
  }

  #appendToOrg(slot: OpSlot, chunk: Chunk, org: AgentGroup): void {
    const at = slot & SLOT_MASK;
    const older = org.lastOp;
    this.#ingested += 1;
    chunk.numbers[at] = this.#ingested;
    chunk.olderOfOrg[at] = older;
    chunk.newerOfOrg[at] = NONE;
    if (older === NONE) org.firstOp = slot;
    else this.#chunkOf(older as OpSlot).newerOfOrg[older & SLOT_MASK] = slot;
    org.lastOp = slot;
  }

  #removeFromOrg(slot: OpSlot, org: AgentGroup): void {
    const chunk = this.#chunkOf(slot);
    const older = chunk.olderOfOrg[slot & SLOT_MASK]!;
    const newer = chunk.newerOfOrg[slot & SLOT_MASK]!;
    if (older === NONE) org.firstOp = newer;
    else this.#chunkOf(older as OpSlot).newerOfOrg[older & SLOT_MASK] = newer;
    if (newer === NONE) org.lastOp = older;
    else this.#chunkOf(newer as OpSlot).olderOfOrg[newer & SLOT_MASK] = older;
  }

  #matches(slot: OpSlot, { teamId, agentId }: AgentIdentity, filter: OpFilter): boolean {
    return (filter.teamId === undefined || filter.teamId === teamId)
      && (filter.agentId === undefined || filter.agentId === agentId)
      && (filter.state === undefined || filter.state === this.stateOf(slot));
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

  #queueForSweep(slot: OpSlot): void {
    this.#chunkOf(slot).next[slot & SLOT_MASK] = NONE;
    if (this.#newestFinished === NONE) this.#oldestFinished = slot;
    else this.#chunkOf(this.#newestFinished as OpSlot).next[this.#newestFinished & SLOT_MASK] = slot;
    this.#newestFinished = slot;
  }
}
