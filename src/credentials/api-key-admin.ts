import { orgInReach, refuseWithout } from '../core/access.ts';
import { isOrgName } from '../core/base/ids.ts';
import type { Page } from '../core/base/page.ts';
import { assert, fail, ok, type Result } from '../core/base/result.ts';
import { type Fault, invalid } from '../core/fault.ts';
/** API keys as admins handle them: created, listed and revoked (docs/spec.md, API keys). */
import { type ApiKey, keyIdOf } from '../core/identity/api-key.ts';
import { type Principal, SCOPES, type Scope, seesOrg } from '../core/identity/roles.ts';
import type { ApiKeys, CreatedApiKey, NewApiKey } from './api-keys.ts';

export type CreateApiKey = {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The org to bind the key to. Absent or null: the one that the creator is bound to, if any. */
  readonly orgId?: string | null | undefined;
  readonly expiresAtMs?: number | null | undefined;
};

export type ListApiKeys = {
  readonly perPage: number;
  readonly cursor?: string | undefined;
  readonly orgId?: string | undefined;
};

const MAX_NAME_LENGTH = 100;
const NAME = new RegExp(`^\\P{C}{1,${MAX_NAME_LENGTH}}$`, 'u');

/** Faults: `insufficient_scope`, `org_forbidden`, `invalid_argument`, and those of `ApiKeys.add`. */
export async function createApiKey(
  keys: ApiKeys,
  principal: Principal,
  input: CreateApiKey,
): Promise<Result<CreatedApiKey, Fault>> {
  const wanted: NewApiKey = {
    name: input.name,
    scopes: SCOPES.filter((scope) => input.scopes.includes(scope)),
    orgId: input.orgId ?? principal.orgId,
    createdBy: principal.subject,
    expiresAtMs: input.expiresAtMs ?? null,
  };
  const refused = refusalOf(principal, wanted, keys.nowMs);
  if (refused !== undefined) return refused;
  const { key, record } = keys.make(wanted);
  const added = await keys.add(record);
  if (!added.ok) return added;
  assert(added.value === 'inserted', 'two keys of 64 random bits have different ids');
  return ok({ key, record });
}

function refusalOf(
  principal: Principal,
  { name, scopes, orgId, expiresAtMs }: NewApiKey,
  nowMs: number,
): Result<never, Fault> | undefined {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  if (!NAME.test(name)) return invalid('name', `must be 1 to ${MAX_NAME_LENGTH} characters without control characters`);
  if (scopes.length === 0) return invalid('scopes', 'must name at least one scope');
  if (orgId !== null && !isOrgName(orgId)) return invalid('org_id', 'is not a valid org name');
  if (orgId !== null && !seesOrg(principal, orgId)) return fail({ kind: 'org_forbidden', orgId });
  if (expiresAtMs !== null && expiresAtMs <= nowMs) return invalid('expires_at', 'must be in the future');
  return undefined;
}

/** Newest first. Faults: `insufficient_scope`, `org_forbidden`, `invalid_argument` for a cursor that is none. */
export async function listApiKeys(
  keys: ApiKeys,
  principal: Principal,
  { perPage, cursor, orgId }: ListApiKeys,
): Promise<Result<Page<ApiKey>, Fault>> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const org = orgInReach(principal, orgId);
  return org.ok ? keys.page({ perPage, cursor }, org.value ?? null) : org;
}

/**
 * The key behind the caller's credential. Faults: `not_found` for a credential that is an account's, and those of the
 * store.
 */
export async function ownApiKey(keys: ApiKeys, principal: Principal): Promise<Result<ApiKey, Fault>> {
  const id = keyIdOf(principal.subject);
  const found = id === undefined ? ok(undefined) : await keys.find({ id });
  if (!found.ok) return found;
  return found.value === undefined
    ? fail({ kind: 'not_found', what: 'API key behind this credential' })
    : ok(found.value);
}

/** Revoking twice is no error. Faults: `insufficient_scope`; `not_found`, also for a key of another org. */
export async function revokeApiKey(keys: ApiKeys, principal: Principal, id: string): Promise<Result<void, Fault>> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const found = await keys.find({ id });
  if (!found.ok) return found;
  const key = found.value;
  if (key === undefined || !seesOrg(principal, key.orgId)) return fail({ kind: 'not_found', what: 'API key' });
  return keys.revoke(key, principal.subject);
}
