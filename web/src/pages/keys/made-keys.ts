/** The API keys and webhooks that somebody made, which end with their maker. */
import type { ApiKey, Scope, Webhook } from '../../base/api-types.ts';
import { queryOf } from '../../base/request.ts';
import { call } from '../../session/session.ts';

/** Named one by one; of more, their number. */
const MAX_NAMED = 10;

/**
 * Names what will end, for a question; '' where nothing will. Keys with no more scopes than `mayHold` go on, and
 * webhooks if `admin` is one of them.
 */
export async function saidOfMade(subject: string, mayHold: readonly Scope[] = []): Promise<string> {
  const query = queryOf({ per_page: 1000, made_by: subject });
  const made: readonly ApiKey[] = (await call('GET', `/api/v1/iam/api-keys${query}`)).api_keys;
  const keys = made.filter(({ scopes }) => scopes.some((scope) => !mayHold.includes(scope)));
  const hooks: readonly Webhook[] = mayHold.includes('admin')
    ? []
    : (await call('GET', `/api/v1/webhooks${query}`)).webhooks;
  return [
    sentenceOf(
      'API keys',
      keys.map(({ name, hint }) => `“${name}” (${hint})`),
    ),
    sentenceOf(
      'webhooks',
      hooks.map(({ url }) => url),
    ),
  ].join('');
}

function sentenceOf(what: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return ` The ${what} that it made end with it: ${names.slice(0, MAX_NAMED).join(', ')}${more}.`;
}
