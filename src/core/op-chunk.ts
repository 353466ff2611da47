/** Operations as columns of numbers. */
import type { AgentEntry } from './agents.ts';
import type { OpId } from './ids.ts';

/** An operation is in three such lists: its org's, its team's and its agent's. */
const LISTS = ['org', 'team', 'agent'] as const;
export type OpList = (typeof LISTS)[number];
export const LIST_AT = { org: 0, team: 1, agent: 2 } as const satisfies Record<OpList, number>;

// A million operations as objects would be three million things for the garbage collector to walk, in pauses that every
// check feels. As columns of numbers they are a few hundred; only the ids remain as strings.
export const CHUNK_BITS = 16;
export const CHUNK_SLOTS = 1 << CHUNK_BITS;
export const SLOT_MASK = CHUNK_SLOTS - 1;

/** What stands in the column of states where there is no operation. */
export const FREE = 255;

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
  /** Counts up with every operation. */
  readonly numbers = new Float64Array(CHUNK_SLOTS);
  /** As LIST_AT says. */
  readonly links: readonly Links[] = LISTS.map(() => new Links());
  /** Operations in this chunk. */
  live = 0;
}
