/** OpControlStream: the operators' signals on their way to one agent (docs/spec.md, Signals). */
import { Metadata, type ServerWritableStream } from '@grpc/grpc-js';
import { agentKeyOf } from '../../core/base/ids.ts';
import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { SignalMessage } from '../../core/views.ts';
import { binaryCodec } from '../proto/binary.ts';
import type { OpControlStreamResponse } from '../proto/messages.ts';
import { endOfBearer, voucherPrincipal } from '../rpc/bearer.ts';
import type { ControlSwitch } from '../rpc/control-switch.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { controlOf } from '../rpc/requests.ts';
import { authorizationOf } from './authorization.ts';
import { grpcError } from './status.ts';

export type ControlCall = ServerWritableStream<Buffer, OpControlStreamResponse>;

/**
 * How many new signals may wait for an agent that does not read. With more, its stream is closed. No signal is lost:
 * those not acknowledged are sent again when it returns.
 */
const MAX_UNREAD = 1024;
const UNREAD: Fault = { kind: 'overloaded', retryAfterSecs: 1, what: 'the number of unread signals' };

const { decode } = binaryCodec('OpControlStreamRequest');

export type ControlStreamOptions = {
  readonly ports: WirePorts;
  readonly control: ControlSwitch;
  readonly onDefect: (error: unknown) => void;
  readonly onOver: () => void;
};

export class ControlStream {
  readonly #call: ControlCall;
  readonly #control: ControlSwitch;
  /** Its number in the switch, while it is open. */
  #stream: number | undefined;
  /** The authorization that vouched for the agent; undefined when the agent's own credential did. */
  #authorization: string | undefined;
  #isOver = false;
  #lastSequence = 0;
  /** Signals that arrive before the pending ones are written; undefined from then on. */
  #early: SignalMessage[] | undefined = [];

  constructor(call: ControlCall, { ports, control, onDefect, onOver }: ControlStreamOptions) {
    this.#call = call;
    this.#control = control;
    call.on('cancelled', () => this.#leave());
    call.on('close', () => {
      this.#leave();
      onOver();
    });
    this.#open(ports).catch((error: unknown) => {
      onDefect(error);
      this.close({ kind: 'internal' });
    });
  }

  /** Ends the stream and says why. */
  close(fault: Fault): void {
    if (this.#isOver) return;
    this.#leave();
    this.#call.emit('error', grpcError(fault));
  }

  /** Ends the stream when the bearer that opened it is no longer valid. */
  async recheckBearer(ports: WirePorts): Promise<void> {
    if (this.#authorization === undefined || this.#isOver) return;
    const ended = await endOfBearer(ports, this.#authorization);
    if (ended !== undefined) this.close(ended);
  }

  async #open(ports: WirePorts): Promise<void> {
    const opened = await this.#ask(ports);
    if (this.#isOver) return;
    if (!opened.ok) return this.close(opened.fault);
    // Headers are sent at once, so that the agent knows that it is connected although there is no signal yet.
    this.#call.sendMetadata(new Metadata());
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
      if (!this.#write(message)) await this.#drained();
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const settle = (): void => {
        this.#call.off('drain', settle).off('close', settle);
        resolve();
      };
      this.#call.on('drain', settle).on('close', settle);
    });
  }

  async #ask(ports: WirePorts): Promise<Result<{ readonly pending: readonly SignalMessage[] }, Fault>> {
    const request = decode(this.#call.request);
    if (!request.ok) return request;
    const principal = await voucherPrincipal(
      ports,
      request.value.credentialToken,
      authorizationOf(this.#call.metadata),
    );
    if (!principal.ok) return principal;
    const command = controlOf(request.value, principal.value);
    if (!command.ok) return command;
    if (this.#isOver) return ok({ pending: [] });
    this.#authorization = principal.value === undefined ? undefined : authorizationOf(this.#call.metadata);
    this.#lastSequence = request.value.resumeAfter ?? 0;
    // Subscribes before it requests the pending signals: otherwise a signal right after the answer would be lost.
    this.#stream = this.#control.open({
      agent: agentKeyOf(command.value.agent),
      subject: principal.value?.subject,
      signal: (message) => this.#take(message),
      close: (fault) => this.close(fault),
    });
    const { reply } = await ports.link.ask({ ...command.value, stream: this.#stream });
    // Verified again after the subscription: a revocation after the first check would have been missed.
    const still = await voucherPrincipal(ports, request.value.credentialToken, authorizationOf(this.#call.metadata));
    return still.ok ? reply : still;
  }

  #take(message: SignalMessage): void {
    if (this.#early === undefined) return this.#send(message);
    if (this.#early.push(message) > MAX_UNREAD) this.close(UNREAD);
  }

  #send(message: SignalMessage): void {
    if (this.#isOver) return;
    this.#write(message);
    if (this.#call.writableLength > MAX_UNREAD) this.close(UNREAD);
  }

  /** False when the agent has to read before more is written. */
  #write(message: SignalMessage): boolean {
    if (message.sequence <= this.#lastSequence) return true;
    this.#lastSequence = message.sequence;
    return this.#call.write(message);
  }

  #leave(): void {
    this.#isOver = true;
    if (this.#stream !== undefined) this.#control.close(this.#stream);
    this.#stream = undefined;
  }
}
