/** OpControlStream: the operators' signals on their way to one agent (docs/spec.md, Signals). */

import { agentKeyOf } from '../../core/base/ids.ts';
import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { SignalMessage } from '../../core/ops/op-view.ts';
import type { OpControlStreamRequest, OpControlStreamResponse } from '../proto/messages.ts';
import { endOfBearer, voucherPrincipal } from '../rpc/bearer.ts';
import type { ControlSwitch } from '../rpc/control-switch.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { controlOf } from '../rpc/requests.ts';
import type { Sender } from './method.ts';
import { grpcError } from './status.ts';

/**
 * How many new signals may wait for an agent that does not read. With more, its stream is closed. No signal is lost:
 * those not acknowledged are sent again when it returns.
 */
const MAX_UNREAD = 1024;
const UNREAD: Fault = { kind: 'overloaded', retryAfterSecs: 1, what: 'the number of unread signals' };

export type ControlStreamOptions = {
  readonly ports: WirePorts;
  readonly control: ControlSwitch;
  readonly onDefect: (error: unknown) => void;
  readonly onOver: () => void;
};

export class ControlStream {
  readonly #to: Sender<OpControlStreamResponse>;
  readonly #control: ControlSwitch;
  readonly #onOver: () => void;
  /** Its number in the switch, while it is open. */
  #stream: number | undefined;
  /** Whether the call's authorization, and not the agent's own credential, authenticated the agent. */
  #needsBearer = false;
  #isOver = false;
  #lastSequence = 0;
  /** Signals that arrive before the pending ones are written; undefined from then on. */
  #early: SignalMessage[] | undefined = [];
  /** Continues with the pending signals. */
  #onDrained: (() => void) | undefined;

  constructor(
    request: OpControlStreamRequest,
    to: Sender<OpControlStreamResponse>,
    { ports, control, onDefect, onOver }: ControlStreamOptions,
  ) {
    this.#to = to;
    this.#control = control;
    this.#onOver = onOver;
    this.#open(request, ports).catch((error: unknown) => {
      onDefect(error);
      this.close({ kind: 'internal' });
    });
  }

  /** Ends the stream and says why. */
  close(fault: Fault): void {
    this.#to.call.end(grpcError(fault));
  }

  drained(): void {
    this.#onDrained?.();
  }

  over(): void {
    this.#isOver = true;
    if (this.#stream !== undefined) this.#control.close(this.#stream);
    this.#stream = undefined;
    this.#onDrained?.();
    this.#onOver();
  }

  /** Ends the stream when the bearer that opened it is no longer valid. */
  async recheckBearer(ports: WirePorts): Promise<void> {
    const { authorization } = this.#to.call;
    if (!this.#needsBearer || authorization === undefined || this.#isOver) return;
    const ended = await endOfBearer(ports, authorization);
    if (ended !== undefined) this.close(ended);
  }

  async #open(request: OpControlStreamRequest, ports: WirePorts): Promise<void> {
    const opened = await this.#ask(request, ports);
    if (this.#isOver) return;
    if (!opened.ok) return this.close(opened.fault);
    const { call } = this.#to;
    call.recognize(async () => true);
    call.begin(); // so that the agent knows that it is connected although there is no signal yet
    await this.#catchUp(opened.value.pending);
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const message of early) this.#send(message);
  }

  /**
   * Sends all signals at the pace at which the agent reads: there may be many, after a long absence without
   * acknowledgements.
   */
  async #catchUp(pending: readonly SignalMessage[]): Promise<void> {
    for (const message of pending) {
      if (this.#isOver) return;
      if (this.#write(message)) continue;
      await new Promise<void>((resolve) => {
        this.#onDrained = resolve;
      });
    }
  }

  async #ask(
    request: OpControlStreamRequest,
    ports: WirePorts,
  ): Promise<Result<{ readonly pending: readonly SignalMessage[] }, Fault>> {
    const { authorization } = this.#to.call;
    const principal = await voucherPrincipal(ports, request.credentialToken, authorization, this.#to.call);
    if (!principal.ok) return principal;
    const command = controlOf(request, principal.value);
    if (!command.ok) return command;
    if (this.#isOver) return ok({ pending: [] });
    this.#needsBearer = principal.value !== undefined;
    this.#lastSequence = request.resumeAfter ?? 0;
    // Subscribes before it requests the pending signals: otherwise a signal right after the answer would be lost.
    this.#stream = this.#control.open({
      agent: agentKeyOf(command.value.agent),
      subject: principal.value?.subject,
      signal: (message) => this.#take(message),
      close: (fault) => this.close(fault),
    });
    const { reply } = await ports.link.ask({ ...command.value, stream: this.#stream });
    // Verified again after the subscription: a revocation after the first check would have been missed.
    const still = await voucherPrincipal(ports, request.credentialToken, authorization, this.#to.call);
    return still.ok ? reply : still;
  }

  #take(message: SignalMessage): void {
    if (this.#early === undefined) return this.#send(message);
    if (this.#early.push(message) > MAX_UNREAD) this.close(UNREAD);
  }

  #send(message: SignalMessage): void {
    if (this.#isOver) return;
    this.#write(message);
    if (this.#to.call.waiting > MAX_UNREAD) this.close(UNREAD);
  }

  /** False when the agent has to read before more is written. */
  #write(message: SignalMessage): boolean {
    if (message.sequence <= this.#lastSequence) return true;
    this.#lastSequence = message.sequence;
    return this.#to.write(message);
  }
}
