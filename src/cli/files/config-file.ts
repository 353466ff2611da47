/** `~/.svc/config.yaml`: named gateways, and which of them is in use. Kept as its owner wrote it, comments included. */
import type { Document } from 'yaml';
import { CliError } from '../errors.ts';
import { changePrivateFile, pathInFolder, readPrivateFile, warnIfOpen } from './private-folder.ts';

const FILE = 'config.yaml';

export type Context = { readonly apiUrl: string; readonly apiKey: string | undefined };
export type CliConfig = { readonly current: string | undefined; readonly contexts: ReadonlyMap<string, Context> };

/** A name never looks like a URL, which is what names the session of an unnamed context. */
export const isContextName = (text: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text);
export const CONTEXT_NAME_RULE = 'the name of a context must be 1 to 64 letters, digits, ".", "_" or "-"';

export async function readCliConfig(): Promise<CliConfig> {
  const text = await readPrivateFile(FILE);
  if (text === undefined) return { current: undefined, contexts: new Map() };
  const config = configIn(await documentOf(text));
  if ([...config.contexts.values()].some(({ apiKey }) => apiKey !== undefined)) await warnIfOpen(FILE, 'an API key');
  return config;
}

/** `next`: what may be done about it, beside using another. */
export function unknownContext(
  name: string,
  { contexts }: CliConfig,
  next = `; add one with \`svc context add ${name} <url>\``,
): CliError {
  const names = [...contexts.keys()].join(', ');
  const known =
    contexts.size === 0
      ? 'There are no contexts yet'
      : `The ${contexts.size === 1 ? 'only context is' : 'contexts are'} ${names}`;
  return new CliError(`context ${name} not found`, `${known}${next}.`);
}

/** Replaces the whole context. The first one becomes the one in use. Answers whether there was one of this name. */
export async function putContext(
  name: string,
  { apiUrl, apiKey }: Context,
): Promise<{ readonly replaced: boolean; readonly isCurrent: boolean }> {
  let answer = { replaced: false, isCurrent: false };
  await changeConfig((document, { current, contexts }) => {
    const next = current ?? name;
    answer = { replaced: contexts.has(name), isCurrent: next === name };
    document.set('current_context', next);
    document.setIn(
      ['contexts', name],
      document.createNode({ api_url: apiUrl, ...(apiKey === undefined ? {} : { api_key: apiKey }) }),
    );
  });
  return answer;
}

/** False when there is no such context. */
export async function useContext(name: string): Promise<boolean> {
  let isThere = false;
  await changeConfig((document, { contexts }) => {
    isThere = contexts.has(name);
    if (isThere) document.set('current_context', name);
  });
  return isThere;
}

/** False when there is no such context. */
export async function removeContext(name: string): Promise<boolean> {
  let isThere = false;
  await changeConfig((document, { current, contexts }) => {
    isThere = contexts.has(name);
    if (isThere) document.deleteIn(['contexts', name]);
    if (isThere && current === name) document.delete('current_context');
  });
  return isThere;
}

const changeConfig = (change: (document: Document, config: CliConfig) => void): Promise<void> =>
  changePrivateFile(FILE, async (text) => {
    const document = await documentOf(text);
    change(document, configIn(document));
    return resolved(() => document.toString());
  });

async function documentOf(text: string | undefined): Promise<Document> {
  const { parseDocument } = await import('yaml'); // half the start of a command that has no file to read
  const document: Document = parseDocument(text ?? '');
  const [problem] = document.errors;
  // The message alone: the excerpt below its first line may show a stored key.
  if (problem !== undefined) throw broken(problem.message.split('\n')[0]?.replace(/:$/, '') ?? 'it is not valid YAML');
  if (document.contents === null) document.contents = document.createNode({}) as Document['contents'];
  return document;
}

/** Without the library's message, which quotes the alias: that may be a key, as one that begins with an asterisk. */
function resolved<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ReferenceError) throw broken('it has an alias, written with *, that refers to nothing');
    throw error;
  }
}

function configIn(document: Document): CliConfig {
  const raw = mapping(
    resolved(() => document.toJS()),
    'it',
  );
  const current = raw.current_context ?? undefined;
  if (current !== undefined && typeof current !== 'string') throw broken('current_context must be a name');
  return {
    current,
    contexts: new Map(
      Object.entries(mapping(raw.contexts ?? {}, 'contexts')).map(([name, context]) => [
        name,
        contextIn(name, context),
      ]),
    ),
  };
}

function contextIn(name: string, raw: unknown): Context {
  const { api_url: apiUrl, api_key: apiKey } = mapping(raw, `contexts.${name}`);
  if (!isContextName(name)) throw broken(CONTEXT_NAME_RULE);
  if (typeof apiUrl !== 'string') throw broken(`contexts.${name}.api_url must be a URL`);
  if (apiKey !== undefined && apiKey !== null && typeof apiKey !== 'string')
    throw broken(`contexts.${name}.api_key must be a string`);
  return { apiUrl, apiKey: apiKey ?? undefined };
}

function mapping(raw: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) throw broken(`${what} must be a mapping`);
  return raw as Readonly<Record<string, unknown>>;
}

const broken = (why: string): CliError =>
  new CliError(
    `${pathInFolder(FILE)} cannot be used: ${why}`,
    'Fix it, or move it away and add your contexts again with `svc context add`.',
  );
