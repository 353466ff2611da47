/**
 * Checks: pipelined on one stream, sent again one by one where the stream breaks, tried again where the gateway is
 * overloaded, and always answered within their deadline. Sending a check again is safe: the gateway knows the operation
 * by its id.
 */
import { type Answered, CheckStream } from './check-stream.ts';
import type { Credential } from './credential.ts';
import { ClientClosedError, GatewayError, type GatewayErrorCode } from './errors.ts';
import type { Homes } from './homes.ts';
import { type CheckBody, checkBodyOf, nameIn } from './messages.ts';
import type { Settings } from './options.ts';
import type { Orphans } from './orphans.ts';
import type { Reachability } from './reachability.ts';
import {
  CAUSES,
  type CheckMessage,
  type CheckReply,
  DECISIONS,
  dateOf,
  numberOf,
  OP_STATES,
  objectOf,
  PERIODS,
  type StreamCheckReply,
  TIERS,
} from './schema.ts';
import type { Transport } from './transport.ts';
import type { CheckAnswer, Decision, Denial, Obligation, OpState } from './types.ts';
import {
  type Backoff,
  backoffMs,
  type CallOptions,
  Sleeper,
  Slots,
  soon,
  type Underway,
  unlessAborted,
} from './waiters.ts';

export type CheckerOptions = {
  readonly settings: Settings;
  readonly transport: Transport;
  readonly credential: Credential;
  readonly reach: Reachability;
  readonly underway: Underway;
  /** Operations that the gateway may have allowed after their checks were given up: nobody will ever act on them. */
  readonly orphans: Orphans;
  readonly homes: Homes;
};

export type CheckOptions = CallOptions & {
  /** The operation is new with this check and nobody else knows it. */
  readonly isFresh?: boolean;
};

/** A check, from its call to the end of its last attempt. */
type Inquiry = {
  readonly body: CheckBody;
  readonly isFresh: boolean;
  readonly signal: AbortSignal | undefined;
  readonly endMs: number;
  /** Its caller has aborted it, and learns of no answer. */
  hasLeft: boolean;
  /** An attempt was lost, and may have reached the gateway. */
  isUncertain: boolean;
};

type AttemptOf<K extends Attempt['kind']> = Extract<Attempt, { readonly kind: K }>;

const BUSY_BACKOFF: Backoff = { baseMs: 25, maxMs: 1_000 };
const LOST_BACKOFF: Backoff = { baseMs: 50, maxMs: 500 };
/** How long the unary call is used after a stream broke before its first answer. */
const STREAM_RETRY: Backoff = { baseMs: 100, maxMs: 5_000 };

export class Checker {
  readonly #options: CheckerOptions;
  readonly #slots: Slots;
  readonly #sleeper = new Sleeper();
  #stream: CheckStream | undefined;
  #streamFailures = 0;
  #streamAfterMs = 0;
  #isClosed = false;

  constructor(options: CheckerOptions) {
    this.#options = options;
    this.#slots = new Slots(options.settings.maxInFlight);
  }

