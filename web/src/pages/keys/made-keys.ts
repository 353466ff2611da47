/** The API keys that somebody made, which end with their maker. */
import type { ApiKey, Scope } from '../../base/api-types.ts';
import { queryOf } from '../../base/request.ts';
import { call } from '../../session/session.ts';

/** Named one by one; of more, their number. */
const MAX_NAMED = 10;

/** Names what will end, for a question; '' where nothing will. Keys with no more scopes than `mayHold` go on. */
export async function saidOfMadeKeys(subject: string, mayHold: readonly Scope[] = []): Promise<string> {
  const page = await call('GET', `/api/v1/iam/api-keys${queryOf({ per_page: 1000, made_by: subject })}`);
  const made: readonly ApiKey[] = page.api_keys;
  const ending = made.filter(({ scopes }) => scopes.some((scope) => !mayHold.includes(scope)));
  if (ending.length === 0) return '';
  const named = ending.slice(0, MAX_NAMED).map(({ name, hint }) => `“${name}” (${hint})`);
  const more = ending.length > MAX_NAMED ? ` and ${ending.length - MAX_NAMED} more` : '';
  return ` The API keys that it made end with it: ${named.join(', ')}${more}.`;
}
