/** The agent's calls other than checks. Repeating one does no harm, so each is tried until it is answered. */
import type { Checker } from './checks.ts';
import { type Credential, isVerdict } from './credential.ts';
import { ClientClosedError, GatewayError } from './errors.ts';
import type { Homes } from './homes.ts';
import { requireTokens, spentBy } from './messages.ts';
import type { Settings } from './options.ts';
import type { Reachability } from './reachability.ts';
import { BUDGET_STATUSES, type MethodName, type Methods, OUTCOMES, PERIODS, TIERS } from './schema.ts';
import { cutToBytes, newSpanId, requireText } from './text.ts';
import type { Transport } from './transport.ts';
import type { Completion, TokenUsage, Usage, UsageAnswer } from './types.ts';
import { type Backoff, backoffMs, Sleeper } from './waiters.ts';

export type CallsOptions = {
  readonly settings: Settings;
  readonly transport: Transport;
  readonly credential: Credential;
  readonly reach: Reachability;
  readonly checker: Checker;
  readonly homes: Homes;
};

type Retries = {
  readonly isGivenUp?: () => boolean;
  /** Called before each further attempt with the error of the last one, unless its token was refused. */
  readonly onRetry?: (error: GatewayError) => void;
};

const BACKOFF: Backoff = { baseMs: 50, maxMs: 2_000 };
/** With these the gateway says that it has not even begun. */
const UNDONE_FAULTS: ReadonlySet<string> = new Set(['overloaded', 'rate_limited']);

/** How an operation ended, as far as it is known. */
export type Ended = {
  readonly costUsd?: number | undefined;
  readonly usage?: TokenUsage | undefined;
  readonly succeeded?: boolean;
  /** The error; undefined: none. */
  readonly failure?: string | undefined;
};

/** The gateway's limit. */
const MAX_ERROR_BYTES = 1024;

export class Calls {
  readonly #options: CallsOptions;
  readonly #sleeper = new Sleeper();
  #isClosed = false;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  async complete(opId: string, { costUsd, usage, error: failure }: Completion): Promise<void> {
    if (failure !== undefined) requireText(failure, 'error');
    let mayBeDone = false;
    try {
      await this.#untilAnswered('CompleteOp', this.#completion(opId, { costUsd, usage, failure }), {
        onRetry: ({ fault = '' }) => {
          mayBeDone ||= !UNDONE_FAULTS.has(fault);
        },
      });
    } catch (error) {
      // An earlier attempt may have completed it, and only the answer was lost. Anything else is the caller's mistake.
      const isRepeated = mayBeDone && error instanceof GatewayError && error.fault === 'invalid_transition';
      if (!isRepeated || (await this.#options.checker.stateOfOp(opId)) !== 'completing') throw error;
    }
    this.#options.homes.drop(opId);
  }

  /** As `complete`, but given up as soon as the gateway is lost, for a caller that comes again when it is back. */
  async completeUnlessLost(opId: string, ended: Ended = {}): Promise<void> {
    await this.#untilAnswered('CompleteOp', this.#completion(opId, ended), {
      isGivenUp: () => this.#options.reach.isLost,
    });
    this.#options.homes.drop(opId);
  }

  async recordUsage(usage: Usage): Promise<UsageAnswer> {
    const { opId, usageId = newSpanId() } = usage;
    const spent = spentBy(usage);
    requireText(usageId, 'usageId');
    if (opId !== undefined) requireText(opId, 'opId');
    const {
      settings: { agent },
      homes,
    } = this.#options;
    // All attempts have the same usage id, so that the money is counted once, however many of them arrive.
    const answer = await this.#untilAnswered('RecordUsage', (credentialToken) => ({
      agent,
      credentialToken,
      ...spent,
      usageId,
      opId,
      opHome: opId === undefined ? undefined : homes.of(opId),
    }));
    const costUsd = answer.costUsd ?? undefined;
    if (BUDGET_STATUSES[answer.status] !== 'limit_exceeded') return { status: 'ok', costUsd };
    const tier = TIERS[answer.tier];
    const period = PERIODS[answer.period];
    if (tier === undefined || tier === 'unspecified' || period === undefined || period === 'unspecified')
      throw new GatewayError('internal', 'the gateway reported a limit that this client does not know');
    return { status: 'limit_exceeded', tier, period, costUsd };
  }

  /** Nobody has to decide any more: false where it was decided, used or over before. */
  async cancelApproval(approvalId: string): Promise<boolean> {
    requireText(approvalId, 'approvalId');
    const { agent } = this.#options.settings;
    try {
      await this.#untilAnswered('CancelApproval', (credentialToken) => ({ agent, credentialToken, approvalId }));
      return true;
    } catch (error) {
      if (error instanceof GatewayError && error.fault === 'invalid_transition') return false;
      throw error;
    }
  }

  /** Calls that wait for their next attempt are over. */
  close(): void {
    this.#isClosed = true;
    this.#sleeper.end();
  }

  #completion(opId: string, { costUsd, usage, succeeded, failure }: Ended) {
    if (usage !== undefined) requireTokens(usage);
    const spent = usage === undefined ? { costUsd } : spentBy({ ...usage, costUsd });
    const {
      settings: { agent },
      homes,
    } = this.#options;
    const outcome =
      failure === undefined
        ? succeeded === true && { outcome: OUTCOMES.indexOf('success') }
        : { outcome: OUTCOMES.indexOf('failure'), error: cutToBytes(failure, MAX_ERROR_BYTES) };
    return (credentialToken: string) => ({
      agent,
      credentialToken,
      opId,
      ...spent,
      ...outcome,
      opHome: homes.of(opId),
    });
  }

  /**
   * Until the deadline for calls: what was spent must not be lost with a restart that takes longer than checks may
   * wait.
   */
  async #untilAnswered<N extends MethodName>(
    name: N,
    requestOf: (credentialToken: string) => Methods[N]['request'],
    { isGivenUp = () => false, onRetry = () => {} }: Retries = {},
  ): Promise<Methods[N]['response']> {
    const {
      settings: { callMs },
      transport,
      credential,
      reach,
    } = this.#options;
    const endMs = performance.now() + callMs;
    let before: GatewayError | undefined;
    for (let attempt = 0; ; attempt += 1) {
      if (this.#isClosed) throw new ClientClosedError();
      const token = credential.current ?? (await credential.before(endMs));
      if (token === undefined) throw new GatewayError('unavailable', `cannot reach the gateway: ${credential.whyNone}`);
      try {
        const response = await transport.call(name, requestOf(token), Math.max(1, endMs - performance.now()));
        reach.succeeded();
        return response;
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        if (error.code === 'unauthenticated') {
          credential.renew(token, error);
          continue;
        }
        if (error.fault === undefined && !isVerdict(error)) reach.failed();
        else reach.succeeded();
        const waitMs = Math.max(error.retryAfterMs, backoffMs(attempt, BACKOFF));
        // The earlier error says more than that the remaining time is over.
        const cause = error.code === 'deadline_exceeded' ? (before ?? error) : error;
        if (
          isVerdict(error) ||
          error.fault === 'payload_too_large' ||
          isGivenUp() ||
          performance.now() + waitMs >= endMs
        )
          throw cause;
        before = cause;
        onRetry(error);
        await this.#sleeper.sleep(waitMs);
      }
    }
  }
}
