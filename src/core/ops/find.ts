/** The operation that a caller asks for, if it may see it. */

import type { OpId } from '../base/ids.ts';
import { fail, ok, type Result } from '../base/result.ts';
import type { CommandOf } from '../commands.ts';
import type { Fault } from '../fault.ts';
import { orgInReach } from '../identity/access.ts';
import type { OpSlot, OpsRegistry } from './ops.ts';

export const noOp = (opId: OpId) => fail({ kind: 'not_found', what: `operation ${opId}` } as const);

/** The operation of this id in the org that is asked for; without one, in any, as long as only one has such. */
export function visibleOp(
  ops: OpsRegistry,
  { principal, opId, orgId }: CommandOf<'get-op' | 'control-op'>,
): Result<OpSlot, Fault> {
  const org = orgInReach(principal, orgId);
  if (!org.ok) return org;
  if (org.value !== undefined) {
    const slot = ops.find(opId, org.value);
    return slot === undefined ? noOp(opId) : ok(slot);
  }
  const [only, ...others] = ops.findAll(opId);
  if (only === undefined) return noOp(opId);
  if (others.length === 0) return ok(only);
  const orgIds = [only, ...others].map((slot) => ops.ownerOf(slot).identity.orgId);
  return fail({ kind: 'ambiguous', opId, orgIds });
}
