/** Puts the gateway together, starts it, and takes it apart again. */

import type { Refreshes } from '../cluster/replicas.ts';
import { newRun } from '../cluster/run.ts';
import type { Config } from '../config/config.ts';
import { recordSettings } from '../config/recorded.ts';
import { publicUrlOf } from '../config/urls.ts';
import { operatorOrders } from '../console/operator.ts';
import { serveConsole } from '../console/orders.ts';
import { ok } from '../core/base/result.ts';
import { messageOf } from '../core/base/text.ts';
import { explain } from '../core/fault.ts';
import type { Bootstrap } from '../credentials/api-key-start.ts';
import type { SigningKeys } from '../credentials/signing-keys.ts';
import type { LoadedPolicies } from '../policy-files/policy-file.ts';
import { missingParts, type OpenedParts } from '../stores/embedded/missing-parts.ts';
import { startErrorOf } from '../stores/embedded/start.ts';
import { StartWait } from '../stores/postgres/start-wait.ts';
import { Closers } from '../system/closers.ts';
import type { Logger } from '../system/log.ts';
import { orStartError } from '../system/start-error.ts';
import { reloadChanged } from '../threads/main/policy-keeper.ts';
import type { Listening } from '../threads/supervisor.ts';
import { startTelemetry } from '../threads/telemetry/start.ts';
import type { Cluster } from './start-cluster.ts';
import type { StartContext } from './start-context.ts';
import { startDecisions } from './start-decisions.ts';
import { type Identity, openIdentity, startIdentity } from './start-identity.ts';
import { openResources, type Resources } from './start-resources.ts';
import { createSwitchboard, type Parts } from './start-switchboard.ts';
import { createThreads, openAuditLog, openTls, type Threads } from './start-threads.ts';
import { followClock, startTimers } from './timers.ts';

/** `link` is where the operator makes it; undefined: the first to register becomes the owner. */
type FirstAccount = { readonly link: string | undefined };

export type Gateway = {
  readonly listening: Listening;
  readonly policies: LoadedPolicies;
  /** How the first account is made, as long as there is none; undefined: there is one, or no account store. */
  readonly setup: FirstAccount | undefined;
  /** The start's action on the first API key. */
  readonly bootstrap: Bootstrap;
  /**
   * Reads policies, signing keys and the files of TLS again. Where one cannot be read or is wrong, that is logged and
   * the old one stays in force.
   */
  reload(actor: string): Promise<void>;
  /**
   * Takes no more requests, answers those in flight, writes what is on its way, and closes everything it opened.
   * `onStep` is called before each wait with what it waits for.
   */
  stop(onStep: (waitsFor: string) => void): Promise<void>;
  /** Resolves when another gateway has taken its name, or an operator has forgotten it: then it must end. */
  readonly replaced: Promise<void> | undefined;
  /** Entries on their way to the audit log. */
  readonly unwrittenEntries: () => number;
};

/**
 * Rejects with a `StartError` where something given to it is wrong. When `signal` is aborted it rejects with the reason
 * of the signal, unless it was too late for that: then the gateway is started and has to be stopped.
 */
export async function startGateway(config: Config, log: Logger, signal: AbortSignal): Promise<Gateway> {
  const closers = new Closers();
  try {
    const run = config.SVC_CLUSTER === undefined ? undefined : newRun();
    const telemetry = await startTelemetry(config, log, closers);
    return await start({ config, log, signal, wait: new StartWait(log, signal), closers, run, telemetry });
  } catch (error) {
    await closers
      .closeAll(0)
      .catch((another: unknown) => log.error('closing after a failed start failed', { error: messageOf(another) }));
    throw startErrorOf(error, config.SVC_DATA_DIR);
  }
}

