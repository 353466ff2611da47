/** Keeps the stream of operators' signals open, and acknowledges each signal after it was obeyed. */

import { type Credential, isOfProxy, isVerdict } from './credential.ts';
import { ClientClosedError, GatewayError } from './errors.ts';
import { Events } from './events.ts';
import type { Homes } from './homes.ts';
import type { RunningOp } from './op.ts';
import type { Settings } from './options.ts';
import type { Orphans } from './orphans.ts';
import type { Reachability } from './reachability.ts';
import { numberOf, SIGNALS, type SignalReply } from './schema.ts';
import type { Transport } from './transport.ts';
import type { ClientState, OpSignal } from './types.ts';
import { type Backoff, backoffMs, Sleeper } from './waiters.ts';

export type ControlOptions = {
  readonly settings: Settings;
  readonly transport: Transport & Required<Pick<Transport, 'openControl'>>;
  readonly credential: Credential;
  readonly reach: Reachability;
  readonly orphans: Orphans;
  readonly homes: Homes;
};

/** How operators' signals reach the operations that run. */
export type Control = {
  readonly state: ClientState;
  /** Resolves when signals can arrive. Rejects when the gateway refuses the credential. */
  ready(): Promise<void>;
  /** Delivers signals to this operation from now on. */
  attach(op: RunningOp): void;
  detach(op: RunningOp): void;
  has(opId: string): boolean;
  /** Resolves when the gateway knows of all obeyed signals, or will send them again. */
  acknowledged(): Promise<void>;
  /** The gateway can be reached again, as another call has found. */
  retryNow(): void;
  /** `returned`: open again after it was lost, or could not be opened. */
  on(name: 'returned', listener: () => void): void;
  close(): void;
};

/**
 * A gateway or proxy that restarts loses all agents at the same moment, and pays most for their return, so they come
 * back spread over two seconds. That is long enough for thousands, and an operator who wants to pause a single one does
 * not wait longer.
 */
const RECONNECT: Backoff = { baseMs: 2_000, maxMs: 5_000 };
/** A stream that lasted this long was no failure: the waits begin anew. */
const STEADY_MS = 5_000;
/** After this time a stream is attempted even without a connection, because its error says why there is none. */
const CONNECT_MS = 30_000;
const ACK_BACKOFF: Backoff = { baseMs: 50, maxMs: 2_000 };
const MAX_ACK_ATTEMPTS = 5;

export class ControlChannel extends Events<'returned'> implements Control {
  readonly #options: ControlOptions;
  readonly #ops = new Map<string, RunningOp>();
  readonly #sleeper = new Sleeper();
  readonly #first: Promise<void>;
  #settleFirst: { resolve(): void; reject(error: Error): void } = { resolve: () => {}, reject: () => {} };
  readonly #acknowledgements = new Set<Promise<void>>();
  #state: ClientState = 'connecting';
  #wasLost = false;
  #mayRetryNow = true;

