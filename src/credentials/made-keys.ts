/**
 * API keys and webhooks that another credential made. They end with their maker: otherwise a key that was made with a
 * stolen one would outlive its revocation, and a webhook would go on telling its maker (docs/spec.md, API keys).
 */
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { type ApiKey, isUsable, keySubject } from '../core/identity/api-key.ts';
import { holds, type Scope } from '../core/identity/roles.ts';
import type { MadeWebhooks } from '../core/webhooks/webhook.ts';
import type { ApiKeys } from './api-keys.ts';

/** The fate of the keys that a credential made. */
export type MadeKeys = {
  readonly revoked: readonly ApiKey[];
  readonly kept: readonly ApiKey[];
  /** The subjects that may have no webhooks any more, with those that ended before: a fault may have kept theirs. */
  readonly ended: readonly string[];
};

export type Made = MadeKeys & { readonly webhooks: MadeWebhooks };

export const NOTHING_MADE: Made = { revoked: [], kept: [], ended: [], webhooks: { deleted: [], kept: [] } };

export type EndMadeKeys = {
  /** `key:<id>` or `account:<id>`. */
  readonly maker: string;
  readonly actor: string;
  /**
   * The scopes that the maker may still hold: its keys go on that have no more than these, and its webhooks with
   * `admin`. Empty: none.
   */
  readonly mayHold: readonly Scope[];
  /** False keeps them all. */
  readonly cascade: boolean;
};

/** Every valid key that the subject made, and that those made, whatever org they are bound to; the oldest first. */
export const keysMadeBy = (keys: ApiKeys, subject: string): readonly ApiKey[] =>
  descendantsOf(keys, subject)
    .filter((key) => isUsable(key, keys.nowMs))
    .sort((a, b) => a.createdAtMs - b.createdAtMs);

/** The subject and every key that it made, and that those made, valid or not: who made what ends with the subject. */
export const makersBehind = (keys: ApiKeys, subject: string): readonly string[] => [
  subject,
  ...descendantsOf(keys, subject).map(({ id }) => keySubject(id)),
];

function descendantsOf(keys: ApiKeys, subject: string): ApiKey[] {
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
  return [...found.values()];
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
    .flatMap((key) => [key, ...descendantsOf(keys, keySubject(key.id))]);
  const lineage = [...new Map(ends.map((key) => [key.id, key])).values()];
  const made = lineage.filter((key) => isUsable(key, keys.nowMs));
  // A key that the maker made may be its successor, which revokes it.
  const isSuccessor = made.some(({ id }) => keySubject(id) === actor);
  const spared = new Set(isSuccessor ? makersBehind(keys, actor) : []);
  const revoked = cascade ? made.filter(({ id }) => !spared.has(keySubject(id))) : [];
  for (const key of revoked) {
    const done = await keys.revoke(key, actor);
    if (!done.ok) return done;
  }
  const kept = made.filter((key) => !revoked.includes(key));
  const endedKeys = lineage.filter((key) => !kept.includes(key)).map(({ id }) => keySubject(id));
  const ended = [...(holds(mayHold, 'admin') ? [] : [maker]), ...endedKeys.filter((each) => !spared.has(each))];
  return ok({ revoked, kept, ended });
}