/** Each step uses only what is there already. The audit log comes before what is recorded in it; the doors are last. */
async function start(context: StartContext): Promise<Gateway> {
  const { config, log, signal, closers } = context;
  const tls = openTls(context);
  const threads = createThreads(context, tls, (reason) =>
    decisions.webhooks.reportOwn('audit.unwritable', { reason, checks: config.SVC_AUDIT_ON_FAILURE }),
  );
  const opened = await openResources(context, threads.clock);
  const cluster = await openClusterOf(context, opened, threads);
  const resources = cluster === undefined ? opened : { ...opened, policies: cluster.inForce };
  const decisions = startDecisions(context, resources, threads, cluster);
  const credentials = await openIdentity(context, resources, threads);
  const entries = await openAuditLog(context, threads, cluster?.membership.name);
  await recordSettings(config, { store: resources.store, audit: threads.audit });
  const { agents } = decisions.governor;
  warnOfMissingParts(context, resources, {
    entries,
    // Agents of a cluster are no sign of what this data directory had.
    agents: cluster === undefined ? agents.registeredCount : 0,
    apiKeys: credentials.apiKeys.size,
  });
  const identity = await startIdentity(context, resources, threads, decisions, credentials);
  const parts: Parts = { resources, threads, decisions, identity, cluster };
  followClock(context, threads, decisions);
  await cluster?.start(decisions.governor, refreshesOf(parts));
  await decisions.policyLife.begin();
  const switchboard = createSwitchboard(context, parts);
  signal.throwIfAborted();

  const { audit, supervisor } = threads;
  const { httpPort, onError, policies, signingKeys } = resources;
  closers.add('the spend store', () =>
    decisions.recording.spend.save().catch((error: unknown) => onError(error, 'saving budgets')),
  );
  closers.add('the statistics', () =>
    decisions.statsSaver.save().catch((error: unknown) => onError(error, 'saving statistics')),
  );
  closers.add('requests in flight', (grace) => supervisor.drainIo(grace.leftMs()));
  // Halts that ended while the gateway was away: nobody is denied because of them any more.
  const { governor, haltKeeper } = decisions;
  await haltKeeper.releaseExpired(governor.halts.expiredAt(threads.clock.nowMs()));
  const listening = await orStartError(supervisor.startIo(switchboard, httpPort));
  tls?.follow((identity) => threads.threads.broadcast({ type: 'tls', identity }));
  if (identity.accounts !== undefined) {
    const carryOut = operatorOrders(identity.accounts.useCases);
    const stop = serveConsole(config.SVC_DATA_DIR, carryOut, (error) =>
      onError(error, 'carrying out an order of the console'),
    );
    closers.add('the console', stop);
  }
  startBackground(context, parts);
  let stopping: Promise<void> | undefined;
  return {
    listening,
    policies,
    setup: firstAccount(context, identity, listening.httpPort),
    bootstrap: identity.bootstrap,
    reload: async (actor) => {
      if (cluster === undefined)
        await decisions.policyKeeper.reload(actor).catch((error: unknown) => onError(error, 'reloading policies'));
      else log.warn('policies were not reloaded', { reason: explain({ kind: 'use_publish' }), by: actor });
      tls?.reload();
      await reloadSigningKeys(signingKeys, log);
    },
    stop: (onStep) => (stopping ??= closers.closeAll(config.SVC_SHUTDOWN_SECS * 1000, onStep)),
    unwrittenEntries: () => audit.entriesInFlight,
    replaced: cluster?.replaced,
  };
}

/** How this gateway takes over what other gateways have written. */
const refreshesOf = ({ identity: { accounts, credentials }, decisions: { policyLife } }: Parts): Refreshes => ({
  'api-keys': () => credentials.apiKeys.refresh(),
  shadow: async () => {
    const followed = await policyLife.shadow.follow();
    // A set that cannot be read here is not asked for here: reading it again changes nothing.
    return followed.ok || followed.fault.kind === 'policy_invalid' ? ok(undefined) : followed;
  },
  ...(accounts && { accounts: () => accounts.syncRevocations() }),
});

/** Loaded only where it is needed, as accounts are. */
async function openClusterOf(
  context: StartContext,
  resources: Resources,
  threads: Threads,
): Promise<Cluster | undefined> {
  if (context.config.SVC_CLUSTER === undefined) return undefined;
  return (await import('./start-cluster.ts')).openCluster(context, resources, threads);
}

function firstAccount(
  { config }: StartContext,
  { isWithoutAccounts, setupSecret }: Identity,
  httpPort: number,
): FirstAccount | undefined {
  if (!isWithoutAccounts) return undefined;
  return { link: setupSecret && `${publicUrlOf(config, httpPort)}/#/setup/${setupSecret}` };
}

function warnOfMissingParts(
  { config, log }: StartContext,
  resources: Resources,
  counts: Pick<OpenedParts, 'entries' | 'agents' | 'apiKeys'>,
): void {
  const missing = missingParts({
    ...counts,
    dataDir: config.SVC_DATA_DIR,
    found: resources.found,
    hasDatabase: resources.database !== undefined,
    isKeyGiven: config.SVC_JWT_PRIVATE_KEY !== undefined,
  });
  for (const message of missing) log.warn(message);
}

/** Starts the work that the gateway does by itself. */
function startBackground(context: StartContext, { resources, threads, decisions, identity, cluster }: Parts): void {
  const { config, log, closers } = context;
  const { database, onError, policyChanges } = resources;
  decisions.webhooks.open();
  const timers = startTimers({
    ...identity.credentials,
    config,
    log,
    onError,
    clock: threads.clock,
    governor: decisions.governor,
    haltKeeper: decisions.haltKeeper,
    commands: decisions.commands,
    spend: decisions.recording.spend,
    isShared: database !== undefined && cluster === undefined,
    stats: decisions.stats,
    statsSaver: decisions.statsSaver,
    threads: threads.threads,
    tickApprovals: cluster?.states.tick,
  });
  if (cluster === undefined)
    policyChanges.follow((fingerprint) => void reloadChanged(decisions.policyKeeper, onError, fingerprint));
  closers.add('the timers', () => {
    for (const timer of timers) clearInterval(timer);
    policyChanges.close();
    decisions.policyKeeper.close();
  });
}

async function reloadSigningKeys(signingKeys: SigningKeys, log: Logger): Promise<void> {
  try {
    const { kid, changed } = await signingKeys.reload();
    log.info('signing keys reloaded', { kid, changed });
  } catch (error) {
    log.error('signing keys were not reloaded', { reason: messageOf(error) });
  }
}