  /**
   * Rejects with a GatewayError when the gateway finds the check malformed or refuses the API key, with a
   * ClientClosedError, and with the reason of the signal.
   */
  async check(body: CheckBody, { isFresh = false, signal }: CheckOptions = {}): Promise<CheckAnswer> {
    signal?.throwIfAborted();
    const { checkMs } = this.#options.settings;
    const inquiry: Inquiry = {
      body,
      isFresh,
      signal,
      endMs: performance.now() + checkMs,
      hasLeft: false,
      isUncertain: false,
    };
    if (!this.#slots.tryTake() && !(await this.#slots.take(checkMs, signal))) {
      if (this.#isClosed) throw new ClientClosedError();
      signal?.throwIfAborted();
      return this.#unreachable(body, `the check waited in the queue for ${checkMs} ms`);
    }
    try {
      return await this.#untilAnswered(inquiry);
    } finally {
      this.#slots.give();
    }
  }

  /**
   * The state of an operation of one's own, by a check that is not carried out and changes nothing. Undefined when the
   * gateway does not say.
   */
  async stateOf(body: CheckBody): Promise<OpState | undefined> {
    try {
      return (await this.check({ ...body, dryRun: true })).opState;
    } catch (error) {
      if (error instanceof GatewayError || error instanceof ClientClosedError) return undefined;
      throw error;
    }
  }

  /** As `stateOf`, where only the id of the operation is known. */
  stateOfOp(opId: string): Promise<OpState | undefined> {
    return this.stateOf(checkBodyOf({ action: 'op.complete' }, this.#options.settings.agent, nameIn(opId)));
  }

  close(): void {
    this.#isClosed = true;
    this.#slots.endWaits();
    this.#sleeper.end();
  }

  async #untilAnswered(inquiry: Inquiry): Promise<CheckAnswer> {
    const { credential, reach, homes } = this.#options;
    const { body, endMs, signal } = inquiry;
    for (let number = 0; ; number += 1) {
      if (this.#isClosed) throw new ClientClosedError();
      this.#throwIfLeft(inquiry);
      const token = credential.current ?? (await credential.before(endMs, signal));
      this.#throwIfLeft(inquiry);
      if (token === undefined) return this.#unreachable(body, credential.whyNone);
      const opHome = homes.of(opIdOf(body));
      const asked = this.#attempt({ credentialToken: token, opHome, ...body }, inquiry);
      const attempt = await unlessAborted(signal, asked, () => this.#leave(inquiry, asked));
      switch (attempt.kind) {
        case 'answer':
          reach.succeeded();
          if (number < 3 && (await unlessAborted(signal, this.#isTokenVoid(attempt.reply, token, endMs)))) continue;
          return answerOf(body, attempt.reply);
        case 'busy': {
          reach.succeeded();
          inquiry.isUncertain ||= attempt.mayBeDone;
          const answer = await this.#waitWhileBusy(attempt, inquiry, number);
          if (answer !== undefined) return answer;
          break;
        }
        case 'lost': {
          reach.failed();
          const answer = await this.#waitWhileLost(attempt, inquiry, number);
          if (answer !== undefined) return answer;
          break;
        }
        case 'late':
          reach.failed();
          if (inquiry.isUncertain) this.#abandon(inquiry);
          return this.#unreachable(body, `no answer within ${this.#options.settings.checkMs} ms`);
        case 'refused':
          reach.succeeded();
          throw attempt.error;
      }
    }
  }

  /**
   * Waits for the next attempt; returns the answer if there is no time for one. The gateway was reached, so
   * `onUnreachable` does not apply.
   */
  async #waitWhileBusy(
    { because, retryAfterMs }: AttemptOf<'busy'>,
    inquiry: Inquiry,
    number: number,
  ): Promise<CheckAnswer | undefined> {
    // With jitter, so that clients refused together do not all return together.
    const waitMs = retryAfterMs * (1 + Math.random()) + backoffMs(number, BUSY_BACKOFF);
    if (performance.now() + waitMs >= inquiry.endMs) {
      if (inquiry.isUncertain) this.#abandon(inquiry, 'deny');
      return unanswered(inquiry.body, { decision: 'deny', reason: because, unreachable: false });
    }
    await this.#sleeper.sleep(waitMs, inquiry.signal);
    return undefined;
  }

  /**
   * Waits for the next attempt; returns the answer if there is none, because time is up or the gateway counts as lost.
   */
  async #waitWhileLost(
    { because }: AttemptOf<'lost'>,
    inquiry: Inquiry,
    number: number,
  ): Promise<CheckAnswer | undefined> {
    const leftMs = inquiry.endMs - performance.now();
    if (this.#options.reach.isLost || leftMs <= 0) {
      if (inquiry.isUncertain) this.#abandon(inquiry);
      if (this.#isClosed) throw new ClientClosedError();
      return this.#unreachable(inquiry.body, because);
    }
    await this.#sleeper.sleep(Math.min(leftMs, backoffMs(number, LOST_BACKOFF)), inquiry.signal);
    return undefined;
  }

  /** Throws when the caller does not wait any longer. */
  #throwIfLeft(inquiry: Inquiry): void {
    if (inquiry.signal?.aborted !== true) return;
    inquiry.hasLeft = true;
    if (inquiry.isUncertain) this.#abandon(inquiry);
    throw inquiry.signal.reason;
  }

  /**
   * The gateway may have allowed it, or will. Nobody acts on it, unless `onUnreachable` lets its caller go on:
   * then the caller reports its end.
   */
  #abandon({ body, isFresh, hasLeft }: Inquiry, answered: Decision = this.#options.settings.onUnreachable): void {
    if (isFresh && (hasLeft || answered === 'deny')) this.#options.orphans.add(opIdOf(body));
  }

  /** The caller has gone while the gateway decides. */
  #leave(inquiry: Inquiry, attempt: Promise<Attempt>): void {
    inquiry.hasLeft = true;
    void this.#options.underway.during(async () => {
      const decided = await attempt;
      const mayBeAllowed =
        decided.kind === 'answer' ? DECISIONS[decided.reply.decision] === 'allow' : inquiry.isUncertain;
      if (mayBeAllowed) this.#abandon(inquiry);
    });
  }

  async #attempt(message: CheckMessage, inquiry: Inquiry): Promise<Attempt> {
    const stream = this.#openStream();
    if (stream !== undefined) {
      const attempt = await this.#ask(stream, message, inquiry);
      if (attempt.kind !== 'lost') return attempt;
      inquiry.isUncertain ||= !attempt.isUnsent;
      if (inquiry.hasLeft) return attempt;
    }
    return this.#checkAlone(message, inquiry);
  }

