/** The lineage of a credential: what made it, and what made that (docs/spec.md, Approvals). */
import type { Credential, Lineage } from '../core/approvals/approvers.ts';
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { accountIdOf } from '../core/identity/account.ts';
import { ENVIRONMENT_CREATOR, FIRST_KEY_CREATOR, isUsable, keyIdOf, keySubject } from '../core/identity/api-key.ts';
import { ROLES, type Role } from '../core/identity/roles.ts';
import type { ApiKeys } from './api-keys.ts';

export type LineageDeps = {
  readonly apiKeys: Pick<ApiKeys, 'find' | 'nowMs'>;
  /** The account of this subject; undefined: it is gone. */
  readonly accountOf: (subject: string) => Promise<Result<AccountSeen | undefined, Fault>>;
};
type AccountSeen = { readonly email: string; readonly role: Role; readonly disabled: boolean };

type Step = { readonly credential: Credential; readonly madeBy: string | undefined };

/** Faults: those of the stores, because then it cannot be known who is behind the credential. */
export async function lineageOf(deps: LineageDeps, subject: string): Promise<Result<Lineage, Fault>> {
  const first = await stepOf(deps, subject);
  if (!first.ok) return first;
  const makers: Credential[] = [];
  const known = new Set([subject]);
  for (let { madeBy } = first.value; madeBy !== undefined && !known.has(madeBy); ) {
    known.add(madeBy);
    const step = await stepOf(deps, madeBy);
    if (!step.ok) return step;
    makers.push(step.value.credential);
    ({ madeBy } = step.value);
  }
  return ok([first.value.credential, ...makers]);
}

async function stepOf({ apiKeys, accountOf }: LineageDeps, subject: string): Promise<Result<Step, Fault>> {
  const id = keyIdOf(subject);
  if (id !== undefined) {
    const found = await apiKeys.find({ id });
    if (!found.ok) return found;
    const key = found.value;
    if (key === undefined) return ok(unknown(subject));
    const isFirst = key.createdBy === FIRST_KEY_CREATOR || key.createdBy === ENVIRONMENT_CREATOR;
    const isValid = isUsable(key, apiKeys.nowMs);
    return ok({
      credential: { subject: keySubject(key.id), names: [`key:${key.name}`], isValid, isFirst },
      madeBy: isFirst ? undefined : key.createdBy,
    });
  }
  if (accountIdOf(subject) === undefined) return ok(unknown(subject));
  const account = await accountOf(subject);
  if (!account.ok) return account;
  if (account.value === undefined) return ok(unknown(subject));
  const { email, role, disabled } = account.value;
  // An account has the roles below its own, too.
  const names = [...ROLES.slice(ROLES.indexOf(role)).map((each) => `role:${each}`), `account:${email}`];
  return ok({ credential: { subject, names, isValid: !disabled, isFirst: false }, madeBy: undefined });
}

/** Such as an agent, or a key that was deleted long after its end. */
const unknown = (subject: string): Step => ({
  credential: { subject, names: [], isValid: false, isFirst: false },
  madeBy: undefined,
});
