/** The API keys and webhooks that a credential made, which end with it: named, and asked about, before it ends. */
import { CliError } from '../errors.ts';
import type { Options } from '../invocation.ts';
import type { Api } from '../remote/api.ts';
import { note } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { confirmed } from '../terminal/prompt.ts';
import type { Row } from '../terminal/table.ts';
import { counted } from '../terminal/words.ts';

const MAX_SHOWN = 20;

export type Ending = {
  /** The query to add to the path of the request. */
  readonly query: '' | '?cascade=false';
  /** Explains what happens to them, in a sentence; '' if there are none. */
  readonly sentence: string;
  /** Their ids, by their fate, for `-o json`. */
  readonly named: Row;
};

export const NOTHING_ENDS: Ending = { query: '', sentence: '', named: {} };

/**
 * Names the valid keys and the webhooks that the subject made, and asks a person whether they are to end, too. Rejects
 * when they are not meant. `mayHold`: nothing is said of keys with no more scopes than these, because they go on, nor
 * of webhooks if `admin` is one.
 */
export async function askAboutMade(
  api: Api,
  subject: string,
  options: Options,
  mayHold: readonly unknown[] = [],
): Promise<Ending> {
  const query = { made_by: subject };
  const made = await api.list('/api/v1/iam/api-keys', 'api_keys', { query });
  const keys = made.rows.filter(
    ({ scopes }) => !(Array.isArray(scopes) && scopes.every((each) => mayHold.includes(each))),
  );
  const hooks = mayHold.includes('admin') ? [] : (await api.list('/api/v1/webhooks', 'webhooks', { query })).rows;
  if (keys.length + hooks.length === 0) return NOTHING_ENDS;
  const these = [
    ...(keys.length > 0 ? [counted(keys.length, 'API key')] : []),
    ...(hooks.length > 0 ? [counted(hooks.length, 'webhook')] : []),
  ].join(' and ');
  if (options.isSet('keepKeys'))
    return {
      query: '?cascade=false',
      sentence: ` ${these} that it made ${keys.length > 0 ? 'stay valid' : 'go on'}.`,
      named: idsOf({ kept_keys: keys, kept_webhooks: hooks }),
    };
  note(`${these} that it made will end with it:`);
  const lines = [...keys.map(lineOfKey), ...hooks.map(lineOfHook)];
  for (const line of lines.slice(0, MAX_SHOWN)) note(printable(`  ${line}`));
  if (lines.length > MAX_SHOWN) note(`  and ${lines.length - MAX_SHOWN} more`);
  // A script means what it says; a person may not know of them.
  if (!options.isSet('yes') && process.stdin.isTTY === true && !(await confirmed('End them all?')))
    throw new CliError('cancelled; nothing was changed', 'To keep the keys and webhooks, add --keep-keys.');
  return {
    query: '',
    sentence: ` ${these} that it made ended with it.`,
    named: idsOf({ made_keys: keys, made_webhooks: hooks }),
  };
}

const idsOf = (made: Readonly<Record<string, readonly Row[]>>): Row =>
  Object.fromEntries(
    Object.entries(made).flatMap(([name, rows]) => (rows.length > 0 ? [[name, rows.map(({ id }) => id)]] : [])),
  );

const lineOfHook = ({ id, url }: Row): string => `${String(id)}  ${String(url)}`;

const lineOfKey = ({ id, name, scopes, org_id: orgId }: Row): string =>
  `${String(id)}  ${String(name)}  ${Array.isArray(scopes) ? scopes.join(',') : ''}${typeof orgId === 'string' ? `  ${orgId}` : ''}`;
