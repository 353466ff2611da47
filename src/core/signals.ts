import type { Signal, SignalMessage } from './commands.ts';
import type { AgentKey, OpId } from './ids.ts';

type Acknowledgement = { readonly sequence: number; readonly atMs: number };

/**
 * The operators' signals on their way to agents. Per operation only the newest counts, because it says all an agent must
 * know; it is kept until the agent acknowledges it, so that one who connects late, or again, still gets it
 * (spec: gRPC, OpControlStream).
 */
export class SignalBoxes {
  /** Unacknowledged signals in the order of their numbers. An agent without any has no box. */
  readonly #boxes = new Map<AgentKey, Map<OpId, SignalMessage>>();
  readonly #acknowledged = new Map<OpId, Acknowledgement>();
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
    this.#acknowledged.delete(opId);
    return message;
  }

  /** Unacknowledged signals, oldest first. */
  pendingOf(agent: AgentKey): readonly SignalMessage[] { return [...this.#boxes.get(agent)?.values() ?? []]; }

  /** Records that the agent has seen the signal of this number. False when no such signal of this operation was sent. */
  acknowledge(agent: AgentKey, opId: OpId, sequence: number, nowMs: number): boolean {
    const pending = this.#boxes.get(agent)?.get(opId);
    if (pending === undefined) return sequence <= (this.#acknowledged.get(opId)?.sequence ?? 0); // said twice: no error
    if (sequence < pending.sequence) return true; // an older signal of this operation: the newer one stays
    if (sequence > pending.sequence) return false;
    this.#remove(agent, opId);
    this.#acknowledged.set(opId, { sequence, atMs: nowMs });
    return true;
  }

  acknowledgedAtMs(opId: OpId): number | undefined { return this.#acknowledged.get(opId)?.atMs; }

  /** The operation has left the registry: nothing about it is worth sending any more. */
  forget(agent: AgentKey, opId: OpId): void {
    this.#acknowledged.delete(opId);
    this.#remove(agent, opId);
  }

  /** The agent is gone for good, and nobody is left to be told. */
  forgetAgent(agent: AgentKey): void { this.#boxes.delete(agent); }

  #remove(agent: AgentKey, opId: OpId): void {
    const box = this.#boxes.get(agent);
    box?.delete(opId);
    if (box?.size === 0) this.#boxes.delete(agent);
  }
}
