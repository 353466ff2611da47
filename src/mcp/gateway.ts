/**
 * The gateway as the MCP doors ask it: by its Connect methods, over the HTTP address that people know. Whatever cannot
 * be asked is a deny with a reason: the doors fail closed.
 */

import type { Credential, GatewayCalls, Reply } from '../client/calls.ts';
import { isMapping } from '../core/base/mapping.ts';
import { type Obligation, obligationsIn, SUPPORTED_OBLIGATIONS } from '../core/check/obligations.ts';
import { reasonWithRemedy } from '../core/check/remedy.ts';
import type { Fields } from './json-rpc.ts';
import type { Refused } from './refusals.ts';
import type { Subject } from './subjects.ts';

export type OpName = { readonly traceId: string; readonly spanId: string };

export type Verdict = {
  readonly decision: 'allow' | 'deny' | 'pending';
  readonly reason: string;
  /** Why it was denied, in one word; undefined when the gateway says none. */
  readonly cause: string | undefined;
  readonly approvalId: string | undefined;
  /** `running`, `paused` …; undefined when the gateway knows no such operation. */
  readonly opState: string | undefined;
  readonly obligations: readonly Obligation[];
};

/** How an operation ended, as the gateway records it. */
export type Outcome = { readonly ok: true } | { readonly ok: false; readonly error: string };

/** `over`: it had ended before. `lost`: the gateway could not be asked, or does not know. */
export type Completion =
  | { readonly kind: 'done' }
  | { readonly kind: 'paused' }
  | { readonly kind: 'over'; readonly state: string }
  | { readonly kind: 'lost'; readonly reason: string };

export type ApprovalState = 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled' | 'used' | 'unknown';

const CHECK = 'PolicyService/CheckAction';
const BATCH = 'PolicyService/BatchCheckActions';
/** How much longer than its deadline a call may take to say that it is over. */
const GRACE_MS = 2_000;
/** A batch may hold 1,000, and each has a name of up to 2 KiB. */
const BATCH_SIZE = 250;

const deny = (reason: string, cause?: string): Verdict => ({
  decision: 'deny',
  reason,
  cause,
  approvalId: undefined,
  opState: undefined,
  obligations: [],
});

export class Gateway {
  readonly #calls: GatewayCalls;
  readonly #credential: Credential;

  constructor(calls: GatewayCalls, credential: Credential) {
    this.#calls = calls;
    this.#credential = credential;
  }

  get credential(): Credential {
    return this.#credential;
  }

  /** Never rejects: what cannot be decided is denied. */
  async check(subject: Subject, op: OpName): Promise<Verdict> {
    const reply = await this.#ask(CHECK, this.#requestOf(subject, op, false));
    return reply.kind === 'answer' ? verdictIn(reply.body) : deny(reply.reason, causeOf(reply));
  }

