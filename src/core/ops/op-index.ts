import type { OpId } from '../base/ids.ts';
import { assert } from '../base/result.ts';

/** Two halves of an id, the colon between them, and one for the length. */
const KEYS = 2 * 256 + 1 + 1;

/** How many random numbers an index needs. */
export const HASH_KEY_LENGTH = 2 * KEYS;

const FREE = -1;
const FIRST_CAPACITY = 64;

/** A table of hashes and slots, side by side, with linear probing: a miss costs one memory access. */
class Shard {
  /** At 2n the hash, at 2n + 1 the slot. */
  cells = emptyCells(FIRST_CAPACITY);
  size = 0;

  get mask(): number {
    return this.cells.length / 2 - 1;
  }
}

const emptyCells = (capacity: number): Int32Array => new Int32Array(capacity * 2).fill(FREE);

// A table of a million doubles itself in a pause that every check feels; 64 small ones do it one at a time.
const SHARD_BITS = 6;

/**
 * Finds the slot of an operation by its id and its org: two orgs may use the same id. A Map would follow a pointer to
 * every id that it compares, and with a million ids each of these is a cache miss. Here an id is read only when its
 * 32-bit hash agrees.
 */
export class OpIndex {
  readonly #shards: readonly Shard[] = Array.from({ length: 1 << SHARD_BITS }, () => new Shard());
  /** Whether the operation in this slot has this id, and is of this org, or of any. */
  readonly #isAt: (slot: number, id: OpId, orgId: string | undefined) => boolean;
  readonly #highKeys: Int32Array;
  readonly #lowKeys: Int32Array;
  // An id that was not found is often added next.
  #lastId = '';
  #lastHash = 0;

  /**
   * Agents choose their ids. `hashKey`, which is `HASH_KEY_LENGTH` random numbers, keeps them from choosing many that
   * collide. It affects only where an id lies in memory.
   */
  constructor(hashKey: Int32Array, isAt: (slot: number, id: OpId, orgId: string | undefined) => boolean) {
    assert(hashKey.length === HASH_KEY_LENGTH, `the hash takes ${HASH_KEY_LENGTH} random numbers`);
    this.#highKeys = hashKey.slice(0, KEYS);
    this.#lowKeys = hashKey.slice(KEYS);
    this.#isAt = isAt;
  }

  /** The org's operation of this id. */
  find(id: OpId, orgId: string): number | undefined {
    const hash = this.#hash(id);
    const { cells, mask } = this.#shardOf(hash);
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const slot = cells[at * 2 + 1]!;
      if (slot === FREE) return undefined;
      if (cells[at * 2] === hash && this.#isAt(slot, id, orgId)) return slot;
    }
  }

  /** The operations of this id, whichever orgs they are of. */
  findAll(id: OpId): readonly number[] {
    const hash = this.#hash(id);
    const { cells, mask } = this.#shardOf(hash);
    const found: number[] = [];
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const slot = cells[at * 2 + 1]!;
      if (slot === FREE) return found;
      if (cells[at * 2] === hash && this.#isAt(slot, id, undefined)) found.push(slot);
    }
  }

  /** Adds an id that the org does not have in it. */
  add(id: OpId, slot: number): void {
    const hash = this.#hash(id);
    const shard = this.#shardOf(hash);
    if (shard.size * 4 >= (shard.mask + 1) * 3) grow(shard);
    insert(shard, hash, slot);
    shard.size += 1;
  }

  /** Takes out an id that is in it. */
  remove(id: OpId, slot: number): void {
    const hash = this.#hash(id);
    const shard = this.#shardOf(hash);
    const { cells, mask } = shard;
    let hole = hash & mask;
    while (cells[hole * 2 + 1] !== slot) {
      assert(cells[hole * 2 + 1] !== FREE, 'an operation in the registry is in its index');
      hole = (hole + 1) & mask;
    }
    // The entries behind it move up, so that no search ends at the hole before it has found its id.
    for (let at = (hole + 1) & mask; cells[at * 2 + 1] !== FREE; at = (at + 1) & mask) {
      const isHomeBehindHole = ((at - cells[at * 2]!) & mask) < ((at - hole) & mask);
      if (isHomeBehindHole) continue;
      cells[hole * 2] = cells[at * 2]!;
      cells[hole * 2 + 1] = cells[at * 2 + 1]!;
      hole = at;
    }
    cells[hole * 2 + 1] = FREE;
    shard.size -= 1;
  }

  #hash(id: string): number {
    if (id !== this.#lastId) {
      this.#lastHash = hashOf(id, this.#highKeys, this.#lowKeys);
      this.#lastId = id;
    }
    return this.#lastHash;
  }

  // By the upper bits; the place within the shard is by the lower ones.
  #shardOf(hash: number): Shard {
    return this.#shards[hash >>> (32 - SHARD_BITS)]!;
  }
}

/**
 * Multilinear hashing (Lemire and Kaser, 2014): strongly universal, so with random keys two ids collide by chance
 * alone.
 */
function hashOf(id: string, highKeys: Int32Array, lowKeys: Int32Array): number {
  const { length } = id;
  // Without the length, an id would collide with one that has zeros after it.
  let high = highKeys[length]!;
  let low = lowKeys[length]!;
  for (let at = 0; at < length; at += 1) {
    const unit = id.charCodeAt(at);
    high = (high + Math.imul(highKeys[at]!, unit)) | 0;
    low = (low + Math.imul(lowKeys[at]!, unit)) | 0;
  }
  // Only the upper half of each sum is universal.
  return (high & 0xffff_0000) | (low >>> 16);
}

function insert({ cells, mask }: Shard, hash: number, slot: number): void {
  let at = hash & mask;
  while (cells[at * 2 + 1] !== FREE) at = (at + 1) & mask;
  cells[at * 2] = hash;
  cells[at * 2 + 1] = slot;
}

function grow(shard: Shard): void {
  const { cells } = shard;
  shard.cells = emptyCells(cells.length);
  for (let at = 0; at < cells.length; at += 2) if (cells[at + 1] !== FREE) insert(shard, cells[at]!, cells[at + 1]!);
}
