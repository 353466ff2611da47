/** Connects what I/O threads may ask with what answers it. */

import { type AccountUseCases, withoutAccountStore } from '../accounts/accounts.ts';
import { measuresOf } from '../cluster/measures.ts';
import type { Routing } from '../cluster/routing.ts';
import { fail, ok } from '../core/base/result.ts';
import type { Topic } from '../ports/cluster.ts';
import type { UseCase } from '../ports/use-case.ts';
import { createMetrics, type Metrics } from '../system/metrics.ts';
import { packageVersion } from '../system/package-files.ts';
import type { PolicyLife } from '../threads/main/policy-life.ts';
import { inSlices } from '../threads/main/policy-reader.ts';
import { ServingGate } from '../threads/main/serving-gate.ts';
import { Switchboard } from '../threads/main/switchboard.ts';
import { decideApproval } from '../use-cases/approvals.ts';
import { createAuditSinkUseCases } from '../use-cases/audit-sinks.ts';
import { createClusterUseCases, withoutCluster } from '../use-cases/cluster.ts';
import { createCredentialUseCases } from '../use-cases/credentials.ts';
import { listLimits } from '../use-cases/limits.ts';
import { readLog } from '../use-cases/logs.ts';
import type { PolicyKeeper } from '../use-cases/policies.ts';
import { createStatsUseCases } from '../use-cases/stats.ts';
import type { UseCases } from '../use-cases/use-cases.ts';
import { createWebhookUseCases } from '../use-cases/webhooks.ts';
import { LogWitness } from '../use-cases/witness.ts';
import { metricsOf } from './metrics.ts';
import type { Cluster } from './start-cluster.ts';
import type { StartContext } from './start-context.ts';
import type { Decisions } from './start-decisions.ts';
import type { Identity } from './start-identity.ts';
import type { Resources } from './start-resources.ts';
import { openAuditReader, type Threads } from './start-threads.ts';

/** The parts that the earlier steps of the start have opened. */
export type Parts = {
  readonly resources: Resources;
  readonly threads: Threads;
  readonly decisions: Decisions;
  readonly identity: Identity;
  readonly cluster: Cluster | undefined;
};

export function createSwitchboard(context: StartContext, parts: Parts): Switchboard {
  const {
    resources: { onError },
    threads: { threads },
    decisions: { commands, governor, recording },
    cluster,
  } = parts;
  const routing = cluster?.route(parts.decisions, (io, messages) => switchboard.receive(io, messages));
  const switchboard: Switchboard = new Switchboard({
    ...recording,
    governor,
    threads,
    onError,
    gate: gateOf(parts),
    diversion: routing,
    commands,
    useCases: useCasesOf(context, parts, routing),
  });
  return switchboard;
}

function gateOf({ cluster, identity: { credentials } }: Parts): ServingGate | undefined {
  if (cluster === undefined) return undefined;
  const gate = new ServingGate(cluster.membership);
  credentials.authenticator.onRevoked((subject) => gate.noteRevoked(subject));
  return gate;
}

/** The implementation of each use case. */
function useCasesOf(context: StartContext, parts: Parts, routing: Routing | undefined): UseCases {
  const {
    resources: { prices },
    threads: { audit, clock, sinks },
    decisions: { approvalWaits, commands, governor, haltKeeper, limiters, policyKeeper, policyLife, stats },
    identity: { accounts, credentials, findLineage },
    cluster,
  } = parts;
  const ownLog = openAuditReader(context);
  const auditReader = cluster === undefined ? ownLog : cluster.shareLogs(ownLog);
  const logWitness = new LogWitness(audit, auditReader);
  const limits = { limits: governor.limits, nowMs: () => clock.nowMs(), inSlices };
  const tickets = cluster?.shareTickets(credentials.tickets, credentials.authenticator) ?? credentials.tickets;
  const metrics = startMetrics(context, parts, routing);
  return {
    ...confirmed(cluster, accounts?.useCases ?? withoutAccountStore(), REVOKING_ACCOUNTS),
    ...credentialUseCases(context, parts),
    ...(cluster === undefined ? withoutCluster : createClusterUseCases(cluster.members, cluster.policies, audit)),
    ...createAuditSinkUseCases(sinks, audit),
    ...createStatsUseCases({ stats, clock, audit, peers: cluster?.peers }),
    ...policyUseCases(policyKeeper, policyLife),
    readLog: ({ principal, ...request }) => readLog(auditReader, principal, request),
    witnessCheckpoint: (asked) => logWitness.keep(asked),
    listLimits: (asked) => listLimits(limits, asked),
    createHalt: ({ principal, halt }) => haltKeeper.create(principal, halt),
    releaseHalt: ({ principal, id, reason }) => haltKeeper.release(principal, id, reason),
    decideApproval: (decision) => decideApproval(commands, findLineage, decision),
    waitApproval: ({ reader, ...wait }) => approvalWaits.wait(reader, wait),
    leaveWait: async ({ ticket }) => ok(approvalWaits.leave(ticket)),
    priceTokens: ({ tokens }) => prices.priceOf(tokens),
    findPrice: ({ model, provider }) => prices.find(model, provider),
    issueTicket: ({ bearer }) => tickets.issue(bearer),
    redeemTicket: async ({ ticket }) => tickets.redeem(ticket),
    readiness: () => readiness(context, parts),
    metrics: async ({ areNamesShown }) => ok(await metrics.render(areNamesShown)),
    takePermit: async ({ limit, key }) => limiters[limit].take(key, clock.nowMs()),
  };
}

