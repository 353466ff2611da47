import type { Signal, SignalMessage } from './commands.ts';
import type { AgentKey, OpId } from './ids.ts';

type Box = { sequence: number; readonly pending: Map<OpId, SignalMessage> };

/**
 * The operators' signals on their way to agents. Per operation only the newest counts, because it says all an agent must
 * know; it is kept until the agent acknowledges it, so that one who connects late, or again, still gets it
 * (spec: gRPC, OpControlStream).
 */
export class SignalBoxes {
  readonly #boxes = new Map<AgentKey, Box>();
  readonly #acknowledgedAtMs = new Map<OpId, number>();

  post(agent: AgentKey, opId: OpId, signal: Signal): SignalMessage {
    let box = this.#boxes.get(agent);
    if (box === undefined) {
      box = { sequence: 0, pending: new Map() };
      this.#boxes.set(agent, box);
    }
    box.sequence += 1;
    const message: SignalMessage = { opId, signal, sequence: box.sequence };
    // Taken out first, so that the map keeps the order of the sequence numbers.
    box.pending.delete(opId);
    box.pending.set(opId, message);
    this.#acknowledgedAtMs.delete(opId);
    return message;
  }

  /** Unacknowledged signals, oldest first. */
  pendingOf(agent: AgentKey): readonly SignalMessage[] {
    const box = this.#boxes.get(agent);
    return box === undefined ? [] : [...box.pending.values()];
  }

  /** Records that the agent has seen the signal of this number, or a newer one. False when no such signal was sent. */
  acknowledge(agent: AgentKey, opId: OpId, sequence: number, nowMs: number): boolean {
    const box = this.#boxes.get(agent);
    if (box === undefined || sequence > box.sequence) return false;
    const pending = box.pending.get(opId);
    if (pending === undefined) return this.#acknowledgedAtMs.has(opId); // said twice: no error
    if (sequence < pending.sequence) return true; // an older signal of this operation: the newer one stays
    box.pending.delete(opId);
    this.#acknowledgedAtMs.set(opId, nowMs);
    return true;
  }

  acknowledgedAtMs(opId: OpId): number | undefined { return this.#acknowledgedAtMs.get(opId); }

  /** The operation has left the registry: nothing about it is worth sending any more. */
  forget(agent: AgentKey, opId: OpId): void {
    this.#acknowledgedAtMs.delete(opId);
    this.#boxes.get(agent)?.pending.delete(opId);
  }

  /** The agent is gone for good; its numbering starts anew if it ever comes back. */
  forgetAgent(agent: AgentKey): void { this.#boxes.delete(agent); }
}
