/** The API keys that somebody made, which end with their maker. */
import { query } from './api.js';
import { mayAsk } from './dialogs.js';
import { attempt } from './notices.js';
import { call } from './session.js';

/** Named one by one; of more, their number. */
const MAX_NAMED = 10;

/**
 * Names what will end, for a question about a row of a list; '' where nothing will, undefined where that could not be
 * found out or the question must not be asked any more.
 * @param {string} subject
 * @param {Element} list
 * @param {readonly string[]} [mayHold] keys with no more scopes than these go on
 */
export async function saidOfMadeKeys(subject, list, mayHold = []) {
  /** @type {any[] | undefined} */
  let made;
  await attempt(async () => {
    const page = await call(
      'GET',
      `/api/v1/iam/api-keys${query([
        ['per_page', 1000],
        ['made_by', subject],
      ])}`,
    );
    made = page.api_keys;
  });
  if (made === undefined || !mayAsk(list)) return undefined;
  const ending = made.filter(({ scopes }) => scopes.some((/** @type {string} */ scope) => !mayHold.includes(scope)));
  if (ending.length === 0) return '';
  const named = ending.slice(0, MAX_NAMED).map(({ name, hint }) => `“${name}” (${hint})`);
  const more = ending.length > MAX_NAMED ? ` and ${ending.length - MAX_NAMED} more` : '';
  return ` The API keys that it made end with it: ${named.join(', ')}${more}.`;
}