  /** Predicts the answers of checks; nothing begins. Undefined, with a reason, if the gateway cannot be asked. */
  async rehearse(
    subjects: readonly Subject[],
    trace: string,
  ): Promise<{ readonly verdicts: readonly Verdict[] } | { readonly failure: string }> {
    const verdicts: Verdict[] = [];
    for (let from = 0; from < subjects.length; from += BATCH_SIZE) {
      const requests = subjects
        .slice(from, from + BATCH_SIZE)
        .map((subject, n) => this.#requestOf(subject, { traceId: trace, spanId: `list-${from + n}` }, true));
      const reply = await this.#ask(BATCH, { requests });
      if (reply.kind !== 'answer') return { failure: reply.reason };
      const { responses } = reply.body;
      if (!Array.isArray(responses) || responses.length !== requests.length)
        return { failure: 'the gateway answered something else than was asked' };
      verdicts.push(...responses.map(verdictIn));
    }
    return { verdicts };
  }

  /** The state of an operation; undefined when it is not known. */
  async stateOf(subject: Subject, op: OpName): Promise<string | undefined> {
    const reply = await this.#ask(CHECK, this.#requestOf(subject, op, true));
    return reply.kind === 'answer' ? verdictIn(reply.body).opState : undefined;
  }

  async complete({ traceId, spanId }: OpName, outcome: Outcome): Promise<Completion> {
    const opId = `${traceId}:${spanId}`;
    const reply = await this.#ask('AgentService/CompleteOp', {
      ...this.#identity,
      opId,
      outcome: outcome.ok ? 'OUTCOME_SUCCESS' : 'OUTCOME_FAILURE',
      ...(outcome.ok ? {} : { error: outcome.error.slice(0, 200) }),
    });
    if (reply.kind === 'answer') return { kind: 'done' };
    const state = reply.kind === 'refused' ? / it is (\w+)$/.exec(reply.reason)?.[1] : undefined;
    if (state === 'paused') return { kind: 'paused' };
    return state === undefined ? { kind: 'lost', reason: reply.reason } : { kind: 'over', state };
  }

  /** Waits for a decision, at most `waitMs`; the state by then. `unknown` where the gateway has no such method. */
  async waitApproval(approvalId: string, waitMs: number): Promise<ApprovalState> {
    const reply = await this.#calls.post(
      'ApprovalService/WaitApproval',
      { ...this.#identity, approvalId },
      { ...this.#bearer, deadlineMs: waitMs, timeoutMs: waitMs + GRACE_MS },
    );
    // The end of its deadline is no decision.
    if (reply.kind === 'refused' && reply.code === 'deadline_exceeded') return 'pending';
    if (reply.kind !== 'answer') return 'unknown';
    const word = String(reply.body.state ?? '').replace(/^APPROVAL_STATE_/, '');
    return APPROVAL_STATES.find((state) => state === word.toLowerCase()) ?? 'unknown';
  }

  async cancelApproval(approvalId: string): Promise<void> {
    await this.#ask('ApprovalService/CancelApproval', { ...this.#identity, approvalId });
  }

  /**
   * Whether the gateway takes the credential for the agent it names. It asks for an operation that does not exist: the
   * credential is looked at first, and nothing is recorded.
   */
  async isKnown(): Promise<{ readonly known: boolean; readonly reason: string; readonly isReachable: boolean }> {
    const nothing = { opId: 'mcp:none', sequence: String(Number.MAX_SAFE_INTEGER) };
    const reply = await this.#ask('AgentService/AckOpControl', { ...this.#identity, ...nothing });
    if (reply.kind === 'unreachable') return { known: false, reason: reply.reason, isReachable: false };
    const refused = reply.kind === 'refused' && ['unauthenticated', 'permission_denied'].includes(reply.code);
    return { known: !refused, reason: reply.kind === 'refused' ? reply.reason : '', isReachable: true };
  }

  /** Asks for something that is refused, so that whose credential was used for which agent is on record. */
  async recordRefusal(): Promise<void> {
    const subject: Subject = { action: 'mcp.call', resource: '', attributes: {} };
    await this.#ask(CHECK, this.#requestOf(subject, { traceId: 'mcp', spanId: 'refused' }, true));
  }

  /** Puts on record what was refused without asking the gateway. Resolves with why it is not, if it is not. */
  async record({ action, resource }: Refused, reason: string): Promise<string | undefined> {
    const { agent, secret, kind } = this.#credential;
    const options = { bearer: secret, ...(kind === 'bearer' ? { agent } : {}) };
    const reply = await this.#calls.send('api/v1/agents/self/refusals', { action, resource, reason }, options);
    return reply.kind === 'answer' ? undefined : reply.reason;
  }

  get #identity(): Fields {
    const { agent, secret, kind } = this.#credential;
    return { agent, ...(kind === 'token' ? { credentialToken: secret } : {}) };
  }

  get #bearer(): { readonly bearer?: string } {
    const { secret, kind } = this.#credential;
    return kind === 'bearer' ? { bearer: secret } : {};
  }

  #requestOf({ action, resource, attributes }: Subject, op: OpName, dryRun: boolean): Fields {
    return {
      ...this.#identity,
      ...op,
      action,
      resource,
      attributes,
      ...(dryRun ? { dryRun } : {}),
      supportedObligations: SUPPORTED_OBLIGATIONS,
    };
  }

  #ask(method: string, body: Fields): Promise<Reply> {
    return this.#calls.post(method, body, this.#bearer);
  }
}

const APPROVAL_STATES = ['pending', 'approved', 'denied', 'expired', 'cancelled', 'used'] as const;

/** The cause of a deny that is on no record: the gateway could not read what was asked, as what is too long for it. */
export const UNREADABLE = 'unreadable';

function causeOf(reply: Reply): string | undefined {
  if (reply.kind !== 'refused') return undefined;
  if (reply.code === 'unauthenticated') return 'credential';
  return reply.code === 'invalid_argument' ? UNREADABLE : undefined;
}

const DECISION: Readonly<Record<string, Verdict['decision']>> = {
  DECISION_ALLOW: 'allow',
  DECISION_PENDING: 'pending',
};

/** Anything but an allow, or an approval that is waited for, is a deny. */
function verdictIn(value: unknown): Verdict {
  if (!isMapping(value)) return deny('the gateway answered something else than a decision');
  if (isMapping(value.error)) return deny(`the gateway could not decide: ${String(value.error.message)}`);
  const cause = textIn(value.cause)?.replace(/^DECISION_CAUSE_/, '');
  return {
    decision: DECISION[String(value.decision)] ?? 'deny',
    reason: reasonWithRemedy(textIn(value.reason) ?? 'the gateway gave no reason', textIn(value.remedy)),
    cause: cause?.toLowerCase(),
    approvalId: textIn(value.approvalId),
    opState: textIn(value.opState)
      ?.replace(/^OP_STATE_/, '')
      .toLowerCase(),
    obligations: obligationsIn(value.obligations),
  };
}

const textIn = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/**
 * Whether a call may be allowed with some arguments, by what a check without any was answered. A condition that fails
 * for want of arguments is no denial; gateways that give no cause say so in the reason.
 */
export const mayBeAllowed = ({ decision, cause, reason }: Verdict): boolean =>
  decision !== 'deny' || cause === 'condition_error' || (cause === undefined && /^the condition of rule /.test(reason));

/** Whether no rule speaks of the resource at all. */
export const isUnruled = ({ decision, cause, reason }: Verdict): boolean =>
  decision === 'deny' && (cause === 'no_rule' || (cause === undefined && reason.startsWith('no policy allows ')));
