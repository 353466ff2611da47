/** `svc serve`: starts the gateway, says in a few lines how to reach it, and stops it in order on SIGTERM or SIGINT. */
import { constants } from 'node:os';
import { relative } from 'node:path';
import { type Gateway, startGateway } from '../app/main.ts';
import { bracketed, type Config } from '../config/config.ts';
import { readConfig, unknownVariables } from '../config/read.ts';
import { schemeOf } from '../config/urls.ts';
import { createLogger } from '../system/log.ts';
import { StartError } from '../system/start-error.ts';

/**
 * After the grace period of a shutdown. Work that still waits then, for a disk or a name server, waits in vain; 3 s are
 * promised.
 */
const LATEST_END_MS = 2_500;
/**
 * Signals within this time of the first are one: Ctrl-C reaches npm and the gateway, and npm passes its own on, a
 * millisecond later or, on a busy machine, many.
 */
const ONE_SIGNAL_MS = 1_000;
const ALIVE_MS = 60_000;
/** Node.js itself does not exit before they have ended. */
const LEFTOVERS = 'a name server or file that does not respond; everything is written';

/** Resolves with the exit status when the gateway has stopped. */
export async function serve(env: NodeJS.ProcessEnv): Promise<number> {
  const config = readConfig(env);
  if (!config.ok) {
    process.stderr.write(
      `svc-gateway cannot start:\n${config.fault.problems.map((problem) => `  ${problem}\n`).join('')}`,
    );
    return 2;
  }
  // A command ends when its output is closed; a gateway continues.
  for (const stream of [process.stdout, process.stderr])
    stream.removeAllListeners('error').on('error', () => undefined);
  const log = createLogger(config.value.SVC_LOG_LEVEL);
  for (const name of unknownVariables(env))
    log.warn('unknown setting ignored; docs/configuration.md lists all settings', { name });
  const ending = new AbortController();
  let waitsFor = 'the start';
  let unwrittenEntries = (): number => 0;
  const asked = untilAsked(ending, config.value.SVC_SHUTDOWN_SECS * 1000 + LATEST_END_MS, log.info, (signal) => {
    log.error(`shutdown after ${signal} timed out; exiting now`, {
      waitedFor: waitsFor,
      auditEntriesNotWritten: unwrittenEntries(),
    });
  });
  // Were a start or a stop to wait for what never comes, Node.js would end halfway with status 13, instead of the
  // time-out that says what it waits for.
  const alive = setInterval(() => undefined, ALIVE_MS);
  const starting = startGateway(config.value, log, ending.signal);
  process.on(
    'SIGHUP',
    () =>
      void starting
        .then((gateway) => gateway.reload('gateway'))
        .catch((error: unknown) => log.error('reload failed', { error: String(error) })),
  );
  try {
    const gateway = await starting;
    unwrittenEntries = gateway.unwrittenEntries;
    if (!ending.signal.aborted) process.stdout.write(welcome(config.value, gateway));
    const isReplaced = await Promise.race([asked.then(() => false), ended(gateway)]);
    await gateway.stop((step) => {
      waitsFor = step;
    });
    log.info('stopped');
    waitsFor = LEFTOVERS;
    return isReplaced ? 1 : 0;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    waitsFor = LEFTOVERS;
    process.stderr.write(`svc-gateway cannot start: ${error.message}\n`);
    return ending.signal.aborted ? 0 : 1;
  } finally {
    clearInterval(alive);
  }
}

/** Resolves with true when the gateway may not go on; else never. */
const ended = ({ replaced }: Gateway): Promise<boolean> => replaced?.then(() => true) ?? new Promise(() => undefined);

/**
 * Resolves once a signal asks the gateway to end in order, also while it starts. A later one ends it at once, and so
 * does the end of the time, after `onLate`. It dies of the signal: to exit would end the I/O threads with their sockets
 * open, and Node.js aborts the process for that, and it waits for what the system does not answer.
 */
