import type { AgentKey, OpId } from './base/ids.ts';
import type { Signal, SignalMessage } from './views.ts';

/** The numbers of an operation's signals, the newest last. */
type Sent = { readonly agent: AgentKey; readonly sequences: number[] };

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
  readonly #sent = new Map<OpId, Sent>();
  readonly #acknowledgedAtMs = new Map<OpId, number>();
  #lastSequence = 0;

  /**
   * Numbers grow with every signal. The first one is the current time, so that they also grow across a restart: an
   * agent that asks for the signals after the last one it saw must not miss those of the restarted gateway.
   */
  post(agent: AgentKey, opId: OpId, signal: Signal, nowMs: number): SignalMessage {
    this.#lastSequence = Math.max(this.#lastSequence + 1, Math.floor(nowMs));
    const message: SignalMessage = { opId, signal, sequence: this.#lastSequence };
    const box = this.#boxes.get(agent);
    // Taken out first, so that the map keeps the order of the sequence numbers.
    box?.delete(opId);
    if (box === undefined) this.#boxes.set(agent, new Map([[opId, message]]));
    else box.set(opId, message);
    this.#remember(agent, opId, message.sequence);
    this.#acknowledgedAtMs.delete(opId);
    return message;
  }

  /** Unacknowledged signals, oldest first. */
  pendingOf(agent: AgentKey): readonly SignalMessage[] {
    return [...(this.#boxes.get(agent)?.values() ?? [])];
  }

  /**
   * Records that the agent has seen the signal of this number. False when no such signal of this operation was sent.
   */
  acknowledge(agent: AgentKey, opId: OpId, sequence: number, nowMs: number): boolean {
    const sent = this.#sent.get(opId);
    if (sent?.agent !== agent || !sent.sequences.includes(sequence)) return false;
    // A repeated acknowledgement, or one of an older signal, is no error, and the newer signal stays.
    if (this.#boxes.get(agent)?.get(opId)?.sequence !== sequence) return true;
    this.#remove(agent, opId);
    this.#acknowledgedAtMs.set(opId, nowMs);
    return true;
  }

  /**
   * Notes that a new signal is on its way, and returns the time at which the one before it was acknowledged, if it was.
   */
  expect(opId: OpId): number | undefined {
    const atMs = this.#acknowledgedAtMs.get(opId);
    this.#acknowledgedAtMs.delete(opId);
    return atMs;
  }

  /** The expected signal is not sent after all: restores the earlier acknowledgement. */
  setAcknowledged(opId: OpId, atMs: number): void {
    this.#acknowledgedAtMs.set(opId, atMs);
  }

  acknowledgedAtMs(opId: OpId): number | undefined {
    return this.#acknowledgedAtMs.get(opId);
  }

  /** Drops the signals of an operation that has left the registry. */
  forget(agent: AgentKey, opId: OpId): void {
    this.#sent.delete(opId);
    this.#acknowledgedAtMs.delete(opId);
    this.#remove(agent, opId);
  }

  /** Drops the signals of an agent that is not registered and has no operation left. */
  dropAgent(agent: AgentKey): void {
    this.#boxes.delete(agent);
  }

  #remember(agent: AgentKey, opId: OpId, sequence: number): void {
    const sent = this.#sent.get(opId);
    if (sent?.agent !== agent) return void this.#sent.set(opId, { agent, sequences: [sequence] });
    sent.sequences.push(sequence);
    if (sent.sequences.length > MAX_REMEMBERED) sent.sequences.shift();
  }

  #remove(agent: AgentKey, opId: OpId): void {
    const box = this.#boxes.get(agent);
    box?.delete(opId);
    if (box?.size === 0) this.#boxes.delete(agent);
  }
}