function credentialUseCases({ log }: StartContext, { decisions, identity, cluster }: Parts) {
  const { policyKeeper, webhooks } = decisions;
  const { credentials, isStillAdmin } = identity;
  const ofCredentials = createCredentialUseCases({
    ...credentials,
    webhooks,
    isStillAdmin,
    isApproverName: (name) => policyKeeper.hasApprover(`key:${name}`),
    onKeyRotated: (rotated) => log.info('rotated the key that signs tokens', rotated),
  });
  return {
    ...confirmed(cluster, ofCredentials, { revokeApiKey: ['api-keys', 'webhooks'] }),
    ...createWebhookUseCases({ webhooks, apiKeys: credentials.apiKeys, isStillAdmin }),
  };
}

const policyUseCases = (keeper: PolicyKeeper, { history, shadow, replays }: PolicyLife) =>
  ({
    listRules: async ({ principal, policy, ...page }) => keeper.listRules(principal, policy, page),
    listPolicies: async ({ principal, ...page }) => keeper.list(principal, page),
    explainCheck: ({ principal, ...asked }) => keeper.explain(principal, asked),
    listPolicyVersions: ({ principal, ...page }) => history.list(principal, page),
    getPolicyVersion: ({ principal, version }) => history.get(principal, version),
    diffPolicies: ({ principal, from, to }) => history.diff(principal, from, to),
    startShadow: ({ principal, texts, expiresInSecs }) => shadow.start(principal, texts, expiresInSecs),
    getShadow: ({ principal }) => shadow.status(principal),
    stopShadow: ({ principal }) => shadow.stop(principal),
    startReplay: ({ principal, ...request }) => replays.start(principal, request),
    nextReplay: ({ ticket }) => replays.next(ticket),
    leaveReplay: async ({ ticket }) => ok(replays.leave(ticket)),
    reloadPolicies: ({ principal }) => keeper.reloadFor(principal),
  }) satisfies Partial<UseCases>;

async function readiness(
  { config }: StartContext,
  { resources: { database, storeOutage }, threads: { audit, supervisor, witnesses }, cluster }: Parts,
): ReturnType<UseCases['readiness']> {
  if (supervisor.isStopping || cluster?.membership.isReplaced)
    return fail({ kind: 'shutting_down', retryAfterSecs: 1 });
  if (!audit.isWritable && config.SVC_AUDIT_ON_FAILURE === 'deny') return fail({ kind: 'audit_unavailable' });
  return ok({
    audit: audit.isWritable ? 'writable' : 'unwritable',
    database:
      database === undefined ? 'not_configured' : (await database.postgres.isReachable()) ? 'reachable' : 'unreachable',
    ...(witnesses.isAnyAway && { audit_witness: 'unreachable' }),
    ...(storeOutage.isOn && { store: 'unwritable' }),
    ...(cluster && { cluster: stateOf(cluster) }),
    ...(cluster?.bus.isConnected === false && { bus: 'unreachable' }),
  });
}

function stateOf({ clock, membership }: Cluster): 'reachable' | 'unreachable' | 'wrong_clock' {
  if (!membership.isLeased) return 'unreachable';
  return clock.isOff ? 'wrong_clock' : 'reachable';
}

/** Operations that take something away from an account or its keys, and the copies they affect. */
const REVOKING_ACCOUNTS = {
  logout: ['accounts'],
  changeRole: ['accounts', 'api-keys', 'webhooks'],
  setDisabled: ['accounts', 'api-keys', 'webhooks'],
  revokeSessions: ['accounts'],
  confirmPasswordReset: ['accounts'],
} as const satisfies Partial<Record<keyof AccountUseCases, readonly Topic[]>>;

/** The same use cases, but these answer once every gateway of the cluster acts by what they have written. */
function confirmed<U extends object>(
  cluster: Cluster | undefined,
  useCases: U,
  topicsOf: Readonly<Partial<Record<keyof U, readonly Topic[]>>>,
): U {
  if (cluster === undefined) return useCases;
  const wrapped = { ...useCases };
  for (const [name, topics] of Object.entries(topicsOf) as [keyof U, readonly Topic[]][]) {
    const useCase = useCases[name] as UseCase<unknown, unknown>;
    const withBarriers: UseCase<unknown, unknown> = async (input) => {
      const reply = await useCase(input);
      if (!reply.ok) return reply;
      const names = await Promise.all(topics.map((topic) => cluster.states.barrier.pass(topic)));
      return { ...reply, unconfirmed: [...new Set(names.flat())] };
    };
    wrapped[name] = withBarriers as U[typeof name];
  }
  return wrapped;
}

function startMetrics({ closers, telemetry }: StartContext, parts: Parts, routing: Routing | undefined): Metrics {
  const {
    resources: { crypto, database, openFiles, storeOutage },
    threads,
    decisions: { governor, limiters, policyKeeper, recording, stats, webhooks },
    cluster,
  } = parts;
  const metrics = createMetrics(
    metricsOf({
      ...threads,
      ...recording,
      governor,
      crypto,
      policies: policyKeeper,
      webhooks,
      stats,
      storeOutage,
      openFiles,
      cluster: cluster && measuresOf(cluster, routing, closers),
      isDatabaseAway: database && (() => database.postgres.isAway),
      isOnBus: cluster && (() => cluster.bus.isConnected),
      limiters,
      telemetry,
      version: packageVersion(),
    }),
  );
  telemetry?.follow(() => metrics.readings());
  closers.add('the metrics', () => metrics.close());
  return metrics;
}
