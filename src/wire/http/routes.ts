/** The whole HTTP API as rows. */
import { accountRoutes, type AccountRouteOptions } from './accounts.ts';
import { agentRoutes } from './agents.ts';
import { budgetRoutes } from './budgets.ts';
import { credentialRoutes } from './credentials.ts';
import { logRoutes } from './logs.ts';
import { operationsRoutes, type OperationsRouteOptions } from './operations.ts';
import { opRoutes } from './ops.ts';
import { policyRoutes } from './policies.ts';
import type { Route } from './route.ts';
import { streamRoutes } from './stream.ts';
import { topologyRoutes, type TopologyRouteOptions } from './topology.ts';

export function routesOf(options: AccountRouteOptions & OperationsRouteOptions & TopologyRouteOptions): readonly Route[] {
  const rows: readonly Route[] = [
    ...credentialRoutes,
    ...accountRoutes(options),
    ...opRoutes,
    ...agentRoutes,
    ...budgetRoutes,
    ...policyRoutes,
    ...streamRoutes,
    ...logRoutes,
    ...topologyRoutes(options),
    ...operationsRoutes(options, () => rows),
  ];
  return rows;
}
