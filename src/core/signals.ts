import type { Signal, SignalMessage } from './commands.ts';
import type { AgentKey, OpId } from './ids.ts';

/** The numbers of an operation's signals, the newest last. */
type Sent = { readonly agent: AgentKey; readonly sequences: number[] };

/** Of so many signals of one operation it is remembered that they were sent: more than an agent can have on its hands. */
const MAX_REMEMBERED = 64;

/**
 * The operators' signals on their way to agents. Per operation only the newest counts, because it says all an agent must
 * know; it is kept until the agent acknowledges it, so that one who connects late, or again, still gets it
 * (spec: gRPC, OpControlStream).
 */
export class SignalBoxes {
  /** Unacknowledged signals in the order of their numbers. An agent without any has no box. */
  readonly #boxes = new Map<AgentKey, Map<OpId, SignalMessage>>();
  readonly #sent = new Map<OpId, Sent>();
  readonly #acknowledgedAtMs = new Map<OpId, number>();
  #lastSequence = 0;

  /**
   * Numbers grow with every signal, and begin at the time, so that they go on growing after a restart: an agent that asks
   * for what came after the last one it has seen must not miss what a younger gateway sends.
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
  pendingOf(agent: AgentKey): readonly SignalMessage[] { return [...this.#boxes.get(agent)?.values() ?? []]; }

  /** Records that the agent has seen the signal of this number. False when no such signal of this operation was sent. */
  acknowledge(agent: AgentKey, opId: OpId, sequence: number, nowMs: number): boolean {
    const sent = this.#sent.get(opId);
    if (sent?.agent !== agent || !sent.sequences.includes(sequence)) return false;
    // Said twice, or of an older signal: no error, and the newer one stays.
    if (this.#boxes.get(agent)?.get(opId)?.sequence !== sequence) return true;
    this.#remove(agent, opId);
    this.#acknowledgedAtMs.set(opId, nowMs);
    return true;
  }

  /** A signal is on its way that nobody has acknowledged; answers what was acknowledged until now. */
  expect(opId: OpId): number | undefined {
    const atMs = this.#acknowledgedAtMs.get(opId);
    this.#acknowledgedAtMs.delete(opId);
    return atMs;
  }

  /** The signal that was expected does not come: what was acknowledged before still is. */
  setAcknowledged(opId: OpId, atMs: number): void { this.#acknowledgedAtMs.set(opId, atMs); }

  acknowledgedAtMs(opId: OpId): number | undefined { return this.#acknowledgedAtMs.get(opId); }

  /** The operation has left the registry: nothing about it is worth sending any more. */
  forget(agent: AgentKey, opId: OpId): void {
    this.#sent.delete(opId);
    this.#acknowledgedAtMs.delete(opId);
    this.#remove(agent, opId);
  }

  /** The agent is gone for good, and nobody is left to be told. */
  forgetAgent(agent: AgentKey): void { this.#boxes.delete(agent); }

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
