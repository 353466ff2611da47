/** Rows that bound how many of their requests are in progress: no address keeps others out. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { ok } from '../../../src/core/base/result.ts';
import { serveRoutes } from '../../../src/doors/api/server.ts';
import { addressBehind } from '../../../src/doors/engine/client-address.ts';
import { DoorState } from '../../../src/doors/engine/door-state.ts';
import type { HttpReply } from '../../../src/doors/engine/route.ts';
import { ENGINES } from '../../support/engines.ts';
import { eventually } from '../../support/eventually.ts';
import { nameOf, ROWS } from '../../support/routes.ts';

describe('concurrency limit', () => {
  test.each(ENGINES)(
    'over %s one address, or IPv6 /64, gets half of a row until its answers leave',
    async (_name, create) => {
      const http = create();
      onTestFinished(() => http.close());
      const ends: (() => void)[] = [];
      serveRoutes(http, {
        door: new DoorState(Infinity),
        ports: { link: { call: async () => ok(undefined) } } as never,
        routes: [
          {
            method: 'post',
            path: '/sign-in',
            access: 'public',
            atOnce: { limit: 4, what: 'sign-in' },
            summary: 'Signs in',
            handle: () => new Promise<HttpReply>((resolve) => ends.push(() => resolve(ok({ status: 200, body: {} })))),
          },
        ],
        addressOf: addressBehind(['127.0.0.1']),
        corsOrigins: [],
        own: { origins: [], hosts: undefined },
        bodyTimeoutMs: 60_000,
        onError: (error) => {
          throw error;
        },
        onCut: () => undefined,
      });
      const port = await http.listen('127.0.0.1', 0, false);
      const signIn = async (address: string): Promise<unknown> => {
        const response = await fetch(`http://127.0.0.1:${port}/sign-in`, {
          method: 'POST',
          headers: { 'x-forwarded-for': address },
        });
        return response.status === 200
          ? 200
          : [response.status, response.headers.get('retry-after'), ((await response.json()) as { code: string }).code];
      };
      const held: Promise<unknown>[] = [];
      const hold = async (address: string): Promise<void> => {
        const before = ends.length;
        held.push(signIn(address));
        await eventually(() => expect(ends.length).toBe(before + 1));
      };
      const REFUSED = [503, '1', 'overloaded'];
      await hold('2001:db8:1:2::1');
      await hold('2001:db8:1:2::2');
      expect(await signIn('2001:db8:1:2::3')).toEqual(REFUSED);
      await hold('2001:db8:1:3::1');
      await hold('192.0.2.1');
      expect(await signIn('192.0.2.2')).toEqual(REFUSED);
      for (const end of ends) end();
      expect(await Promise.all(held)).toEqual([200, 200, 200, 200]);
      await hold('2001:db8:1:2::3');
      ends.at(-1)!();
      expect(await held.at(-1)).toBe(200);
    },
  );

  test('limits calls that hash a password for anybody', () => {
    expect(ROWS.filter(({ atOnce }) => atOnce !== undefined).map(nameOf)).toEqual([
      'post /api/v1/auth/register',
      'post /api/v1/auth/login',
    ]);
  });
});
