/** Which gateway a command talks to, with which key, and under which name its session is stored. */

import type { Gateway } from '../../client/connection.ts';
import { apiUrlIn, DEFAULT_URL } from '../../client/environment.ts';
import { isLoopback, proxyFor } from '../../client/proxy-choice.ts';
import { CliError, usageError } from '../errors.ts';
import {
  type CliConfig,
  CONTEXT_NAME_RULE,
  isContextName,
  readCliConfig,
  unknownContext,
} from '../files/config-file.ts';
import type { Globals } from '../invocation.ts';
import { isSecret } from './session-file.ts';

export type Target = Gateway & {
  /** The name of the context, or the URL of an unnamed one: what people read, and the name of the session. */
  readonly label: string;
  /** From --api-key, SVC_CLI_API_KEY or the context, in this order (docs/spec.md, Credentials of the command line). */
  readonly apiKey: string | undefined;
};

type Environment = Readonly<Record<string, string | undefined>>;

export const resolveTarget = async (globals: Globals, env: Environment): Promise<Target> =>
  targetFrom(
    globals,
    env,
    isWholeWithoutFile(globals, env) ? { current: undefined, contexts: new Map() } : await readCliConfig(),
  );

/** A service without access to its home directory has all settings in its environment. */
const isWholeWithoutFile = (globals: Globals, env: Environment): boolean =>
  (given(globals.apiUrl) ?? given(env.SVC_CLI_API_URL)) !== undefined &&
  (given(globals.context) ?? given(env.SVC_CLI_CONTEXT)) === undefined;

/**
 * The context is the one of --context, else of SVC_CLI_CONTEXT, else the one in use. A URL that is given without naming
 * a context stands for an unnamed one: the key and the session of the context in use are not for another gateway.
 */
function targetFrom(globals: Globals, env: Environment, config: CliConfig): Target {
  const urlFlag = given(globals.apiUrl);
  const urlVariable = given(env.SVC_CLI_API_URL);
  const named = given(globals.context) ?? given(env.SVC_CLI_CONTEXT);
  const name = named ?? (urlFlag === undefined && urlVariable === undefined ? config.current : undefined);
  const context = name === undefined ? undefined : config.contexts.get(name);
  // --context takes precedence over a variable set for the whole shell.
  const outranksVariable = given(globals.context) !== undefined ? context?.apiUrl : undefined;
  const url = urlFlag ?? outranksVariable ?? urlVariable ?? context?.apiUrl;
  if (name !== undefined && context === undefined) refuseUnknown(name, url, config);
  const apiUrl = parseApiUrl(url ?? DEFAULT_URL);
  return {
    label: name ?? apiUrl,
    apiUrl,
    proxy: proxyFor(apiUrl, env),
    apiKey: apiKeyFrom(globals, env, context?.apiKey),
  };
}

const given = (text: string | undefined): string | undefined =>
  text === undefined || text.trim() === '' ? undefined : text.trim();

function apiKeyFrom(globals: Globals, env: Environment, stored: string | undefined): string | undefined {
  if (globals.apiKey !== undefined && given(globals.apiKey) === undefined)
    throw usageError('no API key provided: --api-key is blank', 'To be prompted for the key, omit --api-key.');
  const key = given(globals.apiKey) ?? given(env.SVC_CLI_API_KEY) ?? given(stored);
  if (key !== undefined && !isSecret(key)) throw malformedKey();
  return key;
}

/** A key as it was entered. `advice` is for those who entered none. */
export function enteredKey(key: string, advice: string): string {
  if (key === '') throw new CliError('no API key provided', advice);
  if (!isSecret(key)) throw malformedKey();
  return key;
}

const malformedKey = (): CliError =>
  new CliError(
    'the API key contains invalid characters',
    'Check that it was copied completely and alone: a key is one line of ASCII without spaces.',
  );

/** A name that is not in the file is fine when its URL is given with it. */
function refuseUnknown(name: string, url: string | undefined, config: CliConfig): void {
  if (!isContextName(name)) throw usageError(CONTEXT_NAME_RULE);
  if (url === undefined) throw unknownContext(name, config);
}

export function parseApiUrl(text: string): string {
  const apiUrl = apiUrlIn(text);
  if (apiUrl === undefined)
    throw usageError(
      'the gateway URL must be http://host:port or https://host, with nothing after its path',
      `For example: ${DEFAULT_URL}`,
    );
  return apiUrl;
}

/** True when a key sent there can be read on the way. */
export function isSentInClear(apiUrl: string): boolean {
  const { protocol, hostname } = new URL(apiUrl);
  return protocol === 'http:' && !isLoopback(hostname);
}
