/** The YAML file of `SVC_AUDIT_SINKS`. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { parseDocument } from 'yaml';
import { isSyslogStream } from '../audit-log/syslog.ts';
import { isMapping, type Mapping } from '../core/base/mapping.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { codeOf, messageOf } from '../core/base/text.ts';
import { urlTrouble } from '../webhooks/address.ts';
import { SINK_FORMATS, SINK_TYPES, type SinkFormat, type SinkSetting, type SinkTls } from './sink.ts';
import { readTls } from './tls.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Each says where in the file it is. Secrets are in none of them. */
type Problems = readonly string[];

const MAX_SINKS = 16;
const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const NAME_RULE = 'must be 1 to 63 lower-case letters, digits, dashes or underscores';
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** These are the gateway's own. */
const OWN_HEADERS = ['content-length', 'content-type', 'host', 'transfer-encoding', 'connection', 'user-agent'];
const MEMBERS: Readonly<Record<SinkSetting['type'], readonly string[]>> = {
  file: ['path'],
  http: ['url', 'headers', 'secret', 'tls'],
  syslog: ['url', 'tls'],
  otlp: ['url', 'headers', 'tls'],
};
const TLS_MEMBERS = ['ca', 'cert', 'key', 'servername'];

/** Relative paths in it begin where the file is. `${NAME}` in a header or a secret is that variable of `env`. */
export function readSinkFile(path: string, env: Environment): Result<readonly SinkSetting[], Problems> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    return fail([`cannot read ${path} of SVC_AUDIT_SINKS (${codeOf(error) ?? messageOf(error)})`]);
  }
  return sinksIn(text, path, env);
}

class Wrong extends Error {}
const wrong = (problem: string): never => {
  throw new Wrong(problem);
};

export function sinksIn(text: string, path: string, env: Environment): Result<readonly SinkSetting[], Problems> {
  const document = parseDocument(text);
  const [mistake] = document.errors;
  if (mistake !== undefined) return fail([`${path}: ${mistake.message.split('\n')[0] ?? 'is not YAML'}`]);
  const read: unknown = document.toJS({ maxAliasCount: 10 });
  if (!isMapping(read) || !Array.isArray(read.sinks) || Object.keys(read).length !== 1)
    return fail([`${path}: must be a mapping with the one member sinks, a list`]);
  if (read.sinks.length > MAX_SINKS) return fail([`${path}: has more than ${MAX_SINKS} sinks`]);
  const problems: string[] = [];
  const sinks: SinkSetting[] = [];
  for (const [n, value] of (read.sinks as unknown[]).entries()) {
    try {
      sinks.push(sinkIn(value, { env, folder: dirname(resolve(path)) }));
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      const name = isMapping(value) && typeof value.name === 'string' ? ` (${value.name})` : '';
      problems.push(`${path}: sinks[${n}]${name}: ${error.message}`);
    }
  }
  const twice = sinks.find(({ name }, n) => sinks.findIndex((other) => other.name === name) !== n);
  if (twice !== undefined) problems.push(`${path}: two sinks are named ${twice.name}`);
  return problems.length === 0 ? ok(sinks) : fail(problems);
}

type Place = { readonly env: Environment; readonly folder: string };

function sinkIn(value: unknown, place: Place): SinkSetting {
  if (!isMapping(value)) return wrong('must be a mapping with name and type');
  const { name, path, url } = value;
  if (typeof name !== 'string' || !NAME.test(name)) return wrong(`name ${NAME_RULE}`);
  const type = SINK_TYPES.find((each) => each === value.type) ?? wrong(`type must be one of ${SINK_TYPES.join(', ')}`);
  const format = formatOf(value.format);
  const known = ['name', 'type', 'format', ...MEMBERS[type]];
  const stray = Object.keys(value).find((member) => !known.includes(member));
  if (stray !== undefined) wrong(`unknown setting ${stray}; known for ${type} are ${known.join(', ')}`);
  if (type === 'file') {
    if (typeof path !== 'string' || path === '') return wrong('path must be the path of a file');
    return { name, type, format, path: resolve(place.folder, path) };
  }
  const tls = tlsIn(value.tls, place);
  if (type === 'syslog') {
    if (typeof url !== 'string' || !isSyslogStream(url))
      return wrong('url must be syslog+tls://host:port or, without encryption, syslog+tcp://host:port');
    return { name, type, format, url, tls };
  }
  const trouble = typeof url === 'string' ? urlTrouble(url, true) : 'is required';
  if (typeof url !== 'string' || trouble !== undefined) return wrong(`url ${trouble ?? ''}`);
  const headers = headersIn(value.headers, place);
  if (type === 'otlp') return { name, type, format, url: withLogsPath(url), headers, tls };
  return { name, type, format, url, headers, secret: secretIn(value.secret, place), tls };
}

