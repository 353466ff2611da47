/**
 * Makes one check for a door that speaks another protocol: who asks, what they want to do, and the gateway's decision.
 * The door translates the question and the verdict, and decides nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { agentKeyOf, type OpId, parseAgentKey } from '../../core/base/ids.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import type { DecisionCause } from '../../core/check/cause.ts';
import type { Obligation } from '../../core/check/obligations.ts';
import type { CheckAnswer } from '../../core/commands.ts';
import { explain, type Fault } from '../../core/fault.ts';
import type { JsonObject } from '../proto/messages.ts';
import { isLongerThan, MAX_RESOURCE_BYTES } from '../shared/limits.ts';
import type { WirePorts } from './ports.ts';
import { newSpanId, newTraceId } from './random-ids.ts';
import { doorCheckOf } from './requests.ts';
import { type Asker, type KnownBearer, speakerFor } from './speaker.ts';

export type Question = {
  readonly action: string;
  readonly resource: string;
  readonly attributes: JsonObject;
  /** The operation that an allow begins. Undefined: nobody would end it, so none begins, and nothing is reserved. */
  readonly op: { readonly traceId: string; readonly spanId: string } | undefined;
  readonly supportedObligations: readonly string[];
};

export type Verdict = {
  readonly decision: 'allow' | 'deny' | 'pending';
  readonly reason: string;
  readonly cause: DecisionCause | undefined;
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  readonly auditId: number | undefined;
  readonly opId: string | undefined;
  readonly approvalId: string | undefined;
  readonly obligations: readonly Obligation[];
  /** An alternative to the denied action. */
  readonly remedy: string | undefined;
};

/**
 * `claimed`: `<org>/<team>/<agent>`, or undefined for the owner of the token. `traceparent`: the caller's header of W3C
 * Trace Context. Faults: `invalid_argument` names the field of a check that does not fit, and is on record; the others
 * say that nothing could be decided.
 */
export async function judge(
  ports: WirePorts,
  bearer: KnownBearer,
  claimed: string | undefined,
  question: Question,
  traceparent?: string | undefined,
): Promise<Result<Verdict, Fault>> {
  const { action, resource, attributes, op, supportedObligations } = question;
  const speaker = speakerFor(bearer, claimed);
  if (!speaker.ok)
    return denied(ports, bearer, { claimed, action, resource, reason: explain(speaker.fault) }, 'credential');
  // Never cut: a forbidden part could follow the cut.
  if (isLongerThan(resource, MAX_RESOURCE_BYTES))
    return denied(ports, bearer, { claimed, action, resource, reason: TOO_LONG }, 'no_rule');
  const command = doorCheckOf(speaker.value, {
    traceId: op?.traceId ?? newTraceId(),
    spanId: op?.spanId ?? newSpanId(),
    action,
    resource,
    attributes,
    dryRun: op === undefined,
    supportedObligations,
  });
  if (!command.ok) return refuseOnRecord(ports, { bearer, claimed }, { action, resource }, command.fault);
  const { reply, auditId } = await ports.link.ask(
    command.value,
    traceparent === undefined ? undefined : { traceparent },
  );
  return reply.ok ? ok(verdictOf(reply.value, op && command.value.opId, auditId)) : reply;
}

/** How long to wait before the end of an operation is reported once more to a gateway that is overloaded. */
const END_AGAIN_AFTER_MS = [50, 100, 200, 400, 800, 1_600];

/** How an operation is spoken of that has not begun, or is still to be decided. */
const TOO_EARLY: ReadonlySet<Fault['kind']> = new Set(['not_found', 'invalid_transition']);

/**
 * The check of an action whose end the door does not see, such as a request that it lets pass. The operation is a real
 * one, so that halts, budgets and approvals hold; it is completed at once. `traceId`: of the caller, if it has one.
 * `traceparent`: as of `judge`.
 */
