/** What may be asked of a new API key, and by whom. */
import type { Fault } from '../core/fault.ts';
import { isOrgName } from '../core/ids.ts';
import { fail, type Result } from '../core/result.ts';
import { refuseWithout, seesOrg, type Principal, type Scope } from '../core/scope.ts';

export type CreateApiKey = {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The org to bind the key to. Absent or null: the one that the creator is bound to, if any. */
  readonly orgId?: string | null | undefined;
  readonly expiresAtMs?: number | null | undefined;
};

const MAX_NAME_LENGTH = 100;
const NAME = new RegExp(`^\\P{C}{1,${MAX_NAME_LENGTH}}$`, 'u');

/** Faults: `insufficient_scope`, `org_forbidden`, `invalid_argument`. `orgId` is the org that the key would be bound to. */
export function refusalOf(principal: Principal, input: CreateApiKey, orgId: string | null, nowMs: number): Result<never, Fault> | undefined {
  const invalid = (field: string, problem: string) => fail({ kind: 'invalid_argument', field, problem } as const);
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  if (!NAME.test(input.name)) return invalid('name', `must be 1 to ${MAX_NAME_LENGTH} characters, none of them a control character`);
  if (input.scopes.length === 0) return invalid('scopes', 'must name at least one scope');
  if (orgId !== null && !isOrgName(orgId)) return invalid('org_id', 'is not the name of an org');
  if (orgId !== null && !seesOrg(principal, orgId)) return fail({ kind: 'org_forbidden', orgId });
  if (typeof input.expiresAtMs === 'number' && input.expiresAtMs <= nowMs) return invalid('expires_at', 'must be in the future');
  return undefined;
}
