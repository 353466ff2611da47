import { microToUsd } from '../base/money.ts';
import type { CheckSubject } from '../condition/condition.ts';

type Asked = Pick<CheckSubject, 'attributes' | 'caller' | 'estimatedCostMicroUsd'>;

/** Adds what else decides a check, beside its agent, action and resource, so that it can be decided again. */
export function addAsked(
  payload: Record<string, unknown>,
  { attributes, estimatedCostMicroUsd, caller }: Asked,
  redact: (attributes: Readonly<Record<string, unknown>>) => unknown,
): void {
  if (attributes !== undefined) payload.attributes = redact(attributes);
  if (estimatedCostMicroUsd > 0) payload.estimated_cost_usd = microToUsd(estimatedCostMicroUsd);
  if (caller !== undefined)
    payload.caller = {
      org_id: caller.orgId === '' ? null : caller.orgId,
      team_id: caller.teamId,
      agent_id: caller.agentId,
    };
}
