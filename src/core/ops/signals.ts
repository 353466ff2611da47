import type { AgentKey } from '../base/ids.ts';
import type { Signal } from './op-view.ts';
import type { OpSlot } from './ops.ts';

/** An operation as its signals know it: its agent's, by its slot and its own number in the registry. */
export type Signalled = { readonly agent: AgentKey; readonly slot: OpSlot; readonly number: number };

/** How many sent signals are remembered per operation: more than an agent can still have to acknowledge. */
const MAX_REMEMBERED = 64;

const SIGNALS = ['pause', 'resume', 'terminate'] as const satisfies readonly Signal[];
const NONE = -1;
const CHUNK_BITS = 12;
const CHUNK_SLOTS = 1 << CHUNK_BITS;
const SLOT_MASK = CHUNK_SLOTS - 1;

/**
 * The newest signals of the operations in some neighbouring slots, made with the first of them. Columns, as in the
 * registry: a halt posts a hundred thousand signals, and tables that grow with them would stop everything meanwhile.
 */
class Chunk {
  /** The operation's own number; 0: no signal was sent. */
  readonly numbers = new Float64Array(CHUNK_SLOTS);
  readonly sequences = new Float64Array(CHUNK_SLOTS);
  /** The place in SIGNALS. */
  readonly signals = new Uint8Array(CHUNK_SLOTS);
  /** 1 until it is acknowledged. */
  readonly isPending = new Uint8Array(CHUNK_SLOTS);
  /** 0: it is not. */
  readonly acknowledgedAtMs = new Float64Array(CHUNK_SLOTS);
  /** Link what the agent has not acknowledged. */
  readonly older = new Int32Array(CHUNK_SLOTS);
  readonly newer = new Int32Array(CHUNK_SLOTS);
}

/**
 * The operators' signals on their way to agents (docs/spec.md, Signals). Only the newest signal of an operation
 * counts, because it says all that the agent must know. It is kept until the agent acknowledges it, so that an agent
 * that connects late, or again, still gets it.
 */
export class SignalBoxes {
  readonly #chunks: (Chunk | undefined)[] = [];
  /** Both ends of the list of unacknowledged signals, in their order. An agent without any has no entry. */
  readonly #boxes = new Map<AgentKey, { oldest: number; newest: number }>();
  /** The numbers of earlier signals, where an operation had more than one, by the operation's own number. */
  readonly #earlier = new Map<number, readonly number[]>();
  #lastSequence = 0;

