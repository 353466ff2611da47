/** `svc context add|use|ls|rm`: named gateways. */
import { hintOf } from '../../core/identity/api-key.ts';
import { usageError } from '../errors.ts';
import {
  CONTEXT_NAME_RULE,
  isContextName,
  putContext,
  readCliConfig,
  removeContext,
  unknownContext,
  useContext,
} from '../files/config-file.ts';
import type { Invocation } from '../invocation.ts';
import { readSession, readSessions, removeSession, type Session } from '../remote/session-file.ts';
import { enteredKey, isSentInClear, parseApiUrl, resolveTarget, type Target } from '../remote/target.ts';
import { note, show, showTable } from '../terminal/output.ts';
import { promptHidden } from '../terminal/prompt.ts';
import { type Column, fieldLines } from '../terminal/table.ts';
import { coarse } from '../terminal/words.ts';

// `svc whoami`: the session of this context, without its secrets (docs/spec.md, Whoami).

export async function run({ globals, env }: Invocation): Promise<void> {
  const target = await resolveTarget(globals, env);
  const session = await readSession(target.label, target.apiUrl);
  if (session === undefined)
    return show(globals.output, { logged_in: false }, () => [
      target.apiKey === undefined
        ? `Not logged in to ${target.label}. Run \`svc login\` to log in.`
        : `Not logged in to ${target.label}; commands send the API key ${hintOf(target.apiKey)}. Run \`svc login\` to exchange it for a session.`,
    ]);
  const projection = project(target, session, Date.now());
  await show(globals.output, projection, () =>
    fieldLines([
      ['context', projection.context],
      ['gateway', projection.api_url],
      ['scopes', projection.scopes.join(', ')],
      [
        'session',
        projection.expired
          ? 'expired; the next command renews it'
          : `expires in about ${coarse(projection.expires_in_secs * 1000)}`,
      ],
      ['key', projection.source_key_hint],
    ]),
  );
}

function project({ label, apiUrl }: Target, { scopes, expiresAtSecs, sourceKey }: Session, nowMs: number) {
  const leftSecs = Math.max(0, Math.floor(expiresAtSecs - nowMs / 1000));
  return {
    logged_in: true,
    context: label,
    api_url: apiUrl,
    scopes,
    expires_at: expiresAtSecs,
    expires_in_secs: leftSecs,
    expired: expiresAtSecs * 1000 <= nowMs,
    source_key_hint: hintOf(sourceKey),
  };
}

export async function add({ args: [name = '', url = ''], options, globals, env }: Invocation): Promise<void> {
  if (!isContextName(name)) throw usageError(CONTEXT_NAME_RULE);
  const apiUrl = parseApiUrl(url);
  if (isSentInClear(apiUrl))
    note(`warning: ${apiUrl} is not encrypted; others on the network can read keys. Use https.`);
  const isKeyStored = options.isSet('withKey');
  const apiKey = isKeyStored ? await keyToStore(globals.apiKey ?? env.SVC_CLI_API_KEY) : undefined;
  if (!isKeyStored && globals.apiKey !== undefined) note('The API key is not stored; use --with-key to store it.');
  const { replaced, isCurrent: wasCurrent } = await putContext(name, { apiUrl, apiKey });
  if (options.isSet('use')) await useContext(name);
  const isCurrent = wasCurrent || options.isSet('use');
  await show(globals.output, { name, api_url: apiUrl, current: isCurrent }, () => [
    `${replaced ? 'Replaced' : 'Added'} context ${name} for ${apiUrl}${isCurrent ? '; it is now in use' : `; use it with \`svc context use ${name}\``}.`,
  ]);
}

const keyToStore = async (given: string | undefined): Promise<string> =>
  enteredKey(
    given?.trim() || (await promptHidden('API key:')),
    'To store none, omit --with-key and run `svc login` later.',
  );

export async function use({ args: [name = ''], globals }: Invocation): Promise<void> {
  if (!(await useContext(name))) throw unknownContext(name, await readCliConfig());
  await show(globals.output, { current: name }, () => [`Context ${name} is now in use.`]);
}

export async function rm({ args: [name = ''], globals }: Invocation): Promise<void> {
  if (!(await removeContext(name))) throw unknownContext(name, await readCliConfig(), '');
  const hadSession = await removeSession(name);
  await show(globals.output, { removed: name, was_logged_in: hadSession }, () => [
    `Removed context ${name}${hadSession ? ' and its session' : ''}.`,
  ]);
}

const COLUMNS: readonly Column[] = [
  { title: 'CONTEXT', cell: 'name', isWhole: true },
  { title: 'IN USE', cell: ({ current }) => (current === true ? 'yes' : '') },
  { title: 'GATEWAY', cell: 'api_url' },
  { title: 'KEY', cell: 'api_key_hint' },
  { title: 'SESSION', cell: 'session' },
];

export async function ls({ globals }: Invocation): Promise<void> {
  const [{ current, contexts }, sessions] = await Promise.all([readCliConfig(), readSessions()]);
  const rows = [...contexts].map(([name, { apiUrl, apiKey }]) => ({
    name,
    current: name === current,
    api_url: apiUrl,
    api_key_hint: apiKey === undefined ? null : hintOf(apiKey),
    session: stateOf(sessions.get(name), apiUrl, Date.now()),
  }));
  await showTable(globals, {
    value: { contexts: rows },
    columns: COLUMNS,
    rows,
    none: 'There are no contexts; add one with `svc context add <name> <url>`.',
  });
}

/** A session that another gateway gave is of no use to this one. */
const stateOf = (session: Session | undefined, apiUrl: string, nowMs: number): string =>
  session?.apiUrl !== apiUrl ? 'none' : session.expiresAtSecs * 1000 <= nowMs ? 'expired' : 'valid';