function untilAsked(
  ending: AbortController,
  timeoutMs: number,
  log: (message: string) => void,
  onLate: (signal: NodeJS.Signals) => void,
): Promise<void> {
  return new Promise((resolve) => {
    let isAsked = false;
    const end = (signal: NodeJS.Signals): void => {
      if (isAsked) return;
      isAsked = true;
      setTimeout(() => {
        for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, dieOf);
      }, ONE_SIGNAL_MS).unref();
      log(`${signal} received; finishing requests in flight, then stopping`);
      setTimeout(() => {
        onLate(signal);
        dieOf(signal);
      }, timeoutMs).unref();
      ending.abort(new StartError(`stopped by ${signal}`));
      resolve();
    };
    // They stay for good: without a listener, even for a moment, a signal would end the process before it has done
    // anything.
    process.on('SIGTERM', end);
    process.on('SIGINT', end);
  });
}

function dieOf(signal: NodeJS.Signals): void {
  // Runs after the other exit handlers: by then the log is written, and the database is stopping. Until then no signal
  // may end it.
  process.once('exit', () => {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
  process.exit(128 + constants.signals[signal]); // process 1 of a container outlives its own signal
}

function welcome(config: Config, { listening, policies, setup, bootstrap }: Gateway): string {
  const http = `${schemeOf(config)}://${bracketed(config.SVC_HTTP_ADDR.host)}:${listening.httpPort}`;
  const { documents } = policies.policies.summary();
  const lines = [
    'svc-gateway is ready',
    `  HTTP       ${http}  (API, WebSocket, Connect, dashboard)`,
    `  gRPC       ${bracketed(config.SVC_GRPC_ADDR.host)}:${listening.grpcPort}`,
    `  data       ${shown(config.SVC_DATA_DIR)}`,
    `  policies   ${documents.length} from ${policySource(config, policies)}`,
    `  accounts   ${config.SVC_DATABASE_URL === undefined ? 'none (set SVC_DATABASE_URL to use e-mail and password)' : 'PostgreSQL'}`,
    `  HTTP core  ${listening.httpEngine}`,
  ];
  if (setup !== undefined) lines.push(...firstAccount(setup));
  lines.push(...policies.warnings.map((warning) => `  note       ${warning}`), '', ...firstStep(http, bootstrap));
  return `${lines.join('\n')}\n`;
}

/** The link is shown here and nowhere else, and works until the first account is made or the gateway ends. */
const firstAccount = ({ link }: NonNullable<Gateway['setup']>): readonly string[] =>
  link === undefined
    ? ['  setup      the first to register becomes the owner (SVC_AUTH_FIRST_ACCOUNT)']
    : [
        `  setup      to make the owner account, open ${link}`,
        '             or register with the admin API key as bearer',
      ];

function policySource(
  { SVC_CLUSTER, SVC_POLICY_PATH: path }: Config,
  { policies, files }: Gateway['policies'],
): string {
  // The files are only the first set.
  if (SVC_CLUSTER !== undefined) return `what is published to the cluster (version ${policies.version})`;
  if (path === undefined) return 'the starter policy';
  return (files.length === 0 ? [path] : files).map(shown).join(', ');
}

/** The first key is shown here and nowhere else. */
function firstStep(http: string, bootstrap: Gateway['bootstrap']): readonly string[] {
  switch (bootstrap.kind) {
    case 'minted':
      return [
        'This is the admin API key, shown only once:',
        `  ${bootstrap.key}`,
        '',
        'Next, in another terminal, register an agent:',
        `  export ADMIN_KEY=${bootstrap.key}`,
        `  curl ${http}/svc.governance.v1.AgentService/RegisterAgent \\`,
        '    -H "Authorization: Bearer $ADMIN_KEY" -H "Content-Type: application/json" \\',
        `    -d '{"agent":{"orgId":"acme","teamId":"search","agentId":"crawler"},"credentialToken":"crawler-secret-of-at-least-32-characters"}'`,
        '',
      ];
    case 'set-from-environment':
      return ['The admin API key is the one in SVC_BOOTSTRAP_API_KEY.', ''];
    case 'environment-key-dead':
      return ['The key in SVC_BOOTSTRAP_API_KEY was revoked or has expired; set another one.', ''];
    case 'unchanged':
      return [];
  }
}

/** Paths below the working directory are shown from there. */
function shown(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere === '' || fromHere.startsWith('..') ? path : fromHere;
}
