import type { AgentKey } from '../../core/base/ids.ts';
import type { Fault } from '../../core/fault.ts';
import type { SignalMessage } from '../../core/ops/op-view.ts';

export type ControlListener = {
  readonly agent: AgentKey;
  /** The subject of the bearer that opened the stream; undefined when the agent's own credential opened it. */
  readonly subject: string | undefined;
  signal(message: SignalMessage): void;
  /** Ends the stream and says why. */
  close(fault: Fault): void;
};

const AGENT_REVOKED: Fault = {
  kind: 'unauthenticated',
  detail: 'the credential token of the agent is no longer valid',
};
const BEARER_REVOKED: Fault = { kind: 'unauthenticated', detail: 'the credential was revoked' };

export class ControlSwitch {
  readonly #listeners = new Map<number, ControlListener>();
  readonly #onClosed: (stream: number, agent: AgentKey) => void;
  #lastStream = 0;

  /** `onClosed` notifies the main thread that a stream is gone. */
  constructor(onClosed: (stream: number, agent: AgentKey) => void) {
    this.#onClosed = onClosed;
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Adds a stream. Returns its number. */
  open(listener: ControlListener): number {
    this.#lastStream += 1;
    this.#listeners.set(this.#lastStream, listener);
    return this.#lastStream;
  }

  close(stream: number): void {
    const listener = this.#listeners.get(stream);
    if (listener === undefined) return;
    this.#listeners.delete(stream);
    this.#onClosed(stream, listener.agent);
  }

  /** A signal for a stream that has just gone is dropped: it stays pending until the agent acknowledges it. */
  deliver(stream: number, message: SignalMessage): void {
    this.#listeners.get(stream)?.signal(message);
  }

  /** After the agent's credential was replaced or removed: closes the streams that were opened with it. */
  revokeAgent(agent: AgentKey): void {
    this.#closeWhere((listener) => listener.agent === agent && listener.subject === undefined, AGENT_REVOKED);
  }

  /** After an API key or an account was revoked: closes the streams that it opened. */
  revokeSubject(subject: string): void {
    this.#closeWhere((listener) => listener.subject === subject, BEARER_REVOKED);
  }

  #closeWhere(matches: (listener: ControlListener) => boolean, fault: Fault): void {
    for (const listener of [...this.#listeners.values()]) if (matches(listener)) listener.close(fault);
  }
}
