/** The whole HTTP API as rows. */
import { accountRoutes, type AccountRouteOptions } from './accounts.ts';
import { agentRoutes } from './agents.ts';
import { budgetRoutes } from './budgets.ts';
import { credentialRoutes } from './credentials.ts';
import { logRoutes } from './logs.ts';
import { opRoutes } from './ops.ts';
import { policyRoutes } from './policies.ts';
import type { Route } from './route.ts';
import { streamRoutes } from './stream.ts';
import { topologyRoutes } from './topology.ts';

export const routesOf = (options: AccountRouteOptions): readonly Route[] => [
  ...credentialRoutes,
  ...accountRoutes(options),
  ...opRoutes,
  ...agentRoutes,
  ...budgetRoutes,
  ...policyRoutes,
  ...streamRoutes,
  ...logRoutes,
  ...topologyRoutes,
];
