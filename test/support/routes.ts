/** The rows of the API as a gateway with an account store on loopback serves them. */

import { routesOf } from '../../src/doors/api/routes.ts';
import type { Route } from '../../src/doors/engine/route.ts';

export const ROWS: readonly Route[] = routesOf({
  hasAccountStore: true,
  maxLogins: 100,
  ownOrigins: [],
  httpHost: '127.0.0.1',
  opsTtlSecs: 60,
});

export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path}`;
