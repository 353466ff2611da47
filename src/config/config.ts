/** The whole configuration as one table: its variables, how each is read, and what it means. */
import { natsServers } from '../bus/nats-servers.ts';
import { mostOpenFiles, usableCores, usableMemoryMib } from '../system/machine.ts';
import {
  address,
  baseUrl,
  bootstrapKey,
  databaseUrl,
  list,
  networks,
  nodeName,
  oneOf,
  orgName,
  origins,
  switchedOn,
  text,
  wholeNumber,
  witnesses,
} from './parse.ts';
import { TELEMETRY_VARIABLES } from './telemetry.ts';
import { count, countOf, secret, type Variable, variable } from './variable.ts';

/** The host as written in a URL or before a port. */
export const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host);

const MAX_THREADS = 64;
const defaultThreads = String(Math.min(MAX_THREADS, Math.max(1, usableCores() - 1)));
/** Up to this many, waking another thread costs a check more than the doors do (ARCHITECTURE.md, Between threads). */
const FEW_CORES = 2;
const threads = (meaning: string): Variable<number> => ({
  ...count(1, MAX_THREADS, defaultThreads, meaning),
  fallbackRule: `cores − 1, from 1 to ${MAX_THREADS}`,
});

/**
 * Measured: the half of these that one org may take fits into any container of 256 MiB or more, with an agent of its
 * own for each operation.
 */
const OPS_PER_MIB = 1_000;
const AGENTS_PER_MIB = 300;
/** About 2.5 KB each, with what the store keeps of it in memory. */
const BUDGETS_PER_MIB = 50;
const MAX_HELD = 16_000_000;
const memoryMib = usableMemoryMib();
/** Without the tables of a language, which take longer to load than all else here. */
const inEnglish = (number: number): string => String(number).replace(/\B(?=(?:\d{3})+$)/g, ',');
const fitting = (perMib: number, most: number, meaning: string): Variable<number> => ({
  ...count(1, MAX_HELD, String(Math.min(most, perMib * memoryMib)), meaning),
  fallbackRule: `${inEnglish(perMib)} for each MiB of memory, at most ${inEnglish(most)}`,
});

/** Measured: one takes about 30 KiB, and needs no credential. */
const GRPC_CONNECTIONS_PER_MIB = 4;
/** The rest is for HTTP, where idle connections end soon, and for files and the database. */
const GRPC_PART_OF_FILES = 1 / 8;
const MAX_GRPC_CONNECTIONS = 10_000;
const grpcConnections = Math.max(
  1,
  Math.floor(
    Math.min(MAX_GRPC_CONNECTIONS, GRPC_CONNECTIONS_PER_MIB * memoryMib, GRPC_PART_OF_FILES * mostOpenFiles()),
  ),
);