/** As `OTEL_EXPORTER_OTLP_ENDPOINT` is read: a URL without a path is that of a collector. */
function withLogsPath(text: string): string {
  const url = new URL(text);
  if (url.pathname === '/') url.pathname = '/v1/logs';
  return url.href;
}

function formatOf(value: unknown): SinkFormat {
  if (value === undefined) return 'native';
  return SINK_FORMATS.find((each) => each === value) ?? wrong(`format must be one of ${SINK_FORMATS.join(', ')}`);
}

function headersIn(value: unknown, place: Place): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  if (!isMapping(value)) return wrong('headers must be a mapping of names to texts');
  return Object.fromEntries(
    Object.entries(value).map(([name, text]) => {
      if (!HEADER_NAME.test(name)) return wrong(`headers: ${JSON.stringify(name)} is no name of a header`);
      const lower = name.toLowerCase();
      if (OWN_HEADERS.includes(lower) || lower.startsWith('webhook-'))
        return wrong(`headers: ${name} is set by the gateway`);
      const filled = filledIn(text, `headers.${name}`, place.env);
      if (!/^[\t\x20-\x7e]*$/.test(filled)) return wrong(`headers.${name} must be printable ASCII text`);
      return [lower, filled];
    }),
  );
}

/** As Standard Webhooks writes it. */
function secretIn(value: unknown, { env }: Place): string | undefined {
  if (value === undefined || value === null) return undefined;
  const secret = filledIn(value, 'secret', env);
  const bytes = Buffer.from(secret.replace(/^whsec_/, ''), 'base64').length;
  if (!/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret) || bytes < 24 || bytes > 64)
    return wrong('secret must be whsec_ and 24 to 64 bytes in base64, as `openssl rand -base64 32` gives them');
  return secret;
}

function filledIn(text: unknown, at: string, env: Environment): string {
  if (typeof text !== 'string' && typeof text !== 'number') return wrong(`${at} must be a text`);
  return String(text).replaceAll(
    /\$\{(\w+)\}/g,
    (_, name: string) => env[name] ?? wrong(`${at} names ${name}, which is not set in the environment`),
  );
}

function tlsIn(value: unknown, { folder }: Place): SinkTls {
  if (value === undefined || value === null) return {};
  if (!isMapping(value)) return wrong('tls must be a mapping');
  const stray = Object.keys(value).find((member) => !TLS_MEMBERS.includes(member));
  if (stray !== undefined) wrong(`unknown setting tls.${stray}; known are ${TLS_MEMBERS.join(', ')}`);
  if ((value.cert === undefined) !== (value.key === undefined)) wrong('tls.cert and tls.key belong together');
  const text = (member: string): string | undefined => textIn(value, member);
  const path = (member: string): string | undefined => {
    const given = text(member);
    return given === undefined ? undefined : resolve(folder, given);
  };
  const tls: SinkTls = { ca: path('ca'), cert: path('cert'), key: path('key'), servername: text('servername') };
  try {
    createSecureContext(readTls(tls));
  } catch (error) {
    wrong(
      `tls: ${codeOf(error) === 'ENOENT' ? messageOf(error) : 'the files are not a certificate and its key in PEM format'}`,
    );
  }
  return tls;
}

function textIn(value: Mapping, member: string): string | undefined {
  const text = value[member];
  if (text === undefined) return undefined;
  return typeof text === 'string' && text !== '' ? text : wrong(`tls.${member} must be a text`);
}