export async function judgePassage(
  ports: WirePorts,
  bearer: KnownBearer,
  claimed: string | undefined,
  question: Omit<Question, 'op'> & { readonly traceId: string | undefined },
  traceparent?: string | undefined,
): Promise<Result<Verdict, Fault>> {
  const { action, resource, attributes, supportedObligations } = question;
  const op = {
    traceId: question.traceId ?? newTraceId(),
    spanId: newSpanId(),
  };
  const asked = judge(ports, bearer, claimed, { action, resource, attributes, op, supportedObligations }, traceparent);
  const speaker = speakerFor(bearer, claimed);
  if (!speaker.ok) return asked;
  const { agent, credential, principal } = speaker.value;
  const opId = `${op.traceId}:${op.spanId}` as OpId;
  const completion = {
    type: 'complete-op',
    agent,
    credential,
    principal,
    opId,
    outcome: 'success',
    error: undefined,
  } as const;
  const end = async () => (await ports.link.ask(completion)).reply;
  // Both are decided and recorded together: where the check allows nothing, there is nothing to end. A token that is
  // presented for another agent is put on record each time.
  const isOwn = bearer.owner === undefined || agentKeyOf(bearer.owner) === agentKeyOf(agent);
  const [verdict, first] = await Promise.all([asked, isOwn ? end() : undefined]);
  if (!verdict.ok || verdict.value.decision !== 'allow') return verdict;
  // In a cluster, the check may have been decided later.
  let completed = first === undefined || (!first.ok && TOO_EARLY.has(first.fault.kind)) ? await end() : first;
  // Nobody else would ever end it: it would take its place, and what it has reserved, until an operator does.
  for (const pauseMs of END_AGAIN_AFTER_MS) {
    if (completed.ok || completed.fault.kind !== 'overloaded') break;
    await sleep(pauseMs);
    completed = await end();
  }
  // An operator may have paused or ended it in between.
  return completed.ok ? verdict : ok({ ...verdict.value, decision: 'deny', reason: explain(completed.fault) });
}

const TOO_LONG = `the resource is longer than ${MAX_RESOURCE_BYTES} bytes`;

function verdictOf(answer: CheckAnswer, opId: OpId | undefined, auditId: number | undefined): Verdict {
  const { decision, reason, cause, policy, ruleId, approvalId, obligations = [], remedy } = answer;
  return {
    decision,
    reason,
    cause: cause ?? (decision === 'pending' ? 'approval' : undefined),
    policy,
    ruleId,
    auditId,
    opId,
    approvalId,
    obligations,
    remedy,
  };
}

/** A request that a known caller sent, and that is refused before it becomes a check. */
type Refused = {
  readonly claimed: string | undefined;
  readonly action: string;
  readonly resource: string;
  readonly reason: string;
};

async function denied(
  ports: WirePorts,
  bearer: KnownBearer,
  refused: Refused,
  cause: Verdict['cause'],
): Promise<Result<Verdict, Fault>> {
  const recorded = await recordRefusal(ports, bearer, refused);
  if (!recorded.ok) return recorded;
  return ok({
    decision: 'deny',
    reason: recorded.value.reason,
    cause,
    policy: undefined,
    ruleId: undefined,
    auditId: recorded.value.auditId,
    opId: undefined,
    approvalId: undefined,
    obligations: [],
    remedy: undefined,
  });
}

/** Puts on record what a known caller sent, and why it is refused. */
export async function recordRefusal(
  { link }: WirePorts,
  { owner, credential, principal }: KnownBearer,
  { claimed, ...refused }: Refused,
): Promise<Result<{ readonly reason: string; readonly auditId: number | undefined }, Fault>> {
  const { reply, auditId } = await link.ask({
    type: 'refuse-action',
    agent: (claimed === undefined ? undefined : parseAgentKey(claimed)) ?? owner,
    credential,
    principal,
    ...refused,
  });
  return reply.ok ? ok({ reason: reply.value.reason, auditId }) : reply;
}

/** Puts a request on record that becomes no check. Its fault, or the one that kept it from the record. */
export async function refuseOnRecord(
  ports: WirePorts,
  { bearer, claimed }: Asker,
  what: Pick<Refused, 'action' | 'resource'>,
  fault: Fault,
): Promise<{ readonly ok: false; readonly fault: Fault }> {
  const recorded = await recordRefusal(ports, bearer, { claimed, ...what, reason: explain(fault) });
  return recorded.ok ? fail(fault) : recorded;
}

/** As the doors that answer JSON show a verdict: null where there is nothing. */
export const verdictJson = (verdict: Verdict): JsonObject => addVerdict({}, verdict);

/** The same behind what the door says first. One by one: see `doorCheckOf`. */
export function addVerdict(json: Record<string, unknown>, verdict: Verdict): JsonObject {
  json['reason'] = verdict.reason;
  json['cause'] = verdict.cause ?? null;
  json['policy'] = verdict.policy ?? null;
  json['rule_id'] = verdict.ruleId ?? null;
  json['audit_id'] = verdict.auditId ?? null;
  json['op_id'] = verdict.opId ?? null;
  if (verdict.approvalId !== undefined) json['approval_id'] = verdict.approvalId;
  if (verdict.remedy !== undefined) json['remedy'] = verdict.remedy;
  if (verdict.obligations.length > 0)
    json['obligations'] = verdict.obligations.map(({ id, type, properties }) => ({ id, type, properties }));
  return json;
}
