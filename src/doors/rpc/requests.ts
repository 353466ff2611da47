/**
 * Turns a decoded request, of either codec, into a command of the core. Everything that a caller can get wrong is found
 * here, before the main thread is asked (docs/spec.md, Checks 5). Every fault is `invalid_argument` and names the
 * field.
 */

import { randomBytes } from 'node:crypto';
import {
  type AgentIdentity,
  isName,
  isOpHalf,
  isOrgName,
  type OpId,
  parseOpId,
  type SecretDigest,
  usageIdOfCompletion,
} from '../../core/base/ids.ts';
import { usdToMicro } from '../../core/base/money.ts';
import { ok, type Result } from '../../core/base/result.ts';
import type { CheckAnswer, CheckCommand, CommandOf } from '../../core/commands.ts';
import { explain, type Fault, invalid } from '../../core/fault.ts';
import type { Principal } from '../../core/identity/roles.ts';
import { digestOf } from '../../credentials/secret-token.ts';
import {
  type AckOpControlRequest,
  type AgentId,
  type CheckActionRequest,
  type CheckActionResponse,
  type CompleteOpRequest,
  NO_ANSWER,
  type OpControlStreamRequest,
  type RecordUsageRequest,
  type RegisterAgentRequest,
  type StreamCheckActionsResponse,
  type WaitApprovalRequest,
} from '../proto/messages.ts';
import {
  COST_RULE,
  isLongerThan,
  isUsageId,
  MAX_ERROR_BYTES,
  MAX_LABEL_BYTES,
  NAME_RULE,
  OP_HALF_RULE,
  OP_ID_RULE,
  ORG_RULE,
  problemOfAction,
  problemOfResource,
  USAGE_ID_RULE,
} from '../shared/limits.ts';
import { retryAfterSecs } from '../shared/rpc-code.ts';
import { readSpent } from '../shared/usage.ts';
import { digestOfPresented } from './credential-digests.ts';
import type { Vouched } from './speaker.ts';

/**
 * Tells whether an agent may bring this token as its own: 32 to 1024 visible ASCII characters (docs/spec.md, Identity).
 */
export const isAgentCredential = (token: string): boolean => /^[\x21-\x7e]{32,1024}$/.test(token);

export const CREDENTIAL_RULE = 'must be 32 to 1024 visible ASCII characters; omit it to have one generated';

const TOKEN_BYTES = 32;

