/**
 * Checks: pipelined on one stream, sent again one by one where the stream breaks, tried again where the gateway is overloaded,
 * and always answered within their deadline. Sending a check again is safe: the gateway knows the operation by its id.
 */
import { backoffMs, Sleeper, type Backoff } from './backoff.ts';
import { CheckStream, type Answered } from './check-stream.ts';
import type { Credential } from './credential.ts';
import { ClientClosedError, GatewayError, type GatewayErrorCode } from './errors.ts';
import type { Settings } from './options.ts';
import type { Reachability } from './reachability.ts';
import { DECISIONS, numberOf, OP_STATES, type CheckMessage, type CheckReply, type StreamCheckReply } from './schema.ts';
import { Slots } from './slots.ts';
import type { Transport } from './transport.ts';
import type { CheckAnswer, OpState } from './types.ts';

/** The parts of a check that are the same in every attempt. */
export type CheckBody = Omit<CheckMessage, 'credentialToken' | 'correlationId'>;

export type CheckerOptions = {
  readonly settings: Settings;
  readonly transport: Transport;
  readonly credential: Credential;
  readonly reach: Reachability;
  /** The gateway may have allowed this operation after its check had been given up: nobody will ever act on it. */
  readonly onOrphan: (opId: string) => void;
};

type Attempt =
  | { readonly kind: 'answer'; readonly reply: CheckReply }
  /** The gateway says that it cannot decide now. */
  | { readonly kind: 'busy'; readonly because: string; readonly retryAfterMs: number }
  /** Nobody knows whether the gateway has seen it. */
  | { readonly kind: 'lost'; readonly because: string }
  | { readonly kind: 'late' }
  | { readonly kind: 'refused'; readonly error: GatewayError };

const BUSY_BACKOFF: Backoff = { baseMs: 25, maxMs: 1_000 };
const LOST_BACKOFF: Backoff = { baseMs: 50, maxMs: 500 };
/** How long the unary call is used after a stream broke before its first answer. */
const STREAM_RETRY: Backoff = { baseMs: 100, maxMs: 5_000 };