  #ask(stream: CheckStream, message: CheckMessage, inquiry: Inquiry): Promise<Attempt> {
    return new Promise((resolve) => {
      let isLate = false;
      const giveUp = (): void => {
        isLate = true;
        resolve({ kind: 'late' });
      };
      // After a long computation, the agent first reads what arrived meanwhile.
      const timer = setTimeout(() => soon(giveUp), inquiry.endMs - performance.now());
      const settle = (answered: Answered): void => {
        clearTimeout(timer);
        if (answered.kind === 'answered') this.#learnHome(inquiry, answered.reply);
        if (!isLate) resolve(attemptOnStream(answered));
        else if (answered.kind === 'broken' || DECISIONS[answered.reply.decision] === 'allow') this.#abandon(inquiry);
      };
      stream.ask(message, settle);
    });
  }

  async #checkAlone(message: CheckMessage, inquiry: Inquiry): Promise<Attempt> {
    const leftMs = inquiry.endMs - performance.now();
    if (leftMs <= 0) return { kind: 'late' };
    try {
      const reply = await this.#options.transport.call('CheckAction', message, leftMs);
      this.#learnHome(inquiry, reply);
      return { kind: 'answer', reply };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      const attempt = attemptOfError(error);
      if (attempt.kind === 'late') this.#abandon(inquiry);
      if (attempt.kind === 'lost') inquiry.isUncertain ||= !attempt.isUnsent;
      return attempt;
    }
  }

  /** Also of an answer that comes too late: the completion has to name the operation's home. */
  #learnHome({ body }: Inquiry, { opHome, opState }: CheckReply): void {
    if (OP_STATES[opState] === 'terminated') this.#options.homes.drop(opIdOf(body));
    else this.#options.homes.learn(opIdOf(body), opHome);
  }

  /** The stream in use, or a new one; undefined while there is a reason to ask one by one. */
  #openStream(): CheckStream | undefined {
    const { transport, settings } = this.#options;
    const stream = this.#stream;
    // The stream takes requests but answers none: abandoned ones would pile up in it.
    if (stream !== undefined && !stream.isOver)
      return stream.unanswered < 2 * settings.maxInFlight ? stream : undefined;
    if (performance.now() < this.#streamAfterMs) return undefined;
    const call = transport.openChecks();
    if (call === undefined) return undefined;
    this.#stream = new CheckStream(call, (hasAnswered) => {
      this.#streamFailures = hasAnswered ? 0 : this.#streamFailures + 1;
      this.#streamAfterMs = performance.now() + backoffMs(this.#streamFailures, STREAM_RETRY);
    });
    return this.#stream;
  }

  /**
   * Whether it was the token that was refused, and another is in its place. A deny without an operation may have other
   * causes, and a call of the agent's own shows it: it fails for the token before it fails for anything else.
   */
  async #isTokenVoid(reply: CheckReply, token: string, endMs: number): Promise<boolean> {
    const {
      credential,
      transport,
      settings: { agent },
    } = this.#options;
    if (
      !credential.canRenew ||
      DECISIONS[reply.decision] !== 'deny' ||
      OP_STATES[reply.opState] !== 'unspecified' ||
      reply.policy !== ''
    )
      return false;
    if (credential.current !== token) return true;
    try {
      await transport.call(
        'AckOpControl',
        { agent, credentialToken: token, opId: reply.opId, sequence: Number.MAX_SAFE_INTEGER },
        Math.max(1, endMs - performance.now()),
      );
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      if (error.code !== 'unauthenticated') return false;
      credential.renew(token, error);
      return true;
    }
    return false;
  }

  #unreachable(body: CheckBody, because: string): CheckAnswer {
    return unanswered(body, {
      decision: this.#options.settings.onUnreachable,
      reason: `cannot reach the gateway: ${because}`,
      unreachable: true,
    });
  }
}

