import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  topologyLineage,
  topologyOverview,
  topologyStats,
  topologyTeam,
  topologyTree,
} from '../../src/doors/api/shapes.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
let acme: string;
const agent = (org_id: string, team_id: string, agent_id: string) => ({ org_id, team_id, agent_id });

describe('topology', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
    for (const org of ['acme', 'globex']) {
      await register(agent(org, 'search', 'lead'));
      await register(agent(org, 'search', 'worker'), agent(org, 'search', 'lead'));
      await register(agent(org, 'sales', 'helper'), agent(org, 'search', 'worker'));
    }
    await gateway.call('POST', '/api/v1/ops', { op_id: 't:acme', agent: agent('acme', 'search', 'lead') });
    acme = (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'acme', scopes: ['read'], org_id: 'acme' })).body
      .key;
  });
  afterAll(async () => {
    await gateway.stop();
  });

  const register = (who: object, parent?: object) => gateway.call('POST', '/api/v1/agents', { agent: who, parent });
  const get = async (path: string, bearer?: string) =>
    (await gateway.call('GET', `/api/v1/topology/${path}`, undefined, bearer)).body;
  const names = (agents: readonly any[]): string[] => agents.map(({ org_id, agent_id }) => `${org_id}/${agent_id}`);

  test('the overview counts orgs, teams and agents, and names those of one org', async () => {
    const all = await get('overview');
    expect(topologyOverview.safeParse(all).error).toBeUndefined();
    expect(all).toMatchObject({ org_count: 2, team_count: 4, agent_count: 6 });
    const one = await get('overview?org_id=acme');
    expect(one).toMatchObject({ org_count: 1, team_count: 2, agent_count: 3, next_cursor: null });
    expect(names(one.agents)).toEqual(['acme/lead', 'acme/worker', 'acme/helper']);
    expect(one.teams.map(({ team_id, agent_count, active_ops }: any) => [team_id, agent_count, active_ops])).toEqual([
      ['search', 2, 1],
      ['sales', 1, 0],
    ]);
  });

  test('the tree puts every agent below its parent, and the root below its org and team', async () => {
    const body = await get('tree?org_id=acme');
    expect(topologyTree.safeParse(body).error).toBeUndefined();
    const [root] = body.orgs[0].teams[0].agents;
    expect([
      body.orgs[0].org_id,
      body.orgs[0].teams[0].team_id,
      root.agent_id,
      root.children[0].agent_id,
      root.children[0].children[0].agent_id,
    ]).toEqual(['acme', 'search', 'lead', 'worker', 'helper']);
  });

  test('a lineage has ancestors and descendants, of each agent of the name', async () => {
    const body = await get('lineage/worker');
    expect(topologyLineage.safeParse(body).error).toBeUndefined();
    expect(
      body.lineages.map(({ agent: { org_id }, ancestors, descendants }: any) => [
        org_id,
        names(ancestors),
        names(descendants),
      ]),
    ).toEqual([
      ['acme', ['acme/lead'], ['acme/helper']],
      ['globex', ['globex/lead'], ['globex/helper']],
    ]);
    expect(await get('lineage/nobody')).toMatchObject({ status: 404 });
  });

  test('a team returns its agents, and 404 when it has none', async () => {
    const body = await get('team/search?org_id=globex');
    expect(topologyTeam.safeParse(body).error).toBeUndefined();
    expect(names(body.agents)).toEqual(['globex/lead', 'globex/worker']);
    expect(await get('team/nobody')).toMatchObject({ status: 404 });
  });

  test('the statistics count operations by state, per org or per team of one', async () => {
    const stats = await get('stats');
    expect(topologyStats.safeParse(stats).error).toBeUndefined();
    expect(stats).toMatchObject({
      org_count: 2,
      agent_count: 6,
      active_ops: 1,
      ops: { pending: 1 },
      ops_ttl_secs: 60,
      agents_seen: 0,
    });
    expect(
      (await get('stats?org_id=acme')).groups.map(({ team_id, active_ops }: any) => [team_id, active_ops]),
    ).toEqual([
      ['search', 1],
      ['sales', 0],
    ]);
  });

  test('a credential of an org gets its own org, and 403 for another, in all five', async () => {
    for (const path of ['overview', 'tree', 'stats', 'team/search', 'lineage/worker']) {
      const { status, body } = await gateway.call('GET', `/api/v1/topology/${path}`, undefined, acme);
      expect({ path, status }).toEqual({ path, status: 200 });
      expect(JSON.stringify(body)).not.toContain('globex');
      expect(await get(`${path}?org_id=globex`, acme)).toMatchObject({ status: 403, code: 'org_forbidden' });
    }
  });

  test('a cursor continues the listing that issued it and is refused by others', async () => {
    const { body } = await gateway.call('GET', '/api/v1/agents?per_page=1');
    expect((await gateway.call('GET', `/api/v1/agents?per_page=1&cursor=${body.next_cursor}`)).status).toBe(200);
    for (const listing of [
      'ops',
      'budgets',
      'topology/overview',
      'topology/tree',
      'topology/stats',
      'topology/team/search',
      'topology/lineage/lead',
    ]) {
      const other = await gateway.call('GET', `/api/v1/${listing}?cursor=${body.next_cursor}`);
      expect({ listing, status: other.status, field: other.body.field }).toEqual({
        listing,
        status: 400,
        field: 'cursor',
      });
    }
  });

  test('agents are found by id in every org and team, and by an org key in its own', async () => {
    const found = async (query: string, bearer?: string) =>
      names((await gateway.call('GET', `/api/v1/agents?${query}`, undefined, bearer)).body.agents);
    expect(await found('agent_id=worker')).toEqual(['acme/worker', 'globex/worker']);
    expect(await found('agent_id=worker&org_id=globex')).toEqual(['globex/worker']);
    expect(await found('agent_id=worker&team_id=sales')).toEqual([]);
    expect(await found('agent_id=helper&team_id=sales&org_id=acme')).toEqual(['acme/helper']);
    expect(await found('agent_id=worker', acme)).toEqual(['acme/worker']);
    expect(await found('agent_id=nobody')).toEqual([]);
    const first = (await gateway.call('GET', '/api/v1/agents?agent_id=worker&per_page=1')).body;
    expect({
      names: names(first.agents),
      found: await found(`agent_id=worker&per_page=1&cursor=${first.next_cursor}`),
    }).toEqual({ names: ['acme/worker'], found: ['globex/worker'] });
  });
});
