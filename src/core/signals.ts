import type { AgentKey, OpId } from './base/ids.ts';
import type { Signal, SignalMessage } from './views.ts';

/** An operation as its signals know it: its agent's, and by its own number in the registry. */
export type Signalled = { readonly agent: AgentKey; readonly opId: OpId; readonly number: number };

/** How many sent signals are remembered per operation: more than an agent can still have to acknowledge. */
const MAX_REMEMBERED = 64;

/**
 * The operators' signals on their way to agents (docs/spec.md, Signals). Only the newest signal of an operation
 * counts, because it says all that the agent must know. It is kept until the agent acknowledges it, so that an agent
 * that connects late, or again, still gets it.
 */
export class SignalBoxes {
  /** Unacknowledged signals in the order of their numbers. An agent without any has no entry. */
  readonly #boxes = new Map<AgentKey, Map<OpId, SignalMessage>>();
  /** The numbers of the signals of each operation, the newest last. Operations are named by their own numbers. */
  readonly #sent = new Map<number, number[]>();
  readonly #acknowledgedAtMs = new Map<number, number>();
  #lastSequence = 0;

  /**
   * Numbers grow with every signal. The first one is the current time, so that they also grow across a restart: an
   * agent that asks for the signals after the last one it saw must not miss those of the restarted gateway.
   */
  post({ agent, opId, number }: Signalled, signal: Signal, nowMs: number): SignalMessage {
    this.#lastSequence = Math.max(this.#lastSequence + 1, Math.floor(nowMs));
    const message: SignalMessage = { opId, signal, sequence: this.#lastSequence };
    const box = this.#boxes.get(agent);
    // Taken out first, so that the map keeps the order of the sequence numbers.
    box?.delete(opId);
    if (box === undefined) this.#boxes.set(agent, new Map([[opId, message]]));
    else box.set(opId, message);
    this.#remember(number, message.sequence);
    this.#acknowledgedAtMs.delete(number);
    return message;
  }

  /** Unacknowledged signals, oldest first. */
  pendingOf(agent: AgentKey): readonly SignalMessage[] {
    return [...(this.#boxes.get(agent)?.values() ?? [])];
  }

  /**
   * Records that the agent has seen the signal of this number. False when no such signal of this operation was sent.
   */
  acknowledge({ agent, opId, number }: Signalled, sequence: number, nowMs: number): boolean {
    if (this.#sent.get(number)?.includes(sequence) !== true) return false;
    // A repeated acknowledgement, or one of an older signal, is no error, and the newer signal stays.
    if (this.#boxes.get(agent)?.get(opId)?.sequence !== sequence) return true;
    this.#remove(agent, opId);
    this.#acknowledgedAtMs.set(number, nowMs);
    return true;
  }

  /**
   * Notes that a new signal is on its way, and returns the time at which the one before it was acknowledged, if it was.
   */
  expect(number: number): number | undefined {
    const atMs = this.#acknowledgedAtMs.get(number);
    this.#acknowledgedAtMs.delete(number);
    return atMs;
  }

  /** The expected signal is not sent after all: restores the earlier acknowledgement. */
  setAcknowledged(number: number, atMs: number): void {
    this.#acknowledgedAtMs.set(number, atMs);
  }

  acknowledgedAtMs(number: number): number | undefined {
    return this.#acknowledgedAtMs.get(number);
  }

  /** Drops the signals of an operation that has left the registry. */
  forget({ agent, opId, number }: Signalled): void {
    this.#sent.delete(number);
    this.#acknowledgedAtMs.delete(number);
    this.#remove(agent, opId);
  }

  /** Drops the signals of an agent that is not registered and has no operation left. */
  dropAgent(agent: AgentKey): void {
    this.#boxes.delete(agent);
  }

  #remember(number: number, sequence: number): void {
    const sent = this.#sent.get(number);
    if (sent === undefined) return void this.#sent.set(number, [sequence]);
    sent.push(sequence);
    if (sent.length > MAX_REMEMBERED) sent.shift();
  }

  #remove(agent: AgentKey, opId: OpId): void {
    const box = this.#boxes.get(agent);
    box?.delete(opId);
    if (box?.size === 0) this.#boxes.delete(agent);
  }
}