/** The faults by which the gateway says that it cannot decide for the moment. */
const BUSY_FAULTS: ReadonlySet<string> = new Set(['overloaded', 'rate_limited', 'audit_unavailable', 'store_unreachable']);
const CODE_OF_FAULT: Readonly<Record<string, GatewayErrorCode>> = {
  invalid_argument: 'invalid_argument', unauthenticated: 'unauthenticated', insufficient_scope: 'permission_denied', org_forbidden: 'permission_denied',
  not_owner: 'permission_denied', impersonation: 'permission_denied', not_found: 'not_found', payload_too_large: 'resource_exhausted', internal: 'internal',
};

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
   * Rejects with a GatewayError when the gateway finds the check malformed or refuses the API key, and with a
   * ClientClosedError. `isFresh`: the operation is new with this check and nobody else knows it.
   */
  async check(body: CheckBody, isFresh: boolean): Promise<CheckAnswer> {
    const { checkMs, onUnreachable } = this.#options.settings;
    const endMs = performance.now() + checkMs;
    if (!this.#slots.tryTake() && !(await this.#slots.take(checkMs))) {
      if (this.#isClosed) throw new ClientClosedError();
      return this.#unreachable(body, `the check waited ${checkMs} ms for its turn`);
    }
    try {
      // Given up, but allowed: somebody acts on it, and tells its end.
      return await this.#untilAnswered(body, isFresh && onUnreachable === 'deny', endMs);
    } finally {
      this.#slots.give();
    }
  }

  /** A check that is not carried out tells the state of an operation of one's own, and changes nothing. Undefined when none is told. */
  async stateOf(body: CheckBody): Promise<OpState | undefined> {
    try {
      return (await this.check({ ...body, dryRun: true }, false)).opState;
    } catch (error) {
      if (error instanceof GatewayError || error instanceof ClientClosedError) return undefined;
      throw error;
    }
  }

  /** Answers that are due still come, until `close`. */
  drain(): void { this.#stream?.end(); }

  close(): void {
    this.#isClosed = true;
    this.#slots.turnAway();
    this.#sleeper.end();
  }

  async #untilAnswered(body: CheckBody, isOrphanable: boolean, endMs: number): Promise<CheckAnswer> {
    const { credential, reach } = this.#options;
    for (let number = 0; ; number += 1) {
      if (this.#isClosed) throw new ClientClosedError();
      const token = credential.current ?? (await credential.before(endMs));
      if (token === undefined) return this.#unreachable(body, credential.whyNone);
      const attempt = await this.#attempt({ ...body, credentialToken: token }, isOrphanable, endMs);
      switch (attempt.kind) {
        case 'answer':
          reach.succeeded();
          if (number < 3 && (await this.#isTokenVoid(attempt.reply, token, endMs))) continue;
          return answerOf(body, attempt.reply);
        case 'busy': {
          reach.succeeded();
          // With jitter, so that those who were refused together do not all return together.
          const waitMs = attempt.retryAfterMs * (1 + Math.random()) + backoffMs(number, BUSY_BACKOFF);
          // The gateway was reached and did not allow it, so `onUnreachable` does not apply.
          if (performance.now() + waitMs >= endMs) return unanswered(body, 'deny', attempt.because, false);
          await this.#sleeper.sleep(waitMs);
          break;
        }
        case 'lost': {
          reach.failed();
          const leftMs = endMs - performance.now();
          if (reach.isLost || leftMs <= 0) {
            if (isOrphanable) this.#options.onOrphan(opIdOf(body));
            if (this.#isClosed) throw new ClientClosedError();
            return this.#unreachable(body, attempt.because);
          }
          await this.#sleeper.sleep(Math.min(leftMs, backoffMs(number, LOST_BACKOFF)));
          break;
        }
        case 'late':
          reach.failed();
          return this.#unreachable(body, `no answer within ${this.#options.settings.checkMs} ms`);
        case 'refused':
          reach.succeeded();
          throw attempt.error;
      }
    }
  }

  async #attempt(message: CheckMessage, isOrphanable: boolean, endMs: number): Promise<Attempt> {
    const stream = this.#openStream();
    if (stream !== undefined) {
      const attempt = await this.#ask(stream, message, isOrphanable, endMs);
      if (attempt.kind !== 'lost') return attempt;
    }
    return this.#askAlone(message, isOrphanable, endMs);
  }

  #ask(stream: CheckStream, message: CheckMessage, isOrphanable: boolean, endMs: number): Promise<Attempt> {
    return new Promise((resolve) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        resolve({ kind: 'late' });
      }, endMs - performance.now());
      const settle = (answered: Answered): void => {
        clearTimeout(timer);
        if (!isLate) resolve(attemptOnStream(answered));
        else if (isOrphanable && (answered.kind === 'broken' || DECISIONS[answered.reply.decision] === 'allow')) this.#options.onOrphan(opIdOf(message));
      };
      stream.ask(message, { settle });
    });
  }

  async #askAlone(message: CheckMessage, isOrphanable: boolean, endMs: number): Promise<Attempt> {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0) return { kind: 'late' };
    try {
      return { kind: 'answer', reply: await this.#options.transport.call('CheckAction', message, leftMs) };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      const attempt = attemptOfError(error);
      if (attempt.kind === 'late' && isOrphanable) this.#options.onOrphan(opIdOf(message));
      return attempt;
    }
  }

  /** The stream in use, or a new one; undefined while there is a reason to ask one by one. */
  #openStream(): CheckStream | undefined {
    const { transport, settings } = this.#options;
    const stream = this.#stream;
    // The stream takes requests but answers none: abandoned ones would pile up in it.
    if (stream !== undefined && !stream.isOver) return stream.unanswered < 2 * settings.maxInFlight ? stream : undefined;
    if (performance.now() < this.#streamAfterMs) return undefined;
    this.#stream = new CheckStream(transport.openChecks(), settings.address, (_error, hasAnswered) => {
      this.#streamFailures = hasAnswered ? 0 : this.#streamFailures + 1;
      this.#streamAfterMs = performance.now() + backoffMs(this.#streamFailures, STREAM_RETRY);
    });
    return this.#stream;
  }

  /**
   * Whether it was the token that was refused, and another is in its place. A deny without an operation may have other causes, and
   * a call of the agent's own tells: it fails for the token before it fails for anything else.
   */
  async #isTokenVoid(reply: CheckReply, token: string, endMs: number): Promise<boolean> {
    const { credential, transport, settings: { agent } } = this.#options;
    if (!credential.canRenew || DECISIONS[reply.decision] !== 'deny' || OP_STATES[reply.opState] !== 'unspecified' || reply.policy !== '') return false;
    if (credential.current !== token) return true;
    try {
      await transport.call('AckOpControl', { agent, credentialToken: token, opId: reply.opId, sequence: Number.MAX_SAFE_INTEGER }, Math.max(1, endMs - performance.now()));
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      if (error.code !== 'unauthenticated') return false;
      await credential.renew(token, error);
      return true;
    }
    return false;
  }

  #unreachable(body: CheckBody, because: string): CheckAnswer {
    return unanswered(body, this.#options.settings.onUnreachable, `the gateway cannot be reached: ${because}`, true);
  }
}

