/** Reads the configuration from the environment, and names every mistake in it. */
import { fail, ok, type Result } from '../core/base/result.ts';
import { type Config, VARIABLES, type VariableName } from './config.ts';
import type { Variable } from './variable.ts';

export type ConfigFault = { readonly problems: readonly string[] };

/** Reads the environment once. The fault names every mistake. An empty variable counts as unset. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Result<Config, ConfigFault> {
  const problems: string[] = [];
  const config: Partial<Record<VariableName, unknown>> = {};
  for (const [name, row] of Object.entries(VARIABLES) as [VariableName, Variable<unknown>][]) {
    const given = env[name] === '' ? undefined : env[name];
    const source = given ?? row.fallback;
    const value = source === undefined ? undefined : row.parse(source);
    if (source !== undefined && value === undefined)
      problems.push(`${name} must be ${row.expects}${row.isSecret === true ? '' : `, not ${JSON.stringify(source)}`}`);
    config[name] = value;
  }
  if (problems.length > 0) return fail({ problems });
  const conflicts = conflictsIn(config as Config);
  return conflicts.length === 0 ? ok(config as Config) : fail({ problems: conflicts });
}

/** The least memory of one lane of argon2. */
const KIB_PER_LANE = 8;
/**
 * `::` listens on both protocols, `0.0.0.0` on IPv4 only. Names are resolved later, at the start (`probeAddresses`).
 */
const covers = (host: string, other: string): boolean =>
  host === other || host === '::' || (host === '0.0.0.0' && !/^[^.]*:[^.]*$/.test(other));

/** Settings that are valid on their own but contradict each other. */
function conflictsIn({
  SVC_HTTP_ADDR: http,
  SVC_GRPC_ADDR: grpc,
  SVC_ARGON2_MEMORY_KIB: memoryKib,
  SVC_ARGON2_PARALLELISM: lanes,
  ...config
}: Config): readonly string[] {
  const conflicts: string[] = [];
  const meet = covers(http.host, grpc.host) || covers(grpc.host, http.host);
  if (http.port !== 0 && http.port === grpc.port && meet)
    conflicts.push(`SVC_GRPC_ADDR must not use the same port as SVC_HTTP_ADDR (${grpc.port})`);
  if (memoryKib < KIB_PER_LANE * lanes)
    conflicts.push(
      `SVC_ARGON2_MEMORY_KIB must be at least ${KIB_PER_LANE * lanes}, which is ${KIB_PER_LANE} times SVC_ARGON2_PARALLELISM, not "${memoryKib}"`,
    );
  if (config.SVC_CLUSTER === 'on') {
    if (config.SVC_DATABASE_URL === undefined || config.SVC_DATABASE_URL === 'embedded')
      conflicts.push(
        'SVC_CLUSTER requires SVC_DATABASE_URL to be a PostgreSQL that all gateways reach, not `embedded`',
      );
    if (config.SVC_JWT_PRIVATE_KEY === undefined)
      conflicts.push('SVC_CLUSTER requires SVC_JWT_PRIVATE_KEY, the same at every gateway');
  }
  return [...conflicts, ...busConflictsIn(config), ...tlsConflictsIn(config)];
}

function busConflictsIn({
  SVC_CLUSTER: cluster,
  SVC_BUS_URL: servers,
  SVC_BUS_CA_FILE: caFile,
  SVC_BUS_CERT_FILE: certificateFile,
  SVC_BUS_KEY_FILE: keyFile,
  SVC_BUS_CREDENTIALS_FILE: credentialsFile,
}: Pick<
  Config,
  'SVC_CLUSTER' | 'SVC_BUS_URL' | `SVC_BUS_${'CA' | 'CERT' | 'KEY' | 'CREDENTIALS'}_FILE`
>): readonly string[] {
  const conflicts: string[] = [];
  const [first] = servers ?? [];
  if (first !== undefined && cluster === undefined)
    conflicts.push('SVC_BUS_URL requires SVC_CLUSTER=on; a gateway alone has nobody to send messages to');
  if (caFile !== undefined && first?.isTls !== true)
    conflicts.push('SVC_BUS_CA_FILE requires SVC_BUS_URL with tls://, because nothing else is encrypted');
  if ((certificateFile === undefined) !== (keyFile === undefined))
    conflicts.push('SVC_BUS_CERT_FILE and SVC_BUS_KEY_FILE require each other: a certificate and its private key');
  else if (certificateFile !== undefined && first?.isTls !== true)
    conflicts.push('SVC_BUS_CERT_FILE requires SVC_BUS_URL with tls://, because nothing else is encrypted');
  if (credentialsFile !== undefined && (first === undefined || first.user !== undefined || first.token !== undefined))
    conflicts.push('SVC_BUS_CREDENTIALS_FILE requires SVC_BUS_URL, without credentials in it');
  return conflicts;
}

function tlsConflictsIn({
  SVC_TLS_CERT: cert,
  SVC_TLS_KEY: key,
  SVC_TLS_CLIENT_CA: clientCa,
  SVC_HTTP_ENGINE: engine,
}: Pick<Config, 'SVC_TLS_CERT' | 'SVC_TLS_KEY' | 'SVC_TLS_CLIENT_CA' | 'SVC_HTTP_ENGINE'>): readonly string[] {
  const conflicts: string[] = [];
  if ((cert === undefined) !== (key === undefined))
    conflicts.push('SVC_TLS_CERT and SVC_TLS_KEY must be set together, or neither');
  if (clientCa !== undefined && cert === undefined)
    conflicts.push('SVC_TLS_CLIENT_CA requires SVC_TLS_CERT and SVC_TLS_KEY');
  if (cert !== undefined && engine === 'native')
    conflicts.push('SVC_HTTP_ENGINE must be auto or node with SVC_TLS_CERT; the native library does not serve TLS');
  return conflicts;
}

// These belong to the command line client, which may run in the same shell.
const CLIENT_PREFIX = 'SVC_CLI_';

/**
 * Variables that look like settings but are not, mostly by a typo. They do not keep the gateway from starting, because
 * container platforms set variables of this prefix for a service of this name.
 */
export const unknownVariables = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env).filter((name) => name.startsWith('SVC_') && !name.startsWith(CLIENT_PREFIX) && !(name in VARIABLES));
