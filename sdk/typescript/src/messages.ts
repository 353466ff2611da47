/** What callers hand over, as the messages that go out. Throws a TypeError where a value is of the wrong type. */
import { type CheckMessage, structOf } from './schema.ts';
import { requireAgent, requireText } from './text.ts';
import type { AgentId, CheckRequest } from './types.ts';

/** The parts of a check that are the same in every attempt. */
export type CheckBody = Omit<CheckMessage, 'credentialToken' | 'correlationId'>;

export type OpName = { readonly traceId: string; readonly spanId: string };

/** Of an operation id that the gateway knows, which is well-formed therefore. */
export function nameIn(opId: string): OpName {
  const [traceId = '', spanId = ''] = opId.split(':');
  return { traceId, spanId };
}

/** The gateway validates requests; only values that cannot be encoded are found here. */
export function checkBodyOf(request: CheckRequest, agent: AgentId, { traceId, spanId }: OpName): CheckBody {
  const { action, resource, attributes, estimatedCostUsd, caller, dryRun } = request;
  requireText(action, 'action');
  requireText(traceId, 'traceId');
  requireText(spanId, 'spanId');
  if (resource !== undefined) requireText(resource, 'resource');
  if (caller !== undefined) requireAgent(caller, 'caller');
  if (estimatedCostUsd !== undefined && typeof estimatedCostUsd !== 'number')
    throw new TypeError('estimatedCostUsd must be a number');
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
  };
}
