/** Connects what I/O threads may ask with what answers it. */

import { measuresOf } from '../cluster/measures.ts';
import type { Routing } from '../cluster/routing.ts';
import { ok } from '../core/base/result.ts';
import { accountIdOf } from '../core/identity/account.ts';
import { holds, SCOPES_OF_ROLE } from '../core/identity/roles.ts';
import { isKeyInForce } from '../credentials/api-key-admin.ts';
import { lineageOf } from '../credentials/lineage.ts';
import { createMetrics, type Metrics } from '../system/metrics.ts';
import { packageVersion } from '../system/package-files.ts';
import { inSlices } from '../threads/main/policy-reader.ts';
import { ServingGate } from '../threads/main/serving-gate.ts';
import { Switchboard } from '../threads/main/switchboard.ts';
import type { UseCases } from '../use-cases/use-cases.ts';
import { metricsOf } from './metrics.ts';
import type { Cluster } from './start-cluster.ts';
import type { StartContext } from './start-context.ts';
import type { Decisions } from './start-decisions.ts';
import type { Identity } from './start-identity.ts';
import type { Resources } from './start-resources.ts';
import { openAuditReader, type Threads } from './start-threads.ts';
import { useCasesOf } from './use-cases.ts';

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
    useCases: startUseCases(context, parts, routing),
  });
  return switchboard;
}

function gateOf({ cluster, identity: { credentials } }: Parts): ServingGate | undefined {
  if (cluster === undefined) return undefined;
  const gate = new ServingGate(cluster.membership);
  credentials.authenticator.onRevoked((subject) => gate.noteRevoked(subject));
  return gate;
}

function startUseCases(context: StartContext, parts: Parts, routing: Routing | undefined): UseCases {
  const {
    resources: { database, prices, storeOutage },
    threads: { audit, clock, sinks, supervisor, witnesses },
    decisions: { approvalWaits, commands, governor, haltKeeper, limiters, policyKeeper, policyLife, stats, webhooks },
    identity: { accounts, credentials },
    cluster,
  } = parts;
  const { config, log } = context;
  const ownLog = openAuditReader(context);
  return useCasesOf({
    ...credentials,
    ...(cluster && { tickets: cluster.shareTickets(credentials.tickets, credentials.authenticator) }),
    config,
    clock,
    audit,
    auditReader: cluster === undefined ? ownLog : cluster.shareLogs(ownLog),
    database,
    policyKeeper,
    policyLife,
    limits: { limits: governor.limits, nowMs: () => clock.nowMs(), inSlices },
    haltKeeper,
    approvalWaits,
    webhooks,
    stats,
    prices,
    commands,
    findLineage: (subject) =>
      lineageOf(
        {
          apiKeys: credentials.apiKeys,
          accountOf: async (account) => {
            if (accounts === undefined) return ok(undefined);
            const found = await accounts.useCases.me({ principal: { subject: account, scopes: [], orgId: null } });
            return found.ok || found.fault.kind !== 'unauthenticated' ? found : ok(undefined);
          },
        },
        subject,
      ),
    limiters,
    storeOutage,
    accounts: accounts?.useCases,
    cluster,
    sinks,
    supervisor,
    witnesses,
    metrics: startMetrics(context, parts, routing),
    // A key may have been revoked meanwhile, and an account be gone or demoted.
    isStillAdmin: async (principal) => {
      if (accountIdOf(principal.subject) === undefined) {
        await credentials.apiKeys.lookAround();
        return isKeyInForce(credentials.apiKeys, principal.subject);
      }
      const found = await accounts?.useCases.me({ principal });
      return found?.ok === true && !found.value.disabled && holds(SCOPES_OF_ROLE[found.value.role], 'admin');
    },
    isApproverName: (name) => policyKeeper.hasApprover(`key:${name}`),
    onKeyRotated: (rotated) => log.info('rotated the key that signs tokens', rotated),
  });
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
