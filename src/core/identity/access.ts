/** Who is asking, and what that allows (docs/spec.md, Tokens and scopes). */

import type { SecretDigest } from '../base/ids.ts';
import { fail, ok, type Result } from '../base/result.ts';
import type { Fault } from '../fault.ts';
import { holds, type Principal, type Scope, seesOrg } from './roles.ts';

/**
 * The credential of a request about an agent: by the agent's own credential token, or by a bearer whose principal has
 * the write scope (docs/spec.md, Checks). With both, the token decides. With neither, a check is denied.
 */
export type Voucher = {
  readonly credential: SecretDigest | undefined;
  readonly principal: Principal | undefined;
};

/** The refusal of a principal that does not hold the scope; undefined where it does. */
export const refuseWithout = (
  needed: Scope,
  { scopes }: Pick<Principal, 'scopes'>,
): Result<never, Fault> | undefined =>
  holds(scopes, needed) ? undefined : fail({ kind: 'insufficient_scope', needed, held: scopes });

/**
 * The refusal of a principal that is not an admin of all orgs, for what concerns every org; undefined where it is one.
 */
export const refuseUnlessAdminOfAll = (principal: Principal): Result<never, Fault> | undefined =>
  refuseWithout('admin', principal) ??
  (principal.orgId === null ? undefined : fail({ kind: 'org_forbidden', orgId: undefined }));

/**
 * The org a listing is about: the one asked for, else the one the credential is bound to, else every org (undefined).
 * Fault: `org_forbidden`.
 */
export function orgInReach(principal: Principal, orgId: string | undefined): Result<string | undefined, Fault> {
  if (orgId === undefined) return ok(principal.orgId ?? undefined);
  return seesOrg(principal, orgId) ? ok(orgId) : fail({ kind: 'org_forbidden', orgId });
}
