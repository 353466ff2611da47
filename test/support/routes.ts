/** The rows of the API as a gateway with an account store on loopback serves them. */
import type { Route } from '../../src/wire/http/route.ts';
import { routesOf } from '../../src/wire/http/routes.ts';

export const ROWS: readonly Route[] = routesOf({
  hasAccountStore: true,
  maxLogins: 100,
  ownOrigins: [],
  httpHost: '127.0.0.1',
  opsTtlSecs: 60,
});

export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path}`;
