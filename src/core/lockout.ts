/** Account lockout as a table of two states (spec: Account lockout). */

export const LOCKOUT = { failures: 5, lockMs: 15 * 60 * 1000 } as const;

/** `lockedUntilMs` is null while unlocked. Failures are counted for every address, whether or not it has an account. */
export type Lockout = { readonly failures: number; readonly lockedUntilMs: number | null };

export const NO_FAILURES: Lockout = { failures: 0, lockedUntilMs: null };

/** Whole seconds until the lock ends, at least 1; undefined when it is not locked at that time. */
export function lockedForSecs(lockout: Lockout, nowMs: number): number | undefined {
  if (lockout.lockedUntilMs === null || lockout.lockedUntilMs <= nowMs) return undefined;
  return Math.ceil((lockout.lockedUntilMs - nowMs) / 1000);
}

/**
 * A failure while locked changes nothing, so further attempts do not prolong the lock. After a lock the count starts
 * again at one.
 */
export function afterFailure(lockout: Lockout, nowMs: number): Lockout {
  if (lockedForSecs(lockout, nowMs) !== undefined) return lockout;
  const failures = (lockout.lockedUntilMs === null ? lockout.failures : 0) + 1;
  return { failures, lockedUntilMs: failures >= LOCKOUT.failures ? nowMs + LOCKOUT.lockMs : null };
}
