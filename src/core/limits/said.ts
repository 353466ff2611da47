/** Wording of a limit that leaves no room, for the caller and the record. */
import { rfc3339 } from '../base/time.ts';
import { shownKey } from './keys.ts';
import { type LimitNote, limitText, shownAmount } from './limit.ts';
import type { Reached } from './reached.ts';

export const noteOf = ({
  limit,
  policy,
  key,
  used,
  max,
}: Omit<Reached, 'why' | 'resetsAtMs' | 'reserved'>): LimitNote => ({
  policy,
  id: limit.id,
  per: limit.per,
  key: shownKey(limit.per, key),
  used: shownAmount(limit.unit, used),
  max: shownAmount(limit.unit, max),
});

const WHY: Readonly<Record<Reached['why'], (text: string, name: string) => string>> = {
  reached: (text, name) => `the limit of ${text} is reached (limit ${name})`,
  denied: (text, name) => `the limit of ${text} is reached, and a person has denied more (limit ${name})`,
  unconfirmed: (text, name) => `the limit of ${text} cannot be confirmed without the database (limit ${name})`,
  full: (_, name) => `too much is counted already for limit ${name} to begin counting this`,
};

export const limitReason = ({ limit, policy, max, why }: Reached): string =>
  WHY[why](limitText(limit, max), `${limit.id} of policy ${policy}`);

export function remedyOfLimit({ limit, resetsAtMs, why }: Reached): string {
  const raise = why === 'full' ? 'ask an operator to raise SVC_MAX_LIMIT_STATES' : 'an operator may raise it';
  if (resetsAtMs !== undefined) return `the limit resets at ${rfc3339(resetsAtMs)}; ${raise}`;
  return why === 'full' ? raise : `the limit holds until the ${limit.per} ends; ${raise}`;
}

export const limitPayload = (reached: Reached) => ({
  limit: noteOf(reached),
  ...(reached.resetsAtMs !== undefined && { resets_at: rfc3339(reached.resetsAtMs) }),
  remedy: remedyOfLimit(reached),
});
