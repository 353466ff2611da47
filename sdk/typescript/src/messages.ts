/** Converts callers' values to the messages that go out. Throws a TypeError for a value of the wrong type. */
import { type KeysOf, requireKnownKeys } from './known-keys.ts';
import { type CheckMessage, structOf } from './schema.ts';
import { requireAgent, requireText } from './text.ts';
import type { Action, AgentId, CheckRequest, Completion, RunOptions, TokenUsage, Usage } from './types.ts';
import type { CallOptions } from './waiters.ts';

/** The parts of a check that are the same in every attempt. */
export type CheckBody = Omit<CheckMessage, 'credentialToken' | 'correlationId' | 'opHome'>;

export type OpName = { readonly traceId: string; readonly spanId: string };

const ACTION: KeysOf<Action> = {
  action: true,
  resource: true,
  attributes: true,
  estimatedCostUsd: true,
  caller: true,
  traceId: true,
  spanId: true,
  supportedObligations: true,
};
const REQUEST: KeysOf<CheckRequest> = { ...ACTION, dryRun: true };
const TOKENS: KeysOf<TokenUsage> = {
  model: true,
  provider: true,
  inputTokens: true,
  outputTokens: true,
  cacheReadTokens: true,
  cacheWriteTokens: true,
};
const USAGE: KeysOf<Usage> = { ...TOKENS, costUsd: true, opId: true, usageId: true };
const CALL: KeysOf<CallOptions> = { signal: true };
const RUN: KeysOf<RunOptions> = { ...CALL, approvals: true };
const COMPLETION: KeysOf<Completion> = { ...CALL, costUsd: true, usage: true, error: true };

/** Throw a TypeError for a key that is not known. */
export const requireRequest = (given: CheckRequest): void => requireKnownKeys(given, 'the request of a check', REQUEST);
export const requireAction = (given: Action): void => requireKnownKeys(given, 'the action of a run', ACTION);
export const requireUsage = (given: Usage): void => requireKnownKeys(given, 'the usage', USAGE);
export const requireTokens = (given: TokenUsage): void => requireKnownKeys(given, 'the tokens', TOKENS);
export const requireCallOptions = (given: CallOptions): void =>
  requireKnownKeys(given, 'the last argument of a call', CALL);
export const requireRunOptions = (given: RunOptions): void => {
  requireKnownKeys(given, 'the last argument of run', RUN);
  if (given.approvals !== undefined && given.approvals !== 'wait' && given.approvals !== 'throw')
    throw new TypeError("approvals must be 'wait' or 'throw'");
};
export const requireCompletion = (given: Completion): void =>
  requireKnownKeys(given, 'the outcome of complete', COMPLETION);

export type Spent = { readonly costUsd: number } | TokenUsage;
type MaybeSpent = { readonly [K in keyof TokenUsage | 'costUsd']?: Usage[K] };

/** Money as it is, or the tokens of a model. */
export function spentBy(usage: MaybeSpent): Spent {
  const { costUsd, model, provider, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  if ((costUsd === undefined) === (model === undefined))
    throw new TypeError('usage is either costUsd or model with its tokens');
  if (model === undefined) {
    if (typeof costUsd !== 'number') throw new TypeError('costUsd must be a number');
    return { costUsd };
  }
  requireText(model, 'model');
  if (provider !== undefined) requireText(provider, 'provider');
  return {
    model,
    provider,
    inputTokens: countOf(inputTokens, 'inputTokens'),
    outputTokens: countOf(outputTokens, 'outputTokens'),
    cacheReadTokens: cacheReadTokens === undefined ? undefined : countOf(cacheReadTokens, 'cacheReadTokens'),
    cacheWriteTokens: cacheWriteTokens === undefined ? undefined : countOf(cacheWriteTokens, 'cacheWriteTokens'),
  };
}

function countOf(count: unknown, name: string): number {
  if (!Number.isSafeInteger(count) || (count as number) < 0)
    throw new TypeError(`${name} must be a whole number, 0 or more`);
  return count as number;
}

/** Splits an operation id that the gateway knows, which is well-formed therefore. */
export function nameIn(opId: string): OpName {
  const [traceId = '', spanId = ''] = opId.split(':');
  return { traceId, spanId };
}

const NO_TYPES: readonly string[] = [];

/** The gateway validates requests; only values that cannot be encoded are found here. */
export function checkBodyOf(request: CheckRequest, agent: AgentId, { traceId, spanId }: OpName): CheckBody {
  const { action, resource, attributes, estimatedCostUsd, caller, dryRun, supportedObligations = NO_TYPES } = request;
  requireText(action, 'action');
  requireText(traceId, 'traceId');
  requireText(spanId, 'spanId');
  if (resource !== undefined) requireText(resource, 'resource');
  if (caller !== undefined) requireAgent(caller, 'caller');
  if (estimatedCostUsd !== undefined && typeof estimatedCostUsd !== 'number')
    throw new TypeError('estimatedCostUsd must be a number');
  if (!Array.isArray(supportedObligations)) throw new TypeError('supportedObligations must be a list');
  for (const type of supportedObligations) requireText(type, 'supportedObligations');
  return {
    agent,
    traceId,
    spanId,
    action,
    resource,
    attributes: attributes === undefined ? undefined : structOf(attributes),
    estimatedCostUsd,
    caller,
    dryRun: dryRun === true ? dryRun : undefined,
    ...(supportedObligations.length > 0 && { supportedObligations }),
  };
}