  /**
   * Returns the number of the signal. Numbers grow with every signal. The first one is the current time, so that they
   * also grow across a restart: an agent that asks for the signals after the last one it saw must not miss those of the
   * restarted gateway.
   */
  post(signalled: Signalled, signal: Signal, nowMs: number): number;
  /** `given`: instead of the next number. Undefined where a newer signal of the operation was posted already. */
  post(signalled: Signalled, signal: Signal, nowMs: number, given: number | undefined): number | undefined;
  post({ agent, slot, number }: Signalled, signal: Signal, nowMs: number, given?: number): number | undefined {
    const sequence = given ?? Math.max(this.#lastSequence + 1, Math.floor(nowMs));
    this.#lastSequence = Math.max(this.#lastSequence, sequence);
    this.#chunks[slot >> CHUNK_BITS] ??= new Chunk();
    const chunk = this.#chunks[slot >> CHUNK_BITS]!;
    const at = slot & SLOT_MASK;
    if (chunk.numbers[at] === number) {
      if (given !== undefined && given < chunk.sequences[at]!) return undefined; // it had to wait, and was overtaken
      this.#remember(number, chunk.sequences[at]!);
      // Taken out first: the list is in the order of the signals' numbers.
      if (chunk.isPending[at] === 1) this.#unlink(agent, chunk, at);
    }
    chunk.numbers[at] = number;
    chunk.sequences[at] = sequence;
    chunk.signals[at] = SIGNALS.indexOf(signal);
    chunk.acknowledgedAtMs[at] = 0;
    this.#append(agent, slot, chunk, at);
    return sequence;
  }

  /** Unacknowledged signals, oldest first. */
  pendingOf(agent: AgentKey): { readonly slot: OpSlot; readonly signal: Signal; readonly sequence: number }[] {
    const pending = [];
    for (let slot = this.#boxes.get(agent)?.oldest ?? NONE; slot !== NONE; ) {
      const { signals, sequences, newer } = this.#chunks[slot >> CHUNK_BITS]!;
      const at = slot & SLOT_MASK;
      pending.push({ slot: slot as OpSlot, signal: SIGNALS[signals[at]!]!, sequence: sequences[at]! });
      slot = newer[at]!;
    }
    return pending;
  }

  /**
   * Records that the agent has seen the signal of this number. False when no such signal of this operation was sent.
   */
  acknowledge({ agent, slot, number }: Signalled, sequence: number, nowMs: number): boolean {
    const chunk = this.#chunkOf(slot, number);
    if (chunk === undefined) return false;
    const at = slot & SLOT_MASK;
    // A repeated acknowledgement, or one of an older signal, is no error, and the newer signal stays.
    if (chunk.sequences[at] !== sequence) return this.#earlier.get(number)?.includes(sequence) === true;
    if (chunk.isPending[at] === 0) return true;
    this.#unlink(agent, chunk, at);
    chunk.acknowledgedAtMs[at] = nowMs;
    return true;
  }

  /**
   * Notes that a new signal is on its way, and returns the time at which the one before it was acknowledged, if it was.
   */
  expect(slot: OpSlot, number: number): number | undefined {
    const atMs = this.acknowledgedAtMs(slot, number);
    if (atMs !== undefined) this.#chunks[slot >> CHUNK_BITS]!.acknowledgedAtMs[slot & SLOT_MASK] = 0;
    return atMs;
  }

  /** The expected signal is not sent after all: restores the earlier acknowledgement. */
  setAcknowledged(slot: OpSlot, number: number, atMs: number): void {
    const chunk = this.#chunkOf(slot, number);
    if (chunk !== undefined) chunk.acknowledgedAtMs[slot & SLOT_MASK] = atMs;
  }

  acknowledgedAtMs(slot: OpSlot, number: number): number | undefined {
    const atMs = this.#chunkOf(slot, number)?.acknowledgedAtMs[slot & SLOT_MASK];
    return atMs === 0 ? undefined : atMs;
  }

  /** Drops the signals of an operation that leaves the registry. */
  forget({ agent, slot, number }: Signalled): void {
    const chunk = this.#chunkOf(slot, number);
    if (chunk === undefined) return;
    const at = slot & SLOT_MASK;
    if (chunk.isPending[at] === 1) this.#unlink(agent, chunk, at);
    chunk.numbers[at] = 0;
    this.#earlier.delete(number);
  }

  /** Undefined where the operation was sent no signal. */
  #chunkOf(slot: OpSlot, number: number): Chunk | undefined {
    const chunk = this.#chunks[slot >> CHUNK_BITS];
    return chunk?.numbers[slot & SLOT_MASK] === number ? chunk : undefined;
  }

  #remember(number: number, sequence: number): void {
    const earlier = [...(this.#earlier.get(number) ?? []), sequence];
    this.#earlier.set(number, earlier.slice(1 - MAX_REMEMBERED)); // the newest is not among them
  }

  #append(agent: AgentKey, slot: OpSlot, chunk: Chunk, at: number): void {
    chunk.isPending[at] = 1;
    chunk.newer[at] = NONE;
    const box = this.#boxes.get(agent);
    chunk.older[at] = box?.newest ?? NONE;
    if (box === undefined) return void this.#boxes.set(agent, { oldest: slot, newest: slot });
    this.#chunks[box.newest >> CHUNK_BITS]!.newer[box.newest & SLOT_MASK] = slot;
    box.newest = slot;
  }

  #unlink(agent: AgentKey, chunk: Chunk, at: number): void {
    const box = this.#boxes.get(agent)!;
    const older = chunk.older[at]!;
    const newer = chunk.newer[at]!;
    chunk.isPending[at] = 0;
    if (older === NONE) box.oldest = newer;
    else this.#chunks[older >> CHUNK_BITS]!.newer[older & SLOT_MASK] = newer;
    if (newer === NONE) box.newest = older;
    else this.#chunks[newer >> CHUNK_BITS]!.older[newer & SLOT_MASK] = older;
    if (box.oldest === NONE) this.#boxes.delete(agent);
  }
}