const opIdOf = ({ traceId, spanId }: { readonly traceId: string; readonly spanId: string }): string => `${traceId}:${spanId}`;

/** The error of a broken stream says little about one of its checks, so each is asked again on its own. */
function attemptOnStream(answered: Answered): Attempt {
  if (answered.kind === 'answered') return attemptOfReply(answered.reply);
  const { error } = answered;
  return error.fault === 'payload_too_large' ? { kind: 'refused', error } : { kind: 'lost', because: error.message };
}

function attemptOfError(error: GatewayError): Attempt {
  const { code, fault, message, retryAfterMs } = error;
  if (fault !== undefined) return BUSY_FAULTS.has(fault) ? { kind: 'busy', because: message, retryAfterMs } : { kind: 'refused', error };
  switch (code) {
    case 'deadline_exceeded': return { kind: 'late' };
    case 'resource_exhausted': return { kind: 'busy', because: message, retryAfterMs };
    case 'invalid_argument': case 'unimplemented': case 'unauthenticated': case 'permission_denied': return { kind: 'refused', error };
    default: return { kind: 'lost', because: message };
  }
}

function attemptOfReply(reply: StreamCheckReply): Attempt {
  const { error } = reply;
  if (error == null) return { kind: 'answer', reply };
  const { code, message, retryAfterSecs } = error;
  if (BUSY_FAULTS.has(code)) return { kind: 'busy', because: message, retryAfterMs: retryAfterSecs * 1000 };
  return { kind: 'refused', error: new GatewayError(CODE_OF_FAULT[code] ?? 'unknown', message, { fault: code, retryAfterMs: retryAfterSecs * 1000 }) };
}

function answerOf(body: CheckBody, { decision, reason, policy, ruleId, opState, auditId }: CheckReply): CheckAnswer {
  const state = OP_STATES[opState];
  const number = numberOf(auditId);
  return {
    // Anything but an allow is a deny, also a decision of a newer gateway that this client does not know.
    decision: DECISIONS[decision] === 'allow' ? 'allow' : 'deny',
    reason,
    policy: policy === '' ? undefined : policy,
    ruleId: ruleId === '' ? undefined : ruleId,
    opId: opIdOf(body),
    opState: state === 'unspecified' ? undefined : state,
    auditId: number === 0 ? undefined : number,
    unreachable: false,
  };
}

const unanswered = (body: CheckBody, decision: 'allow' | 'deny', reason: string, unreachable: boolean): CheckAnswer =>
  ({ decision, reason, policy: undefined, ruleId: undefined, opId: opIdOf(body), opState: undefined, auditId: undefined, unreachable });