/** The rows of docs/configuration.md, in its order. */
export const VARIABLES = {
  SVC_HTTP_ADDR: variable(
    address,
    'host:port',
    '127.0.0.1:8080',
    'address of the HTTP API, WebSocket, Connect and dashboard; port 0: any free port',
  ),
  SVC_GRPC_ADDR: variable(address, 'host:port', '127.0.0.1:50051', 'address of the gRPC server; port 0: any free port'),
  SVC_TLS_CERT: variable(
    text,
    'a path',
    undefined,
    'certificate (PEM, with those between it and its authority): HTTP and gRPC are served over TLS alone, HTTP by node:https; read again when it changes',
  ),
  SVC_TLS_KEY: variable(text, 'a path', undefined, 'private key (PEM) of `SVC_TLS_CERT`, without a password'),
  SVC_TLS_CLIENT_CA: variable(
    text,
    'a path',
    undefined,
    'certificates (PEM) of the authorities that sign for clients: connections without such a certificate are refused, those of browsers and health checks too',
  ),
  SVC_DATA_DIR: variable(
    text,
    'a path',
    './data',
    'directory for keys, registrations, the audit log and budgets; created with mode 0700',
  ),
  SVC_DATABASE_URL: secret(
    variable(
      (value) => (value === 'embedded' ? value : databaseUrl(value)),
      'postgres://user:password@host:port/database, with special characters of the password percent-encoded (# as %23, / as %2F, @ as %40, % as %25), or the word embedded',
      undefined,
      'account store; `embedded`: a PostgreSQL that the gateway runs in its data directory; unset: no accounts',
    ),
  ),
  SVC_DATABASE_POOL: count(
    1,
    100,
    '10',
    "maximum connections to PostgreSQL; the total across all gateways must stay below `max_connections` and, in session mode, below PgBouncer's pool size",
  ),
  SVC_CLUSTER: variable(
    oneOf('on'),
    '`on`, or unset',
    undefined,
    '`on`: gateways on the same `SVC_DATABASE_URL` act as one, see docs/cluster.md',
  ),
  SVC_NODE_NAME: {
    ...variable(
      nodeName,
      '1 to 64 letters, digits, dots, dashes or underscores',
      undefined,
      'name of this gateway in its cluster',
    ),
    fallbackRule: 'made from the host name, and kept in the data directory',
  },
  SVC_BUS_URL: secret(
    variable(
      natsServers,
      'nats://user:password@host:port or tls://…, several separated by commas, with special characters of the password percent-encoded (# as %23, / as %2F, @ as %40, % as %25)',
      undefined,
      'NATS servers that carry the messages between the gateways of a cluster, as `nats://user:password@host:4222` or encrypted as `tls://…`, several separated by commas; a name without a password is a token; unset: PostgreSQL carries them',
    ),
  ),
  SVC_BUS_CA_FILE: variable(
    text,
    'a path',
    undefined,
    'certificates (PEM) of the authorities that sign for the servers of `SVC_BUS_URL`; unset: those that Node.js knows',
  ),
  SVC_BUS_CERT_FILE: variable(
    text,
    'a path',
    undefined,
    'certificate (PEM) of this gateway for servers of `SVC_BUS_URL` that verify one',
  ),
  SVC_BUS_KEY_FILE: variable(text, 'a path', undefined, 'private key (PEM) of the certificate in `SVC_BUS_CERT_FILE`'),
  SVC_BUS_CREDENTIALS_FILE: variable(
    text,
    'a path',
    undefined,
    'credentials (`.creds`) for the servers of `SVC_BUS_URL`, in place of a user and a password there',
  ),
  SVC_CLUSTER_ON_OUTAGE: variable(
    oneOf('serve', 'deny'),
    '`serve` or `deny`',
    'serve',
    '`serve`: cut off from the database, a gateway goes on with what it knows and has been granted; `deny`: 5 s after it last reached the database, it denies every check',
  ),
  SVC_CLUSTER_SLICE_SECS: countOf(
    'seconds',
    1,
    600,
    '5',
    'how many seconds of spending a gateway of a cluster may hold; more survives longer outages, and strands more when a gateway dies',
  ),
  SVC_POLICY_PATH: variable(
    text,
    'a path',
    undefined,
    'YAML policy file, or a folder of them; unset: the starter policy',
  ),
  SVC_PRICES_PATH: variable(
    text,
    'a path',
    undefined,
    'YAML file of prices per million tokens, over those of the package; read again when it changes',
  ),
  SVC_UNKNOWN_MODEL: variable(
    oneOf('refuse', 'highest'),
    '`refuse` or `highest`',
    'refuse',
    'tokens of a model without a price: `refuse` (400 `unknown_model`), or `highest`: they cost what the dearest model asks',
  ),
  SVC_IO_THREADS: {
    ...count(
      0,
      MAX_THREADS,
      usableCores() <= FEW_CORES ? '0' : defaultThreads,
      'threads that serve HTTP and gRPC; `0`: the main thread serves them itself',
    ),
    fallbackRule: `with ${FEW_CORES} cores or fewer 0, else cores − 1, at most ${MAX_THREADS}`,
  },
  SVC_HTTP_ENGINE: variable(
    oneOf('auto', 'native', 'node'),
    '`auto`, `native` or `node`',
    'auto',
    'what serves HTTP: `native` (uWebSockets.js, the fastest; the start fails where it does not load), `node` (node:http), or `auto`: the first of them that loads',
  ),
  SVC_CRYPTO_THREADS: threads('threads that hash passwords'),
  SVC_BOOTSTRAP_API_KEY: secret(
    variable(
      bootstrapKey,
      '32 to 256 visible ASCII characters',
      undefined,
      'the admin API key; changing it revokes the old one for good; unset: one is generated on first start',
    ),
  ),
  SVC_JWT_PRIVATE_KEY: secret(
    variable(
      text,
      'an Ed25519 key in PEM format, or the path of one',
      undefined,
      'Ed25519 key that signs tokens: PEM, or the path of a PEM file; unset: one is generated on first start',
    ),
  ),
  SVC_JWT_ISSUER: variable(text, 'text', 'svc-gateway', '`iss` claim of tokens'),
  SVC_JWT_AUDIENCE: variable(text, 'text', 'svc-gateway', '`aud` claim of tokens'),
  SVC_PUBLIC_URL: variable(
    baseUrl,
    'http://… or https://…, without a query',
    undefined,
    'URL at which people reach the gateway: the base of links in e-mails, and an accepted Origin',
  ),
  SVC_CORS_ORIGINS: variable(
    origins,
    'origins as browsers send them, such as https://board.example.com: without path, trailing slash or wildcard; separated by commas',
    '',
    'comma-separated origins whose pages may call the HTTP API; unset: none',
  ),
  SVC_TRUSTED_PROXIES: variable(
    networks,
    'addresses or networks such as 10.0.0.0/8, separated by commas',
    '',
    'comma-separated addresses or networks of proxies whose `X-Forwarded-For` is trusted on HTTP; unset: all clients behind a proxy count as one address',
  ),
  SVC_AUTH_OPEN_REGISTRATION: variable(
    switchedOn,
    '1, true or yes',
    '',
    '`1`, `true` or `yes`: anyone who reaches the gateway may register, with the role `developer` in every org, or in that of `SVC_AUTH_OPEN_REGISTRATION_ORG`',
  ),
  SVC_AUTH_OPEN_REGISTRATION_ORG: variable(
    orgName,
    'the name of an org',
    undefined,
    'org that accounts made by open registration are bound to; unset: none, so they may read and write in all orgs',
  ),
  SVC_AUTH_FIRST_ACCOUNT: {
    ...variable(
      oneOf('open', 'setup'),
      '`open` or `setup`',
      undefined,
      '`open`: the first to register becomes the owner; `setup`: only with the setup link that is printed at the start, or with the admin API key as bearer',
    ),
    fallbackRule: '`open` if HTTP listens on a loopback address, else `setup`',
  },
  SVC_SMTP_HOST: variable(
    text,
    'a host name',
    undefined,
    'SMTP relay; unset: e-mails are not sent, only logged, without their text',
  ),
  SVC_SMTP_PORT: variable(
    wholeNumber(1, 65_535),
    'a port from 1 to 65535',
    '587',
    'relay port; 465: implicit TLS; any other: STARTTLS, required if credentials are set',
  ),
  SVC_SMTP_USER: variable(text, 'text', undefined, 'relay user name'),
  SVC_SMTP_PASS: secret(variable(text, 'text', undefined, 'relay password')),
  SVC_SMTP_FROM: variable(
    text,
    'an e-mail address',
    'no-reply@localhost',
    'From address of e-mails; in production, use a sender on a verified domain',
  ),
  // By default what OWASP's Password Storage Cheat Sheet recommends for argon2id.
  SVC_ARGON2_MEMORY_KIB: countOf('kibibytes', 8, 4_194_304, '19456', 'memory per password hash, in KiB'),
  SVC_ARGON2_ITERATIONS: count(1, 100, '2', 'passes per password hash'),
  SVC_ARGON2_PARALLELISM: count(1, 16, '1', 'lanes per password hash'),
  SVC_CRYPTO_QUEUE: count(
    1,
    100_000,
    '64',
    'maximum queued password hashes, at most half for one address (IPv6: one /64); beyond that, 503',
  ),
  UV_THREADPOOL_SIZE: count(
    1,
    1024,
    '4',
    'Node.js worker pool size, shared by password hashing and files; two threads are reserved for files',
  ),
  SVC_RATE_LIMIT_API: countOf(
    'requests a minute',
    0,
    1_000_000,
    '6000',
    'HTTP API requests per minute per credential, or per address (IPv6: per /64) without a valid one; agent registrations and removals over gRPC and Connect count too; 0: no limit',
  ),
  SVC_RATE_LIMIT_AUTH: countOf(
    'requests a minute',
    0,
    1_000_000,
    '600',
    'requests per minute per address (IPv6: per /64) on the public auth routes, except exchanges of a valid API key; 0: no limit',
  ),
  SVC_RATE_LIMIT_CHECK: countOf(
    'requests a minute',
    0,
    100_000_000,
    '0',
    'checks per minute per known credential, and per network address (IPv6: per /64) without one; 0: no limit',
  ),
  SVC_RATE_LIMIT_UNIDENTIFIED: countOf(
    'checks a minute',
    0,
    1_000_000,
    '60',
    'denied checks without a known credential that are recorded one by one, per minute and network address (IPv6: per /64), and ten times as many in all; beyond that they are denied as well, and one entry a minute has their number; 0: no limit',
  ),
  SVC_OPS_TTL_SECS: countOf('seconds', 1, 86_400, '60', 'how long a finished operation stays readable'),
  SVC_OPS_SWEEP_SECS: countOf('seconds', 1, 3_600, '10', 'how often finished operations are removed'),
  SVC_MAX_OPS: fitting(
    OPS_PER_MIB,
    4_000_000,
    'maximum operations in the registry, including ended and denied ones, which leave after `SVC_OPS_TTL_SECS`; beyond that, new ones are refused until others leave',
  ),
  SVC_MAX_ORG_OPS: fitting(OPS_PER_MIB / 2, 2_000_000, 'the same for each org'),
  SVC_MAX_AGENTS: fitting(
    AGENTS_PER_MIB,
    1_000_000,
    'maximum registered agents; beyond that, new ones are refused until others are deregistered',
  ),
  SVC_MAX_ORG_AGENTS: fitting(AGENTS_PER_MIB / 2, 500_000, 'the same for each org'),
  SVC_MAX_ORG_BUDGETS: fitting(
    BUDGETS_PER_MIB,
    500_000,
    'how many teams and agents of one org may have spend of their own counted, beside its registered agents, and four times as many of all orgs together; what others spend counts in the tiers above',
  ),
  SVC_MAX_LIMIT_STATES: count(
    1,
    10_000_000,
    '1000000',
    'how many sessions, lineages, agents, teams and orgs limits of policies may count for, each once for each limit; beyond it, those unseen so far are denied with cause `limit`',
  ),
  SVC_SESSION_TTL_SECS: count(
    60,
    31 * 86_400,
    '86400',
    'after how many seconds without use a session or lineage has ended, and a limit of it counts anew',
  ),
  SVC_MAX_ORG_API_KEYS: count(
    1,
    1_000_000,
    '10000',
    'how many valid API keys an org may have; beyond that, 409. Revoked and expired keys count for 30 days, against a limit four times as high (at least 1,000)',
  ),
  SVC_MAX_PENDING: count(
    1,
    1_000_000,
    '20000',
    'how many requests may wait per I/O thread before new ones get 503 (gRPC and Connect: `resource_exhausted`); no org, and no kind of caller, may take more than half',
  ),
  SVC_MAX_STREAMS: count(
    0,
    1_000_000,
    '10000',
    'maximum WebSocket streams per I/O thread, at most half from one org; beyond that, 503',
  ),
  SVC_MAX_GRPC_CONNECTIONS: {
    ...count(
      1,
      1_000_000,
      String(grpcConnections),
      'maximum gRPC connections per I/O thread; when nearly as many are open, those without calls are closed for others, and new ones only where there are none',
    ),
    fallbackRule: `${GRPC_CONNECTIONS_PER_MIB} for each MiB of memory, at most an eighth of the files that the process may have open and ${inEnglish(MAX_GRPC_CONNECTIONS)}`,
  },
  SVC_MAX_GRPC_STREAMS: count(
    1,
    1_000_000,
    '40000',
    'maximum gRPC streams per I/O thread, at most an eighth of them, and 1,024 from one address, from callers that have not shown a valid credential yet; beyond that, `resource_exhausted`',
  ),
  SVC_AUDIT_FSYNC: variable(
    oneOf('always', 'never'),
    '`always` or `never`',
    'never',
    '`always`: entries also survive power loss, at the cost of one disk flush per batch',
  ),
  SVC_WEBHOOKS_ALLOW_PRIVATE: variable(
    switchedOn,
    '1 to allow it',
    '',
    'webhooks may call this machine and its network: loopback, link-local and private addresses; `1`: allowed',
  ),
  SVC_AUDIT_ON_FAILURE: variable(
    oneOf('deny', 'allow'),
    '`deny` or `allow`',
    'deny',
    'while the audit log cannot be written: `deny` (safe): nothing happens unrecorded; `allow`: checks, operations and usage go on unrecorded; keys, tokens, accounts and policies cannot be changed (503)',
  ),
  SVC_AUDIT_REDACT: variable(
    list,
    'keys, separated by commas',
    '',
    'comma-separated words, in addition to the built-in ones: the value of any attribute whose key ends in one of them is not logged',
  ),
  SVC_AUDIT_RETENTION_DAYS: countOf(
    'days',
    0,
    36_500,
    '0',
    'delete audit segments older than this, and none that is younger, whatever their size; 0: never',
  ),
  SVC_AUDIT_RETENTION_MIB: countOf(
    'mebibytes',
    0,
    1_000_000_000,
    '0',
    'above this total size, delete the oldest entries of those orgs that have more than an equal share of it; 0: never. With `SVC_AUDIT_RETENTION_DAYS` it only warns',
  ),
  SVC_AUDIT_WITNESS: variable(
    witnesses,
    'URLs of file:, http:, https:, syslog:, syslog+tcp: or syslog+tls:, separated by commas, without a user in them',
    '',
    'comma-separated URLs of where each checkpoint is kept outside this disk, so that a cut or rewritten log is noticed: `file:///mnt/other/witness.ndjson`, `https://…` (POST of JSON; another gateway takes it at `/api/v1/audit/witness`), `syslog://host` (UDP), `syslog+tcp://…`, `syslog+tls://…`',
  ),
  SVC_AUDIT_WITNESS_TOKEN: secret(variable(text, 'a token', undefined, 'bearer token for witnesses over HTTP')),
  SVC_AUDIT_SINKS: variable(
    text,
    'a path',
    undefined,
    'YAML file of where each entry of the audit log is sent as well: files, HTTP, syslog, OTLP; see docs/audit-sinks.md; unset: nowhere',
  ),
  SVC_AUDIT_CHECKPOINT_MINUTES: countOf('minutes', 1, 1_440, '10', 'how often the head of the audit chain is signed'),
  SVC_BODY_TIMEOUT_SECS: countOf(
    'seconds',
    1,
    3_600,
    '30',
    'how long a client may take to finish sending an HTTP body or gRPC message, or leave a gRPC answer unread, or keep a gRPC stream open without a valid credential, before the connection or call is ended',
  ),
  SVC_SHUTDOWN_SECS: countOf(
    'seconds',
    1,
    600,
    '7',
    'how long a shutdown waits for requests in flight and e-mails being sent; the process then exits within 3 s',
  ),
  ...TELEMETRY_VARIABLES,
  SVC_LOG_LEVEL: variable(
    oneOf('debug', 'info', 'warn', 'error', 'silent'),
    'debug, info, warn, error or silent',
    'info',
    'minimum level logged to standard error: `debug`, `info`, `warn`, `error` or `silent`; JSON lines, or text on a terminal',
  ),
} as const;

export type VariableName = keyof typeof VARIABLES;
export type Config = { readonly [N in VariableName]: (typeof VARIABLES)[N] extends Variable<infer T> ? T : never };
