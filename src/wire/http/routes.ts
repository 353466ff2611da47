/** The whole HTTP API as rows. */
import { agentRoutes } from './agents.ts';
import { credentialRoutes } from './credentials.ts';
import { opRoutes } from './ops.ts';
import type { Route } from './route.ts';

export const routes: readonly Route[] = [...credentialRoutes, ...opRoutes, ...agentRoutes];
