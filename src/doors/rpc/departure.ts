/** Calls whose answer is held back end when nobody waits for it any more. */
import { randomUUID } from 'node:crypto';
import type { Approval } from '../../core/approvals/approval.ts';
import type { Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Principal } from '../../core/identity/roles.ts';
import type { ApprovalReader } from '../../use-cases/approvals.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Caller } from './handle.ts';

/** How often a held call looks whether its caller is still there. */
const LOOK_EVERY_MS = 1_000;

/** Calls `gone` when the caller has left, maybe more than once. Returns what stops that. */
export function whenGone(caller: Pick<Caller, 'cancelled'>, gone: () => void): () => void {
  const watch = setInterval(() => {
    if (caller.cancelled) gone();
  }, LOOK_EVERY_MS);
  return () => clearInterval(watch);
}

export type Wait = {
  readonly reader: ApprovalReader;
  readonly principal: Principal | undefined;
  readonly id: string;
  readonly waitMs: number;
};

/** The approval once it is decided, the time is over, or the caller has left. */
export async function waitWhileThere(
  link: Link,
  caller: Pick<Caller, 'cancelled'>,
  wait: Wait,
): Promise<Result<Approval, Fault>> {
  const ticket = randomUUID();
  const stop = whenGone(caller, () => void link.call('leaveWait', { ticket }));
  try {
    return await link.call('waitApproval', { ...wait, ticket });
  } finally {
    stop();
  }
}