const opIdOf = ({ traceId, spanId }: { readonly traceId: string; readonly spanId: string }): string =>
  `${traceId}:${spanId}`;

/** A word of a newer gateway reads as none. */
const known = <T extends string>(words: readonly ('unspecified' | T)[], number: number): T | undefined => {
  const word = words[number];
  return word === 'unspecified' ? undefined : word;
};

const denialOf = ({ cause, tier, period, resetsAt }: CheckReply): Denial => ({
  cause: known(CAUSES, cause),
  tier: known(TIERS, tier),
  period: known(PERIODS, period),
  resetsAt: resetsAt == null ? undefined : dateOf(resetsAt),
});

const NO_DENIAL: Denial = { cause: undefined, tier: undefined, period: undefined, resetsAt: undefined };

const NO_OBLIGATIONS: readonly Obligation[] = [];

const obligationOf = ({ id, type, properties }: CheckReply['obligations'][number]): Obligation => ({
  id,
  type,
  properties: properties == null ? {} : objectOf(properties),
});

/** A decision of a newer gateway, which this client does not know, is a deny. */
const decisionOf = (number: number): Decision => known<Decision>(DECISIONS, number) ?? 'deny';

function answerOf(body: CheckBody, reply: CheckReply): CheckAnswer {
  const { decision, reason, policy, ruleId, opState, auditId, approvalId, obligations, remedy } = reply;
  const state = OP_STATES[opState];
  const number = numberOf(auditId);
  return {
    decision: decisionOf(decision),
    reason,
    policy: policy === '' ? undefined : policy,
    ruleId: ruleId === '' ? undefined : ruleId,
    opId: opIdOf(body),
    opState: state === 'unspecified' ? undefined : state,
    auditId: number === 0 ? undefined : number,
    approvalId: approvalId === '' ? undefined : approvalId,
    obligations: obligations.length === 0 ? NO_OBLIGATIONS : obligations.map(obligationOf),
    remedy: remedy === '' ? undefined : remedy,
    unreachable: false,
    ...denialOf(reply),
  };
}

