/** The file of `svc mcp proxy`: where it listens, and the servers behind it. */
import { readFile } from 'node:fs/promises';
import { parseDocument } from 'yaml';
import { WayError } from '../client/faults.ts';
import { isMapping } from '../core/base/mapping.ts';
import { messageOf } from '../core/base/text.ts';
import type { Fields } from './json-rpc.ts';
import { isServerName, SERVER_NAME_RULE } from './subjects.ts';

export type UpstreamSetting =
  | { readonly name: string; readonly url: URL; readonly headers: Readonly<Record<string, string>> }
  | { readonly name: string; readonly command: readonly string[]; readonly env: Readonly<Record<string, string>> };

export type ProxyConfig = {
  readonly host: string;
  readonly port: number;
  /** Its public address, without a slash at its end; undefined: the address it listens on. */
  readonly publicUrl: string | undefined;
  /** Web pages of these may call it. */
  readonly origins: readonly string[];
  /** The audience that access tokens must name. */
  readonly audience: string;
  readonly authorizationServers: readonly string[];
  /** How many servers with a command run at once. */
  readonly limits: { readonly processes?: number; readonly processesOfCredential?: number };
  readonly upstreams: readonly UpstreamSetting[];
};

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_LISTEN = '127.0.0.1:8090';
const MEMBERS = [
  'listen',
  'public_url',
  'origins',
  'audience',
  'authorization_servers',
  'max_processes',
  'max_processes_per_credential',
  'upstreams',
];

export async function readProxyConfig(path: string, env: Environment): Promise<ProxyConfig> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new WayError('setting', `cannot read ${path}: ${messageOf(error)}`, 'It is the YAML file of svc mcp proxy.');
  }
  return proxyConfigIn(text, path, env);
}

export function proxyConfigIn(text: string, path: string, env: Environment): ProxyConfig {
  const document = parseDocument(text);
  const [mistake] = document.errors;
  const wrong = (problem: string): never => {
    throw new WayError('setting', `${path}: ${problem}`, 'See docs/mcp.md for an example.');
  };
  if (mistake !== undefined) wrong(mistake.message.split('\n')[0] ?? 'not YAML');
  const read: unknown = document.toJS({ maxAliasCount: 10 });
  if (!isMapping(read)) return wrong('it must be a mapping with listen and upstreams');
  const stray = Object.keys(read).find((name) => !MEMBERS.includes(name));
  if (stray !== undefined) wrong(`unknown setting ${stray}; known are ${MEMBERS.join(', ')}`);
  const listen = /^(.+):(\d{1,5})$/.exec(String(read.listen ?? DEFAULT_LISTEN));
  if (listen === null || Number(listen[2]) > 65_535) return wrong('listen must be host:port, such as 127.0.0.1:8090');
  const { upstreams, public_url: publicUrl } = read;
  if (!Array.isArray(upstreams) || upstreams.length === 0) return wrong('upstreams must be a list of servers');
  if (publicUrl !== undefined && !(typeof publicUrl === 'string' && /^https?:\/\/[^\s?#]+$/.test(publicUrl)))
    return wrong('public_url must be the http or https address that clients use');
  const settings = upstreams.map((upstream: unknown, n) => upstreamIn(upstream, `upstreams[${n}]`, env, wrong));
  const twice = settings.find(({ name }, n) => settings.findIndex((other) => other.name === name) !== n);
  if (twice !== undefined) wrong(`two upstreams are named ${twice.name}`);
  return {
    host: (listen[1] ?? '').replace(/^\[(.*)\]$/, '$1'),
    port: Number(listen[2]),
    publicUrl: typeof publicUrl === 'string' ? publicUrl.replace(/\/+$/, '') : undefined,
    origins: textsIn(read.origins, 'origins', wrong),
    audience: typeof read.audience === 'string' ? read.audience : 'svc-gateway',
    authorizationServers: textsIn(read.authorization_servers, 'authorization_servers', wrong),
    limits: {
      ...countIn(read, 'max_processes', 'processes', wrong),
      ...countIn(read, 'max_processes_per_credential', 'processesOfCredential', wrong),
    },
    upstreams: settings,
  };
}

type Wrong = (problem: string) => never;

function upstreamIn(value: unknown, at: string, env: Environment, wrong: Wrong): UpstreamSetting {
  if (!isMapping(value)) return wrong(`${at} must be a mapping with a name and a url or command`);
  const { name, url, command } = value;
  if (typeof name !== 'string' || !isServerName(name)) return wrong(`${at}.name: ${SERVER_NAME_RULE}`);
  if ((url === undefined) === (command === undefined)) return wrong(`${at} (${name}) must have a url or a command`);
  const known = url === undefined ? ['name', 'command', 'env'] : ['name', 'url', 'headers'];
  const stray = Object.keys(value).find((member) => !known.includes(member));
  if (stray !== undefined)
    return wrong(`${at} (${name}) has an unknown setting ${stray}; known are ${known.join(', ')}`);
  if (url !== undefined) {
    if (typeof url !== 'string' || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      return wrong(`${at}.url (${name}) must be an http or https address`);
    return { name, url: new URL(url), headers: pairsIn(value.headers, `${at}.headers`, env, wrong) };
  }
  const words = typeof command === 'string' ? command.split(/\s+/).filter((word) => word !== '') : command;
  if (!Array.isArray(words) || words.length === 0 || !words.every((word) => typeof word === 'string'))
    return wrong(`${at}.command (${name}) must be a list of words, such as [npx, -y, some-server]`);
  return { name, command: words, env: pairsIn(value.env, `${at}.env`, env, wrong) };
}

/** `${NAME}` in a value is that variable of the environment: secrets need not be in the file. */
function pairsIn(value: unknown, at: string, env: Environment, wrong: Wrong): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  if (!isMapping(value)) return wrong(`${at} must be a mapping of names to texts`);
  return Object.fromEntries(
    Object.entries(value as Fields).map(([name, text]) => {
      if (typeof text !== 'string' && typeof text !== 'number') return wrong(`${at}.${name} must be a text`);
      return [
        name,
        String(text).replaceAll(/\$\{(\w+)\}/g, (_, variable: string) => {
          const found = env[variable];
          return found === undefined ? wrong(`${at}.${name} names ${variable}, which is not set`) : found;
        }),
      ];
    }),
  );
}

function countIn<N extends string>(
  read: Fields,
  member: string,
  name: N,
  wrong: Wrong,
): { readonly [_ in N]?: number } {
  const count = read[member];
  if (count === undefined) return {};
  if (!Number.isSafeInteger(count) || Number(count) < 1) return wrong(`${member} must be a whole number from 1 on`);
  return { [name]: Number(count) } as { readonly [_ in N]?: number };
}

function textsIn(value: unknown, at: string, wrong: Wrong): readonly string[] {
  if (value === undefined) return [];
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
    ? value
    : wrong(`${at} must be a list of texts`);
}
