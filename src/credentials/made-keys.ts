/**
 * API keys that another credential made. They end with their maker: otherwise a key that was made with a stolen one
 * would outlive its revocation (docs/spec.md, API keys).
 */
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { type ApiKey, isUsable, keyIdOf, keySubject } from '../core/identity/api-key.ts';
import { holds, type Scope } from '../core/identity/roles.ts';
import type { ApiKeys } from './api-keys.ts';

/** The fate of the keys that a credential made. */
export type MadeKeys = { readonly revoked: readonly ApiKey[]; readonly kept: readonly ApiKey[] };

export const NO_MADE_KEYS: MadeKeys = { revoked: [], kept: [] };

export type EndMadeKeys = {
  /** `key:<id>` or `account:<id>`. */
  readonly maker: string;
  readonly actor: string;
  /** The scopes that the maker may still hold: its keys go on that have no more than these. Empty: none. */
  readonly mayHold: readonly Scope[];
  /** False keeps them all. */
  readonly cascade: boolean;
};

/** Every valid key that the subject made, and that those made, whatever org they are bound to; the oldest first. */
export function keysMadeBy(keys: ApiKeys, subject: string): readonly ApiKey[] {
  const nowMs = keys.nowMs;
  const found = new Map<string, ApiKey>();
  const makers = [subject];
  for (let maker = makers.pop(); maker !== undefined; maker = makers.pop()) {
    for (const key of keys.createdBy(maker)) {
      if (found.has(key.id)) continue;
      // Keys made by a key that has ended are looked for, too: they may not have ended.
      found.set(key.id, key);
      makers.push(keySubject(key.id));
    }
  }
  return [...found.values()].filter((key) => isUsable(key, nowMs)).sort((a, b) => a.createdAtMs - b.createdAtMs);
}

/**
 * Revokes what the maker made and may not hold any more, and what those keys made; but not the actor's own key, nor
 * what that has made, if it is one of these. Calling it again finishes what a fault has left. Faults: those of the
 * store and the audit log.
 */
export async function endMadeKeys(
  keys: ApiKeys,
  { maker, actor, mayHold, cascade }: EndMadeKeys,
): Promise<Result<MadeKeys, Fault>> {
  const ends = keys
    .createdBy(maker)
    .filter((key) => key.scopes.some((scope) => !holds(mayHold, scope)))
    .flatMap((key) => [key, ...keysMadeBy(keys, keySubject(key.id))])
    .filter((key) => isUsable(key, keys.nowMs));
  const made = [...new Map(ends.map((key) => [key.id, key])).values()];
  // A key that the maker made may be its successor, which revokes it.
  const isSuccessor = made.some(({ id }) => keySubject(id) === actor);
  const spared = new Set(isSuccessor ? [keyIdOf(actor), ...keysMadeBy(keys, actor).map(({ id }) => id)] : []);
  const revoked = cascade ? made.filter(({ id }) => !spared.has(id)) : [];
  for (const key of revoked) {
    const done = await keys.revoke(key, actor);
    if (!done.ok) return done;
  }
  return ok({ revoked, kept: made.filter((key) => !revoked.includes(key)) });
}