/** The token that is given, or a fresh one of 256 bits, with the digest that the gateway keeps of it. */
export function agentCredential(given: string | undefined): {
  readonly token: string;
  readonly digest: SecretDigest;
  readonly isMinted: boolean;
} {
  const token = given ?? `svcagent_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
  return { token, digest: digestOf(token), isMinted: given === undefined };
}

const MAX_TOKEN_BYTES = 1024;
const MAX_OBLIGATION_TYPES = 32;
/** Limits the name of an obligation's type, and `op_home`. */
const MAX_HINT_BYTES = 64;

const problemIn = (field: string, problem: string | undefined): Result<never, Fault> | undefined =>
  problem === undefined ? undefined : invalid(field, problem);

/** The action an agent wants to take, and the operation it belongs to. */
export type Act = {
  readonly traceId: string;
  readonly spanId: string;
  readonly action: string;
  readonly resource: string;
};

const problemOfAct = ({ traceId, spanId, action, resource }: Act): Result<never, Fault> | undefined =>
  (isOpHalf(traceId) ? undefined : invalid('trace_id', OP_HALF_RULE)) ??
  (isOpHalf(spanId) ? undefined : invalid('span_id', OP_HALF_RULE)) ??
  problemIn('action', problemOfAction(action)) ??
  problemIn('resource', problemOfResource(resource, action));

/** An act as a door of another protocol has read it. */
export type DoorAct = Act &
  Pick<CheckCommand, 'attributes' | 'dryRun'> & { readonly supportedObligations: readonly string[] };

/** The check of a door that has no message for it. */
export function doorCheckOf(speaker: Vouched, act: DoorAct): Result<CheckCommand, Fault> {
  const { traceId, spanId, action, resource, attributes, dryRun, supportedObligations } = act;
  const problem = problemOfAct(act) ?? problemOfObligations(supportedObligations);
  if (problem !== undefined) return problem;
  // Field by field: of a spread, Node.js 20 would make an object with a hidden class of its own (docs/style.md, 3).
  return ok({
    type: 'check',
    agent: speaker.agent,
    credential: speaker.credential,
    principal: speaker.principal,
    opId: `${traceId}:${spanId}` as OpId,
    action,
    resource,
    attributes,
    estimatedCostMicroUsd: 0,
    caller: undefined,
    dryRun,
    supportedObligations: supportedObligations.length === 0 ? undefined : supportedObligations,
    home: undefined,
  });
}

/** `principal` is the bearer's, already known to hold the write scope. */
export function checkCommandOf(
  request: CheckActionRequest,
  principal: Principal | undefined,
): Result<CheckCommand, Fault> {
  const { traceId, spanId, action, resource, attributes, dryRun, correlationId } = request;
  const problem =
    problemOfIdentity(request.agent, 'agent') ??
    problemOfPresentedToken(request.credentialToken) ??
    problemOfAct(request) ??
    (isLongerThan(correlationId, MAX_LABEL_BYTES)
      ? invalid('correlation_id', `must be at most ${MAX_LABEL_BYTES} bytes`)
      : undefined) ??
    (request.caller === undefined ? undefined : problemOfIdentity(request.caller, 'caller')) ??
    problemOfObligations(request.supportedObligations) ??
    problemOfHome(request.opHome);
  if (problem !== undefined) return problem;
  const estimatedCostMicroUsd = usdToMicro(request.estimatedCostUsd);
  if (estimatedCostMicroUsd === undefined) return invalid('estimated_cost_usd', COST_RULE);
  return ok({
    type: 'check',
    agent: request.agent as AgentIdentity,
    credential: request.credentialToken === '' ? undefined : digestOfPresented(request.credentialToken),
    principal,
    opId: `${traceId}:${spanId}` as OpId,
    action,
    resource,
    attributes,
    estimatedCostMicroUsd,
    caller: request.caller,
    dryRun,
    supportedObligations: request.supportedObligations.length === 0 ? undefined : request.supportedObligations,
    home: request.opHome === '' ? undefined : request.opHome,
  });
}

/** An `auditId` of undefined, where nothing was recorded, is 0 on the wire. */
export function checkResponseOf(
  command: CheckCommand,
  correlationId: string,
  answer: CheckAnswer,
  auditId: number | undefined,
  home: string | undefined,
): CheckActionResponse {
  return {
    decision: answer.decision,
    reason: answer.reason,
    policy: answer.policy ?? '',
    ruleId: answer.ruleId ?? '',
    opId: command.opId,
    opState: answer.opState ?? 'unspecified',
    auditId: auditId ?? 0,
    correlationId,
    cause: answer.cause ?? 'unspecified',
    tier: answer.exceeded?.tier ?? 'unspecified',
    period: answer.exceeded?.period ?? 'unspecified',
    resetsAt: answer.exceeded?.resetsAtMs,
    approvalId: answer.approvalId ?? '',
    obligations: answer.obligations ?? NO_ANSWER.obligations,
    opHome: home === undefined || answer.opState === undefined ? '' : home,
    remedy: answer.remedy ?? '',
  };
}

/** Stands for the answer to a check that got none, among the answers of a batch or a stream. */
export const undecided = (correlationId: string, fault: Fault): StreamCheckActionsResponse => ({
  ...NO_ANSWER,
  correlationId,
  error: { code: fault.kind, message: explain(fault), retryAfterSecs: retryAfterSecs(fault) },
});

export type Registration = {
  readonly command: CommandOf<'register-agent'>;
  /** Shown once, in the answer; undefined if the agent has a token of its own. */
  readonly minted: string | undefined;
};

export function registrationOf(request: RegisterAgentRequest, principal: Principal): Result<Registration, Fault> {
  const { agent, parent, credentialToken } = request;
  const problem =
    problemOfIdentity(agent, 'agent') ?? (parent === undefined ? undefined : problemOfParent(parent, agent));
  if (problem !== undefined) return problem;
  if (credentialToken !== '' && !isAgentCredential(credentialToken))
    return invalid('credential_token', CREDENTIAL_RULE);
  const { token, digest, isMinted } = agentCredential(credentialToken === '' ? undefined : credentialToken);
  const command = {
    type: 'register-agent',
    principal,
    agent: agent as AgentIdentity,
    credential: digest,
    parent,
  } as const;
  return ok({ command, minted: isMinted ? token : undefined });
}

export function identityOf(agent: AgentId | undefined): Result<AgentIdentity, Fault> {
  return problemOfIdentity(agent, 'agent') ?? ok(agent as AgentIdentity);
}

export function completionOf(
  request: CompleteOpRequest,
  principal: Principal | undefined,
): Result<
  { readonly command: CommandOf<'complete-op'>; readonly usage: CommandOf<'record-usage'> | undefined },
  Fault
> {
  const voucher = voucherOf(request, principal);
  if (!voucher.ok) return voucher;
  const opId = parseOpId(request.opId);
  if (opId === undefined) return invalid('op_id', OP_ID_RULE);
  const homeless = problemOfHome(request.opHome);
  if (homeless !== undefined) return homeless;
  const { outcome, error } = request;
  if (error !== '' && outcome !== 'failure') return invalid('error', 'is only for OUTCOME_FAILURE');
  if (isLongerThan(error, MAX_ERROR_BYTES)) return invalid('error', `must be at most ${MAX_ERROR_BYTES} bytes`);
  const command = {
    type: 'complete-op',
    opId,
    outcome: outcome === 'unspecified' ? undefined : outcome,
    error: error === '' ? undefined : error,
    ...voucher.value,
    ...homeIn(request),
  } as const;
  const spent = readSpent(request);
  if (!spent.ok) return spent;
  if (spent.value === undefined) return ok({ command, usage: undefined });
  return ok({
    command,
    usage: {
      type: 'record-usage',
      ...voucher.value,
      ...spent.value,
      opId,
      usageId: usageIdOfCompletion(opId),
      ...homeIn(request),
    },
  });
}

export function usageOf(
  request: RecordUsageRequest,
  principal: Principal | undefined,
): Result<CommandOf<'record-usage'>, Fault> {
  const voucher = voucherOf(request, principal);
  if (!voucher.ok) return voucher;
  const spent = readSpent(request);
  if (!spent.ok) return spent;
  if (spent.value === undefined) return invalid('cost_usd', 'is required, or model with its tokens');
  const opId = request.opId === undefined ? undefined : parseOpId(request.opId);
  if (opId === undefined && request.opId !== undefined) return invalid('op_id', OP_ID_RULE);
  const homeless = problemOfHome(request.opHome);
  if (homeless !== undefined) return homeless;
  const { usageId } = request;
  if (usageId !== undefined && !isUsageId(usageId)) return invalid('usage_id', USAGE_ID_RULE);
  return ok({ type: 'record-usage', ...voucher.value, ...spent.value, opId, usageId, ...homeIn(request) });
}

/** The command without the number of the stream, which is given only after the request was found valid. */
export const controlOf = (
  request: OpControlStreamRequest,
  principal: Principal | undefined,
): Result<Omit<CommandOf<'open-control'>, 'stream'>, Fault> => {
  const voucher = voucherOf(request, principal);
  return voucher.ok ? ok({ type: 'open-control', ...voucher.value }) : voucher;
};

export function acknowledgementOf(
  request: AckOpControlRequest,
  principal: Principal | undefined,
): Result<CommandOf<'ack-signal'>, Fault> {
  const voucher = voucherOf(request, principal);
  if (!voucher.ok) return voucher;
  const opId = parseOpId(request.opId);
  if (opId === undefined) return invalid('op_id', OP_ID_RULE);
  if (request.sequence === 0) return invalid('sequence', 'is required');
  const homeless = problemOfHome(request.opHome);
  if (homeless !== undefined) return homeless;
  return ok({ type: 'ack-signal', opId, sequence: request.sequence, ...voucher.value, ...homeIn(request) });
}

/** The agent that asks for an approval of its own, its credential, and the approval. */
export function ownApprovalOf(
  request: WaitApprovalRequest,
  principal: Principal | undefined,
): Result<Vouched & { readonly id: string }, Fault> {
  const voucher = voucherOf(request, principal);
  if (!voucher.ok) return voucher;
  const { approvalId: id } = request;
  if (id === '') return invalid('approval_id', 'is required');
  if (isLongerThan(id, MAX_APPROVAL_ID_BYTES))
    return invalid('approval_id', `must be at most ${MAX_APPROVAL_ID_BYTES} bytes`);
  return ok({ id, ...voucher.value });
}

const MAX_APPROVAL_ID_BYTES = 64;

type OfAgent = { readonly agent: AgentId | undefined; readonly credentialToken: string };

/** In the agent's own calls: the caller and its credential. */
function voucherOf({ agent, credentialToken }: OfAgent, principal: Principal | undefined): Result<Vouched, Fault> {
  const problem = problemOfIdentity(agent, 'agent') ?? problemOfPresentedToken(credentialToken);
  if (problem !== undefined) return problem;
  return ok({
    agent: agent as AgentIdentity,
    credential: credentialToken === '' ? undefined : digestOfPresented(credentialToken),
    principal,
  });
}

function problemOfIdentity(agent: AgentId | undefined, field: string): Result<never, Fault> | undefined {
  if (agent === undefined) return invalid(field, 'is required');
  if (agent.orgId !== '' && !isOrgName(agent.orgId)) return invalid(`${field}.org_id`, ORG_RULE);
  if (!isName(agent.teamId)) return invalid(`${field}.team_id`, NAME_RULE);
  if (!isName(agent.agentId)) return invalid(`${field}.agent_id`, NAME_RULE);
  return undefined;
}

function problemOfParent(parent: AgentId, agent: AgentId | undefined): Result<never, Fault> | undefined {
  const problem = problemOfIdentity(parent, 'parent');
  if (problem !== undefined) return problem;
  return parent.orgId === agent?.orgId ? undefined : invalid('parent.org_id', 'must be the org of the agent');
}

function problemOfObligations(types: readonly string[]): Result<never, Fault> | undefined {
  if (types.length === 0) return undefined;
  if (types.length > MAX_OBLIGATION_TYPES)
    return invalid('supported_obligations', `must have at most ${MAX_OBLIGATION_TYPES} items`);
  const at = types.findIndex((type) => type === '' || isLongerThan(type, MAX_HINT_BYTES));
  return at === -1 ? undefined : invalid(`supported_obligations[${at}]`, `must be 1 to ${MAX_HINT_BYTES} bytes`);
}

const homeIn = ({ opHome }: { readonly opHome: string }) => (opHome === '' ? undefined : { home: opHome });

const problemOfHome = (opHome: string): Result<never, Fault> | undefined =>
  isLongerThan(opHome, MAX_HINT_BYTES) ? invalid('op_home', `must be at most ${MAX_HINT_BYTES} bytes`) : undefined;

const problemOfPresentedToken = (token: string): Result<never, Fault> | undefined =>
  isLongerThan(token, MAX_TOKEN_BYTES)
    ? invalid('credential_token', `must be at most ${MAX_TOKEN_BYTES} bytes`)
    : undefined;
