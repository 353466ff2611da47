/** Waits for people to decide, across restarts of the gateway, which keeps approvals. */
import { type Credential, isVerdict } from './credential.ts';
import { ClientClosedError, GatewayError } from './errors.ts';
import type { Settings } from './options.ts';
import type { Reachability } from './reachability.ts';
import { APPROVAL_STATES, dateOf, type Methods } from './schema.ts';
import { requireText } from './text.ts';
import type { Transport } from './transport.ts';
import type { Approval } from './types.ts';
import { type Backoff, backoffMs, type CallOptions, Sleeper, unlessAborted } from './waiters.ts';

export type ApprovalsOptions = {
  readonly settings: Settings;
  readonly transport: Transport;
  readonly credential: Credential;
  readonly reach: Reachability;
};

/** Limits one question to the gateway, which answers after a minute at the latest. */
const ASK_MS = 50_000;
/** A gateway that answers at once must not be asked in a loop. */
const PENDING_BACKOFF: Backoff = { baseMs: 100, maxMs: 2_000 };
const LOST_BACKOFF: Backoff = { baseMs: 100, maxMs: 5_000 };

export class Approvals {
  readonly #options: ApprovalsOptions;
  readonly #sleeper = new Sleeper();
  #isClosed = false;

  constructor(options: ApprovalsOptions) {
    this.#options = options;
  }

  /**
   * The approval once it is not pending any more, or as it is after `waitMs`. Rejects with a GatewayError when the
   * gateway refuses, or could not be reached once in that time.
   */
  async wait(approvalId: string, waitMs: number, { signal }: CallOptions = {}): Promise<Approval> {
    requireText(approvalId, 'approvalId');
    const endMs = performance.now() + waitMs;
    let last: Approval | undefined;
    let trouble: GatewayError | undefined;
    for (let attempt = 0; ; attempt += 1) {
      signal?.throwIfAborted();
      if (this.#isClosed) throw new ClientClosedError();
      const asked = await this.#ask(approvalId, endMs, signal);
      signal?.throwIfAborted();
      if (asked instanceof GatewayError) trouble = asked;
      else if (asked !== undefined) last = asked;
      if (last !== undefined && last.state !== 'pending') return last;
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) {
        if (this.#isClosed) throw new ClientClosedError();
        if (last === undefined && trouble !== undefined) throw trouble;
        return last ?? { approvalId, state: 'pending', reason: undefined, expiresAt: undefined };
      }
      const pauseMs = asked instanceof GatewayError ? asked.retryAfterMs + backoffMs(attempt, LOST_BACKOFF) : 0;
      await this.#sleeper.sleep(Math.min(leftMs, pauseMs + backoffMs(attempt, PENDING_BACKOFF)), signal);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#sleeper.end();
  }

  /** The state so far; an error that may pass; or undefined, if only the time of this question is over. */
  async #ask(
    approvalId: string,
    endMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Approval | GatewayError | undefined> {
    const { settings, credential, transport, reach } = this.#options;
    const token = credential.current ?? (await credential.before(endMs, signal));
    if (token === undefined) return new GatewayError('unavailable', `cannot reach the gateway: ${credential.whyNone}`);
    const timeoutMs = Math.max(1, Math.min(ASK_MS, endMs - performance.now()));
    try {
      const request = { agent: settings.agent, credentialToken: token, approvalId };
      const reply = await unlessAborted(signal, transport.call('WaitApproval', request, timeoutMs));
      reach.succeeded();
      return approvalOf(approvalId, reply);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      if (error.code === 'deadline_exceeded') return undefined;
      if (error.code === 'unauthenticated') {
        credential.renew(token, error);
        return error;
      }
      if (isVerdict(error)) throw error;
      return error;
    }
  }
}

function approvalOf(approvalId: string, { state, reason, expiresAt }: Methods['WaitApproval']['response']): Approval {
  const word = APPROVAL_STATES[state];
  return {
    approvalId,
    // A word of a newer gateway is no decision that this client could act on.
    state: word === undefined || word === 'unspecified' ? 'pending' : word,
    reason: reason === '' ? undefined : reason,
    expiresAt: expiresAt == null ? undefined : dateOf(expiresAt),
  };
}
