import type { AgentEntry } from '../agents/agent-entry.ts';
import type { OpId } from '../base/ids.ts';
import { AboutColumns } from './op-about.ts';

/** Every operation is in three lists: that of its org, of its team and of its agent. */
const LISTS = ['org', 'team', 'agent'] as const;
export type OpList = (typeof LISTS)[number];
export const LIST_AT = { org: 0, team: 1, agent: 2 } as const satisfies Record<OpList, number>;

// A million operations as objects would be three million things for the garbage collector to walk, in pauses that every
// check feels. As columns of numbers they are a few hundred; only the ids, and resources that no two share, remain as
// strings.
export const CHUNK_BITS = 16;
const CHUNK_SLOTS = 1 << CHUNK_BITS;
export const SLOT_MASK = CHUNK_SLOTS - 1;

/** The state of a slot without an operation. */
export const FREE = 255;
/** No slot. */
export const NONE = -1;

/** The first slot from this one on that holds an operation. */
export function firstTaken(states: Uint8Array, from: number): number {
  let at = from;
  while (at < CHUNK_SLOTS && states[at] === FREE) at += 1;
  return at === CHUNK_SLOTS ? NONE : at;
}

/** Link the operations of one list. */
class Links {
  readonly older = new Int32Array(CHUNK_SLOTS);
  readonly newer = new Int32Array(CHUNK_SLOTS);
}

export class Chunk {
  readonly ids: (OpId | undefined)[] = new Array<OpId | undefined>(CHUNK_SLOTS).fill(undefined);
  readonly owners: (AgentEntry | undefined)[] = new Array<AgentEntry | undefined>(CHUNK_SLOTS).fill(undefined);
  readonly states = new Uint8Array(CHUNK_SLOTS).fill(FREE);
  readonly registeredAtMs = new Float64Array(CHUNK_SLOTS);
  readonly updatedAtMs = new Float64Array(CHUNK_SLOTS);
  /** Links the queue of finished operations, and the list of free slots. */
  readonly next = new Int32Array(CHUNK_SLOTS);
  /** Grows with every operation. */
  readonly numbers = new Float64Array(CHUNK_SLOTS);
  /** Indexed by LIST_AT. */
  readonly links: readonly Links[] = LISTS.map(() => new Links());
  readonly about = new AboutColumns(CHUNK_SLOTS);
  /** How many operations are in this chunk. */
  live = 0;

  /** The clock was set back: nothing has happened later than now. */
  setBack(nowMs: number): void {
    for (const times of [this.registeredAtMs, this.updatedAtMs])
      for (let at = 0; at < times.length; at += 1) times[at] = Math.min(times[at]!, nowMs);
  }
}
