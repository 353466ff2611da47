import { queryOf } from '../../base/request.ts';

/** The page of the policies, with this document open and this rule in view. */
export const policyPath = (policy: string, rule: string | null | undefined): string =>
  `/policies${queryOf({ policy, rule_id: rule })}`;
