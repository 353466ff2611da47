/** API keys as admins handle them: created, listed and revoked (docs/spec.md, API keys). */

import { isOrgName } from '../core/base/ids.ts';
import { BAD_CURSOR, type Page } from '../core/base/page.ts';
import { assert, fail, ok, type Result } from '../core/base/result.ts';
import { type Fault, invalid, unauthenticated } from '../core/fault.ts';
import { orgInReach, refuseWithout } from '../core/identity/access.ts';
import { type ApiKey, isUsable, keyIdOf, keySubject } from '../core/identity/api-key.ts';
import { type Principal, SCOPES, type Scope, seesOrg } from '../core/identity/roles.ts';
import { oldestFirst } from './api-key-index.ts';
import type { ApiKeys, CreatedApiKey, NewApiKey } from './api-keys.ts';
import { endMadeKeys, keysMadeBy, type MadeKeys } from './made-keys.ts';

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
  /** Only valid keys that this subject made, and that those made. */
  readonly madeBy?: string | undefined;
};

const MAX_NAME_LENGTH = 100;
const NAME = new RegExp(`^\\P{C}{1,${MAX_NAME_LENGTH}}$`, 'u');

/** Faults: `insufficient_scope`, `org_forbidden`, `invalid_argument`, and those of `ApiKeys.add`. */
export async function createApiKey(
  keys: ApiKeys,
  principal: Principal,
  input: CreateApiKey,
  { isStillAdmin = async ({ subject }) => isKeyInForce(keys, subject), isApproverName = () => false }: KeyRules = {},
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
  const isUnique = isApproverName(wanted.name);
  if (isUnique) await keys.lookAround(); // another gateway may have made one of that name
  if (isUnique && isNameTaken(keys, record)) return nameTaken(record);
  const added = await keys.add(record);
  if (!added.ok) return added;
  assert(added.value === 'inserted', 'two keys of 64 random bits have different ids');
  if (isUnique && isNameTaken(keys, record)) {
    const withdrawn = await keys.revoke(record, principal.subject);
    return withdrawn.ok ? nameTaken(record) : withdrawn;
  }
  // Its maker may have ended meanwhile, and what it made been looked for already.
  if (await isStillAdmin(principal)) return ok({ key, record });
  const revoked = await keys.revoke(record, principal.subject);
  return revoked.ok ? unauthenticated('the credential has just ended') : revoked;
}

/** Whether the credential is still valid, and may still make keys. */
export type IsStillAdmin = (principal: Principal) => Promise<boolean>;

export type KeyRules = {
  readonly isStillAdmin?: IsStillAdmin;
  /** Whether a rule in force names an approver `key:<name>`: such a name belongs to one valid key of a reach. */
  readonly isApproverName?: (name: string) => boolean;
};

/** Whether an older valid key of the same reach has the name. */
function isNameTaken(keys: ApiKeys, record: ApiKey): boolean {
  const name = record.name.toLowerCase();
  return keys
    .all()
    .some(
      (key) =>
        key.name.toLowerCase() === name &&
        key.orgId === record.orgId &&
        isUsable(key, keys.nowMs) &&
        oldestFirst(key, record) < 0,
    );
}

const nameTaken = ({ name }: ApiKey): Result<never, Fault> =>
  fail({
    kind: 'conflict',
    detail: `a valid API key is called ${name}, and a rule names it as an approver; revoke it or choose another name`,
  });

/** True of any subject that is not a key's. */
export function isKeyInForce(keys: ApiKeys, subject: string): boolean {
  const id = keyIdOf(subject);
  return id === undefined || !keys.hasEnded(id);
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
  { perPage, cursor, orgId, madeBy }: ListApiKeys,
): Promise<Result<Page<ApiKey>, Fault>> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const org = orgInReach(principal, orgId);
  if (!org.ok) return org;
  if (madeBy === undefined) return keys.page({ perPage, cursor }, org.value ?? null);
  await keys.lookAround(); // what is known here must do while the store cannot be reached
  const made = keysMadeBy(keys, madeBy)
    .filter((key) => org.value === undefined || key.orgId === org.value)
    .toReversed();
  const from = cursor === undefined ? 0 : made.findIndex(({ id }) => id === cursor) + 1;
  if (cursor !== undefined && from === 0) return BAD_CURSOR;
  const items = made.slice(from, from + perPage);
  return ok({ items, next: made.length > from + items.length ? items.at(-1)?.id : undefined });
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

/**
 * Revokes the key and, unless `cascade` is false, the keys that it made, but not the one that asks: whoever replaces
 * a key by one that it made would be locked out. Revoking twice is no error. Faults: `insufficient_scope`; `not_found`,
 * also for a key of another org.
 */
export async function revokeApiKey(
  keys: ApiKeys,
  principal: Principal,
  id: string,
  cascade = true,
): Promise<Result<MadeKeys, Fault>> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const found = await keys.find({ id });
  if (!found.ok) return found;
  const key = found.value;
  if (key === undefined || !seesOrg(principal, key.orgId)) return fail({ kind: 'not_found', what: 'API key' });
  await keys.lookAround(); // another gateway may have made some with it
  const revoked = await keys.revoke(key, principal.subject);
  if (!revoked.ok) return revoked;
  return endMadeKeys(keys, { maker: keySubject(id), actor: principal.subject, mayHold: [], cascade });
}
