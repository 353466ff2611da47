/** The whole HTTP API as rows. */

import { agentHooksRoutes } from '../agent-hooks/routes.ts';
import { type AuthzenRouteOptions, authzenRoutes } from '../authzen/routes.ts';
import type { Route } from '../engine/route.ts';
import { opaRoutes } from '../opa/routes.ts';
import { type AccountRouteOptions, accountRoutes } from './accounts.ts';
import { agentRoutes } from './agents.ts';
import { approvalRoutes } from './approvals.ts';
import { auditSinkRoutes } from './audit-sinks.ts';
import { budgetRoutes } from './budgets.ts';
import { changeRoutes } from './changes.ts';
import { clusterRoutes } from './cluster.ts';
import { credentialRoutes } from './credentials.ts';
import { haltRoutes } from './halts.ts';
import { type HookRouteOptions, hookRoutes } from './hooks.ts';
import { limitRoutes } from './limits.ts';
import { logRoutes } from './logs.ts';
import { type MonitoringRouteOptions, monitoringRoutes } from './monitoring.ts';
import { opRoutes } from './ops.ts';
import { policyRoutes } from './policies.ts';
import { policyLifeRoutes } from './policy-life.ts';
import { priceRoutes } from './prices.ts';
import { statsRoutes } from './stats.ts';
import { streamRoutes } from './stream.ts';
import { type TopologyRouteOptions, topologyRoutes } from './topology.ts';
import { webhookRoutes } from './webhooks.ts';
import { witnessRoutes } from './witness.ts';

export function routesOf(
  options: AccountRouteOptions & AuthzenRouteOptions & HookRouteOptions & MonitoringRouteOptions & TopologyRouteOptions,
): readonly Route[] {
  const rows: readonly Route[] = [
    ...credentialRoutes,
    ...accountRoutes(options),
    ...opRoutes,
    ...agentRoutes,
    ...budgetRoutes,
    ...limitRoutes,
    ...priceRoutes,
    ...haltRoutes,
    ...approvalRoutes,
    ...webhookRoutes,
    ...policyRoutes,
    ...policyLifeRoutes,
    ...streamRoutes,
    ...logRoutes,
    ...changeRoutes,
    ...witnessRoutes,
    ...auditSinkRoutes,
    ...clusterRoutes,
    ...statsRoutes,
    ...topologyRoutes(options),
    ...authzenRoutes(options),
    ...opaRoutes,
    ...hookRoutes(options),
    ...agentHooksRoutes(options),
    // Without an account store its routes answer everybody 503; what they are, and who may ask them, is described all
    // the same.
    ...monitoringRoutes(options, () =>
      options.hasAccountStore ? rows : routesOf({ ...options, hasAccountStore: true }),
    ),
  ];
  return rows;
}