  constructor(options: ControlOptions) {
    super();
    this.#options = options;
    this.#first = new Promise((resolve, reject) => {
      this.#settleFirst = { resolve, reject };
    });
    // Callers that do not use `ready` learn of it through onStateChange.
    this.#first.catch(() => {});
    options.reach.on('back', () => this.retryNow());
    void this.#keepOpen();
  }

  get state(): ClientState {
    return this.#state;
  }

  /** Resolves when the channel has been open once. Rejects when the gateway refuses the credential. */
  ready(): Promise<void> {
    return this.#first;
  }

  /** Delivers signals to this operation from now on. */
  attach(op: RunningOp): void {
    this.#ops.set(op.opId, op);
  }

  detach(op: RunningOp): void {
    this.#ops.delete(op.opId);
  }

  has(opId: string): boolean {
    return this.#ops.has(opId);
  }

  /** Resolves when the gateway knows of all obeyed signals, or will send them again. */
  async acknowledged(): Promise<void> {
    await Promise.all(this.#acknowledgements);
  }

  /**
   * Another call has reached the gateway: the next attempt need not wait any longer. But if that fails,
   * the stream is refused where calls are not, and each attempt after it waits its time.
   */
  retryNow(): void {
    if (this.#state !== 'reconnecting' || !this.#mayRetryNow) return;
    this.#mayRetryNow = false;
    this.#sleeper.wakeAll();
  }

  /** The transport ends the stream. */
  close(): void {
    this.#enter('closed', undefined);
    this.#settleFirst.reject(new ClientClosedError());
    this.#sleeper.end();
  }

  // Read through a getter each time: it changes while the loop waits.
  get #isClosed(): boolean {
    return this.#state === 'closed';
  }

  async #keepOpen(): Promise<void> {
    const { credential, reach, transport } = this.#options;
    for (let attempt = 0; !this.#isClosed; attempt += 1) {
      try {
        const token = await credential.get();
        if (this.#isClosed) return;
        // Whatever is tried before then fails, and would only make the next attempt wait longer.
        if (attempt > 0) await transport.whenConnected(CONNECT_MS);
        if (this.#isClosed) return;
        const openedAtMs = performance.now();
        const error = await this.#listen(token);
        if (this.#isClosed) return;
        this.#wasLost = true;
        this.#enter(this.#state === 'connecting' ? 'connecting' : 'reconnecting', error);
        if (performance.now() - openedAtMs > STEADY_MS) {
          attempt = 0;
          this.#mayRetryNow = true;
        }
        if (error.code === 'unauthenticated') {
          credential.renew(token, error);
          continue;
        }
        // Once it was open, there is a gateway behind the proxy.
        if (isVerdict(error) && !(isOfProxy(error) && this.#state === 'reconnecting')) throw error;
        reach.failed();
      } catch (error) {
        if (this.#isClosed) return;
        return this.#giveUp(
          error instanceof GatewayError ? error : new GatewayError('internal', String(error), {}, { cause: error }),
        );
      }
      await this.#sleeper.sleep(backoffMs(attempt, RECONNECT));
    }
  }

  /** Listens to one stream, from its first to its last signal. Resolves to the error that ended it. */
  #listen(token: string): Promise<GatewayError> {
    const {
      transport,
      settings: { agent },
    } = this.#options;
    const call = transport.openControl({ agent, credentialToken: token });
    return new Promise((resolve) => {
      call.on('metadata', () => this.#opened());
      call.on('data', (reply) => this.#receive(reply));
      call.on('error', resolve);
      call.on('end', () => resolve(new GatewayError('unavailable', 'the gateway ended the stream')));
    });
  }

  #opened(): void {
    if (this.#isClosed) return;
    this.#options.reach.succeeded();
    this.#enter('connected', undefined);
    this.#settleFirst.resolve();
    this.#options.orphans.retry();
    if (this.#wasLost) this.emit('returned');
  }

  #giveUp(error: GatewayError): void {
    this.#enter('refused', error);
    this.#settleFirst.reject(error);
    this.#options.settings.onWarning(error);
  }

  #enter(state: ClientState, because: GatewayError | undefined): void {
    if (this.#state === state || this.#isClosed) return;
    this.#state = state;
    this.#options.settings.onStateChange(state, because);
  }

  #receive({ opId, signal: signalNumber, sequence: wireSequence }: SignalReply): void {
    const signal = SIGNALS[signalNumber];
    const sequence = numberOf(wireSequence);
    // A signal that this client does not know stays unacknowledged, for one that does.
    if (signal === undefined || signal === 'unspecified') return;
    const message: OpSignal = { opId, signal, sequence };
    const op = this.#ops.get(opId);
    op?.obey(signal, () => void this.#acknowledge(message));
    const isAbandoned = op === undefined && this.#options.orphans.signalled(opId);
    // Its body is over: nothing is left that would have to obey.
    if (isAbandoned) void this.#acknowledge(message);
    void this.#notify(message, op === undefined && !isAbandoned);
  }

  async #notify(message: OpSignal, isTheirs: boolean): Promise<void> {
    const { onSignal, onWarning } = this.#options.settings;
    try {
      const isDone = await onSignal(message);
      if (isTheirs && isDone === true) await this.#acknowledge(message);
    } catch (error) {
      onWarning(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** If it cannot be delivered, the gateway sends the signal again on the next stream, and learns of it then. */
  #acknowledge(signal: OpSignal): Promise<void> {
    const acknowledgement = this.#sendAcknowledgement(signal).finally(() =>
      this.#acknowledgements.delete(acknowledgement),
    );
    this.#acknowledgements.add(acknowledgement);
    return acknowledgement;
  }

  async #sendAcknowledgement({ opId, sequence }: OpSignal): Promise<void> {
    const {
      transport,
      credential,
      homes,
      settings: { agent, callMs, onWarning },
    } = this.#options;
    for (let attempt = 0; attempt < MAX_ACK_ATTEMPTS && !this.#isClosed; attempt += 1) {
      const credentialToken = credential.current;
      if (credentialToken === undefined) return;
      try {
        const opHome = homes.of(opId);
        await transport.call('AckOpControl', { agent, credentialToken, opId, sequence, opHome }, callMs);
        return;
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        // Gone, or to be sent again.
        if (error.code === 'not_found' || error.code === 'unauthenticated' || this.#isClosed) return;
        if (isVerdict(error)) return onWarning(error);
        await this.#sleeper.sleep(Math.max(error.retryAfterMs, backoffMs(attempt, ACK_BACKOFF)));
      }
    }
  }
}