/** An answer that is not the gateway's. */
const unanswered = (
  body: CheckBody,
  answer: Pick<CheckAnswer, 'decision' | 'reason' | 'unreachable'>,
): CheckAnswer => ({
  ...answer,
  ...NO_DENIAL,
  policy: undefined,
  ruleId: undefined,
  opId: opIdOf(body),
  opState: undefined,
  auditId: undefined,
  approvalId: undefined,
  obligations: NO_OBLIGATIONS,
  remedy: undefined,
});

/** The outcome of one attempt to have an action checked. */
type Attempt =
  | { readonly kind: 'answer'; readonly reply: CheckReply }
  /** The gateway says that it cannot decide now. `mayBeDone`: but another one may have. */
  | {
      readonly kind: 'busy';
      readonly because: string;
      readonly retryAfterMs: number;
      readonly mayBeDone: boolean;
    }
  /** `isUnsent`: there was no connection. Otherwise nobody knows whether the gateway has seen it. */
  | { readonly kind: 'lost'; readonly because: string; readonly isUnsent: boolean }
  | { readonly kind: 'late' }
  | { readonly kind: 'refused'; readonly error: GatewayError };

/** The fault of a gateway that is shutting down. It may have decided before. */
const LEAVING = 'shutting_down';
/** The fault of a gateway that has passed the check on to the operation's home, and got no answer. */
const HOME_AWAY = 'unreachable_gateway';
/** The faults of a gateway that cannot decide at the moment. */
const BUSY_FAULTS: ReadonlySet<string> = new Set([
  HOME_AWAY,
  'overloaded',
  'rate_limited',
  'audit_unavailable',
  'store_unreachable',
]);
const CODE_OF_FAULT: Readonly<Record<string, GatewayErrorCode>> = {
  invalid_argument: 'invalid_argument',
  unauthenticated: 'unauthenticated',
  insufficient_scope: 'permission_denied',
  org_forbidden: 'permission_denied',
  not_owner: 'permission_denied',
  impersonation: 'permission_denied',
  not_found: 'not_found',
  payload_too_large: 'resource_exhausted',
  internal: 'internal',
};

/** The error of a broken stream says little about one of its checks, so each is asked again on its own. */
export function attemptOnStream(answered: Answered): Attempt {
  if (answered.kind === 'answered') return attemptOfReply(answered.reply);
  const { error } = answered;
  return error.fault === 'payload_too_large' ? { kind: 'refused', error } : lostBy(error);
}

function attemptOfError(error: GatewayError): Attempt {
  const { code, fault, message, retryAfterMs } = error;
  if (fault === LEAVING) return lostBy(error);
  if (fault !== undefined)
    return BUSY_FAULTS.has(fault) ? busyWith(fault, message, retryAfterMs) : { kind: 'refused', error };
  switch (code) {
    case 'deadline_exceeded':
      return { kind: 'late' };
    case 'resource_exhausted':
      return { kind: 'busy', because: message, retryAfterMs, mayBeDone: false };
    case 'invalid_argument':
    case 'unimplemented':
    case 'unauthenticated':
    case 'permission_denied':
      return { kind: 'refused', error };
    default:
      return lostBy(error);
  }
}

const busyWith = (fault: string, because: string, retryAfterMs: number): Attempt => ({
  kind: 'busy',
  because,
  retryAfterMs,
  mayBeDone: fault === HOME_AWAY,
});

const lostBy = ({ message, isUnsent }: GatewayError): Attempt => ({ kind: 'lost', because: message, isUnsent });

function attemptOfReply(reply: StreamCheckReply): Attempt {
  const { error } = reply;
  if (error == null) return { kind: 'answer', reply };
  const { code, message, retryAfterSecs } = error;
  if (code === LEAVING) return { kind: 'lost', because: message, isUnsent: false };
  if (BUSY_FAULTS.has(code)) return busyWith(code, message, retryAfterSecs * 1000);
  return {
    kind: 'refused',
    error: new GatewayError(CODE_OF_FAULT[code] ?? 'unknown', message, {
      fault: code,
      retryAfterMs: retryAfterSecs * 1000,
    }),
  };
}
