/**
 * The token that the agent presents: given by the caller, or obtained by registering the agent, again when it is no
 * longer valid.
 */
import { ClientClosedError, GatewayError, type GatewayErrorCode } from './errors.ts';
import type { Settings } from './options.ts';
import type { Reachability } from './reachability.ts';
import type { Transport } from './transport.ts';
import { type Backoff, backoffMs, Sleeper, Waiters } from './waiters.ts';

/**
 * A token that stopped working so soon was replaced by another process that runs as the same agent. Registering again
 * would only take away that process's token.
 */
const RENEW_AT_MOST_EVERY_MS = 60_000;
/** Checks wait for it. */
const BACKOFF: Backoff = { baseMs: 100, maxMs: 5_000 };

/** The gateway has refused the request and would do so again. Any other error may pass. */
const VERDICTS: ReadonlySet<GatewayErrorCode> = new Set([
  'unauthenticated',
  'permission_denied',
  'invalid_argument',
  'not_found',
  'already_exists',
  'failed_precondition',
  'unimplemented',
]);
export const isVerdict = ({ code }: GatewayError): boolean => VERDICTS.has(code);

/** As from a proxy that temporarily finds no route to the gateway: without the gateway's own error code. */
export const isOfProxy = ({ code, fault }: GatewayError): boolean =>
  fault === undefined && (code === 'unimplemented' || code === 'permission_denied');

export class Credential {
  readonly #settings: Settings;
  readonly #transport: Transport;
  readonly #reach: Reachability;
  readonly #sleeper = new Sleeper();
  /**
   * Calls that wait for a token. Not on the registration itself: a promise keeps all who ever waited for it until it
   * settles.
   */
  readonly #waiting = new Waiters();
  #token: string | undefined;
  #refusal: GatewayError | undefined;
  #lastTrouble: GatewayError | undefined;
  #registration: Promise<string> | undefined;
  #renewedAtMs = -Infinity;
  #isClosed = false;

  constructor(settings: Settings, transport: Transport, reach: Reachability) {
    this.#settings = settings;
    this.#transport = transport;
    this.#reach = reach;
    this.#token = settings.credential.credentialToken;
    // Nobody waits any longer.
    reach.on('lost', () => this.#waiting.notifyAll(false));
  }

  /**
   * The current token, which the gateway may refuse. A token given by the caller is never dropped: the agent may be
   * registered with it later.
   */
  get current(): string | undefined {
    return this.#token;
  }

  /** Why there is no token yet. */
  get whyNone(): string {
    return `the agent is not registered yet${this.#lastTrouble === undefined ? '' : `: ${this.#lastTrouble.message}`}`;
  }

  get canRenew(): boolean {
    return this.#settings.credential.apiKey !== undefined;
  }

  /**
   * The token, registering the agent first where needed, for as long as that takes. Rejects when the gateway refuses.
   */
  async get(): Promise<string> {
    if (this.#isClosed) throw new ClientClosedError();
    if (this.#refusal !== undefined) throw this.#refusal;
    return this.#token ?? this.#register();
  }

  /**
   * As `get`, but undefined when the time (of `performance.now`) passes, or the gateway is lost, or the signal is
   * aborted, before.
   */
  async before(endMs: number, signal?: AbortSignal): Promise<string | undefined> {
    if (this.#token === undefined && this.#refusal === undefined && !this.#isClosed) {
      void this.#register();
      if (this.#reach.isLost || !(await this.#waiting.wait(endMs - performance.now(), signal))) return undefined;
    }
    return this.get();
  }

  /**
   * Gives up `stale`, which the gateway rejects: `get` and `before` obtain another one. It does not wait for that,
   * because each caller has a deadline of its own. Throws `because` where none can be obtained.
   */
  renew(stale: string, because: GatewayError): void {
    if (this.#token !== stale) return;
    if (!this.canRenew) this.#refuse(because);
    const nowMs = performance.now();
    if (nowMs - this.#renewedAtMs < RENEW_AT_MOST_EVERY_MS) {
      const { orgId, teamId, agentId } = this.#settings.agent;
      this.#refuse(
        new GatewayError(
          'unauthenticated',
          `the token of ${orgId}/${teamId}/${agentId} was replaced again right after it was renewed; is another process running as the same agent?`,
          {},
          { cause: because },
        ),
      );
    }
    this.#renewedAtMs = nowMs;
    this.#token = undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#sleeper.end();
  }

  #refuse(error: GatewayError): never {
    this.#refusal = error;
    if (this.canRenew) this.#token = undefined;
    throw error;
  }

  #register(): Promise<string> {
    if (this.#registration === undefined) {
      this.#registration = this.#untilRegistered().finally(() => {
        this.#registration = undefined;
        this.#waiting.notifyAll(true);
      });
      this.#registration.catch(() => {}); // whoever waits asks `get`, which rejects
    }
    return this.#registration;
  }

  async #untilRegistered(): Promise<string> {
    const {
      agent,
      parent,
      callMs,
      credential: { apiKey },
    } = this.#settings;
    for (let attempt = 0; !this.#isClosed; attempt += 1) {
      try {
        const { credentialToken } = await this.#transport.call('RegisterAgent', { agent, parent }, callMs, apiKey);
        this.#reach.succeeded();
        this.#token = credentialToken;
        return credentialToken;
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        if (isVerdict(error))
          return this.#refuse(
            new GatewayError(
              error.code,
              `cannot register the agent: ${error.message}`,
              { fault: error.fault },
              { cause: error },
            ),
          );
        this.#lastTrouble = error;
        if (error.code !== 'resource_exhausted') this.#reach.failed();
        await this.#sleeper.sleep(Math.max(error.retryAfterMs, backoffMs(attempt, BACKOFF)));
        if (!this.#isClosed) await this.#transport.whenConnected(callMs);
      }
    }
    throw new ClientClosedError();
  }
}
