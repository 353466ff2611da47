/**
 * Operators' signals for a client without streams: while operations run, the gateway is asked for their states. It
 * answers no acknowledgements: operators see the new state, not that the agent has obeyed.
 */
import type { Checker } from './checks.ts';
import type { Control, ControlOptions } from './control.ts';
import { isOfProxy, isVerdict } from './credential.ts';
import { ClientClosedError, GatewayError } from './errors.ts';
import { Events } from './events.ts';
import type { RunningOp } from './op.ts';
import type { Transport } from './transport.ts';
import type { ClientState, OpState, Signal } from './types.ts';
import { type Backoff, backoffMs, Sleeper } from './waiters.ts';

export type PolledControlOptions = Omit<ControlOptions, 'transport'> & {
  readonly transport: Transport;
  readonly checker: Checker;
};

const RETRY: Backoff = { baseMs: 500, maxMs: 5_000 };

export class PolledControl extends Events<'returned'> implements Control {
  readonly #options: PolledControlOptions;
  readonly #ops = new Map<string, RunningOp>();
  readonly #sleeper = new Sleeper();
  #state: ClientState = 'connecting';
  #search: Promise<void> | undefined;
  #isPolling = false;
  #sequence = 0;

  constructor(options: PolledControlOptions) {
    super();
    this.#options = options;
    const { reach, orphans } = options;
    reach.on('reached', () => this.#enter('connected'));
    reach.on('back', () => {
      this.#enter('connected');
      orphans.retry();
      this.emit('returned');
    });
    reach.on('lost', () => {
      this.#enter('reconnecting');
      this.#untilReached().catch(() => {}); // the state and the next call say it
    });
  }

  get state(): ClientState {
    return this.#state;
  }

  ready(): Promise<void> {
    return this.#state === 'connected' ? Promise.resolve() : this.#untilReached();
  }

  attach(op: RunningOp): void {
    this.#ops.set(op.opId, op);
    if (!this.#isPolling) void this.#poll();
  }

  detach(op: RunningOp): void {
    this.#ops.delete(op.opId);
    if (this.#ops.size === 0) this.#sleeper.wakeAll();
  }

  has(opId: string): boolean {
    return this.#ops.has(opId);
  }

  async acknowledged(): Promise<void> {}

  retryNow(): void {
    this.#sleeper.wakeAll();
  }

  close(): void {
    this.#enter('closed');
    this.#sleeper.end();
  }

  get #isClosed(): boolean {
    return this.#state === 'closed';
  }

  #untilReached(): Promise<void> {
    this.#search ??= this.#reached().finally(() => {
      this.#search = undefined;
    });
    return this.#search;
  }

  /** Resolves when the gateway has answered, and takes the credential. */
  async #reached(): Promise<void> {
    const { reach, transport, settings } = this.#options;
    for (let attempt = 0; !this.#isClosed; attempt += 1) {
      const credentialToken = await this.#token();
      try {
        // It changes nothing, and is refused for the credential before anything else.
        const nothing = { agent: settings.agent, opId: 'none:none', sequence: Number.MAX_SAFE_INTEGER };
        await transport.call('AckOpControl', { ...nothing, credentialToken }, settings.callMs);
        return reach.succeeded();
      } catch (error) {
        if (!(error instanceof GatewayError) || this.#isClosed) break;
        if (error.code === 'unauthenticated') this.#renew(credentialToken, error);
        else if (isOfProxy(error)) throw this.#refused(error);
        else if (isVerdict(error) || error.fault !== undefined) return reach.succeeded();
        else reach.failed();
        await this.#sleeper.sleep(
          error.code === 'unauthenticated' ? 0 : backoffMs(attempt, RETRY) + error.retryAfterMs,
        );
      }
    }
    throw new ClientClosedError();
  }

  async #token(): Promise<string> {
    try {
      return await this.#options.credential.get();
    } catch (error) {
      throw error instanceof GatewayError ? this.#refused(error) : error;
    }
  }

  #renew(token: string, because: GatewayError): void {
    try {
      this.#options.credential.renew(token, because);
    } catch {
      throw this.#refused(because);
    }
  }

  #refused(error: GatewayError): GatewayError {
    this.#enter('refused', error);
    return error;
  }

  #enter(state: ClientState, because?: GatewayError): void {
    if (this.#state === state || this.#isClosed) return;
    this.#state = state;
    this.#options.settings.onStateChange(state, because);
  }

  /** As long as operations run. */
  async #poll(): Promise<void> {
    const { settings, checker } = this.#options;
    this.#isPolling = true;
    while (this.#ops.size > 0 && !this.#isClosed) {
      // Operations that begin meanwhile have a whole interval of their own before they are asked for.
      const asked = [...this.#ops.values()];
      await this.#sleeper.sleep(settings.signalMs);
      await Promise.all(
        asked.map(async (op) => {
          if (this.#isClosed || !this.#ops.has(op.opId) || (op.state !== 'running' && op.state !== 'paused')) return;
          const state = await checker.stateOfOp(op.opId);
          if (this.#ops.get(op.opId) === op) await this.#follow(op, state);
        }),
      ).catch((error: unknown) => {
        if (!(error instanceof ClientClosedError)) settings.onWarning(error as Error);
      });
    }
    this.#isPolling = false;
  }

  async #follow(op: RunningOp, state: OpState | undefined): Promise<void> {
    const signal = signalBetween(op.state, state);
    if (signal === undefined) return;
    const { onSignal } = this.#options.settings;
    op.obey(signal, () => {});
    this.#sequence += 1;
    await onSignal({ opId: op.opId, signal, sequence: this.#sequence });
  }
}

/** Infers the operator's signal, if there was one. */
function signalBetween(known: OpState, now: OpState | undefined): Signal | undefined {
  if (now === 'terminated') return 'terminate';
  if (now === 'paused' && known === 'running') return 'pause';
  return now === 'running' && known === 'paused' ? 'resume' : undefined;
}
