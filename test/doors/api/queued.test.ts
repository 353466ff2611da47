/** Listings of one org hold up neither those of another nor the checks of anybody. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { ok } from '../../../src/core/base/result.ts';
import { serveRoutes } from '../../../src/doors/api/server.ts';
import { DoorState } from '../../../src/doors/engine/door-state.ts';
import type { Authorized, HttpReply } from '../../../src/doors/engine/route.ts';
import { ENGINES } from '../../support/engines.ts';
import { eventually } from '../../support/eventually.ts';
import { ROWS } from '../../support/routes.ts';

describe('queued', () => {
  test.each(ENGINES)(
    'over %s queued work of one org runs one at a time, with others in between',
    async (_name, create) => {
      const http = create();
      onTestFinished(() => http.close());
      let counted = 0;
      const begun: string[] = [];
      const ends: (() => void)[] = [];
      const link = {
        ask: () => Promise.reject(new Error('not asked')),
        call: async () => {
          counted += 1;
          return ok(undefined);
        },
      };
      const authenticate = async (bearer: string) => ok({ subject: `key:${bearer}`, scopes: ['read'], orgId: bearer });
      serveRoutes(http, {
        door: new DoorState(Infinity),
        ports: { link, authenticate } as never,
        routes: [
          {
            method: 'get',
            path: '/list',
            access: { scope: 'read' },
            isQueued: true,
            summary: 'Lists',
            handle: ({ principal }: Authorized) => {
              begun.push(principal.orgId ?? '');
              return new Promise<HttpReply>((resolve) => ends.push(() => resolve(ok({ status: 200, body: {} }))));
            },
          },
        ],
        corsOrigins: [],
        own: { origins: [], hosts: undefined },
        bodyTimeoutMs: 60_000,
        onError: (error) => {
          throw error;
        },
        onCut: () => undefined,
      });
      const port = await http.listen('127.0.0.1', 0, false);
      const list = (orgId: string) =>
        fetch(`http://127.0.0.1:${port}/list`, { headers: { authorization: `Bearer ${orgId}` } }).then(
          ({ status }) => status,
        );
      const endAfter = async (count: number): Promise<void> => {
        await eventually(() => expect(begun.length).toBeGreaterThanOrEqual(count));
        ends[count - 1]!();
      };

      const asked: Promise<number>[] = [];
      for (const orgId of ['acme', 'acme', 'acme', 'acme', 'globex']) {
        asked.push(list(orgId));
        // Its requests are counted right before a row has its turn.
        await eventually(() => expect(counted).toBe(asked.length));
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(begun).toEqual(['acme']);
      for (let count = 1; count <= 5; count += 1) await endAfter(count);
      expect(await Promise.all(asked)).toEqual([200, 200, 200, 200, 200]);
      expect(begun).toEqual(['acme', 'globex', 'acme', 'acme', 'acme']);
    },
  );

  test('queues all that may be long work for the main thread', () => {
    expect(
      ROWS.filter(({ isQueued }) => isQueued === true)
        .map(({ path }) => path)
        .sort(),
    ).toEqual([
      '/api/v1/agents',
      '/api/v1/approvals',
      '/api/v1/budgets',
      '/api/v1/limits',
      '/api/v1/ops',
      '/api/v1/policies',
      '/api/v1/policies/diff',
      '/api/v1/policies/explain',
      '/api/v1/policies/rules',
      '/api/v1/policies/versions',
      '/api/v1/policies/versions/:version',
      '/api/v1/stats',
      '/api/v1/topology/lineage/:agent_id',
      '/api/v1/topology/overview',
      '/api/v1/topology/stats',
      '/api/v1/topology/team/:team_id',
      '/api/v1/topology/tree',
    ]);
  });
});
