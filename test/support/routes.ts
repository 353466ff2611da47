/** The rows of the API as a gateway with an account store on loopback serves them. */

import { routesOf } from '../../src/doors/api/routes.ts';
import { Holds } from '../../src/doors/coding-agents/holds.ts';
import type { Route } from '../../src/doors/engine/route.ts';
import { ControlSwitch } from '../../src/doors/rpc/control-switch.ts';

export const ROWS: readonly Route[] = routesOf({
  hasAccountStore: true,
  maxLogins: 100,
  httpHost: '127.0.0.1',
  opsTtlSecs: 60,
  holds: new Holds(new ControlSwitch(() => undefined)),
});

export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path}`;
