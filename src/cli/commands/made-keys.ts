/** The API keys that a credential made, which end with it: named, and asked about, before it ends. */
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
  readonly ids: readonly unknown[];
};

/**
 * Names the valid keys that the subject made, and asks a person whether they are to end, too. Rejects when they are not
 * meant. `mayHold`: of those with no more scopes than these nothing is said, because they go on.
 */
export async function askAboutMadeKeys(
  api: Api,
  subject: string,
  options: Options,
  mayHold: readonly unknown[] = [],
): Promise<Ending> {
  const { rows } = await api.list('/api/v1/iam/api-keys', 'api_keys', { query: { made_by: subject } });
  const ending = rows.filter(
    ({ scopes }) => !(Array.isArray(scopes) && scopes.every((each) => mayHold.includes(each))),
  );
  if (ending.length === 0) return { query: '', sentence: '', ids: [] };
  const these = counted(ending.length, 'API key');
  const ids = ending.map(({ id }) => id);
  const isKept = options.isSet('keepKeys');
  if (isKept) return { query: '?cascade=false', sentence: ` ${these} that it made stay valid.`, ids };
  note(`${these} that it made will end with it:`);
  for (const key of ending.slice(0, MAX_SHOWN)) note(printable(`  ${lineOf(key)}`));
  if (ending.length > MAX_SHOWN) note(`  and ${ending.length - MAX_SHOWN} more`);
  // A script means what it says; a person may not know of them.
  if (!options.isSet('yes') && process.stdin.isTTY === true && !(await confirmed('End them all?')))
    throw new CliError('cancelled; nothing was changed', 'To keep the keys, add --keep-keys.');
  return { query: '', sentence: ` ${these} that it made ended with it.`, ids };
}

const lineOf = ({ id, name, scopes, org_id: orgId }: Row): string =>
  `${String(id)}  ${String(name)}  ${Array.isArray(scopes) ? scopes.join(',') : ''}${typeof orgId === 'string' ? `  ${orgId}` : ''}`;
