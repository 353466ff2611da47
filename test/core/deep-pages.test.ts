/** Pages at the end of a long listing, against its first page: by what they cost, in one run. */
import { describe, expect, test } from 'vitest';
import { AgentRegistry } from '../../src/core/agents.ts';
import { BudgetTracker } from '../../src/core/budget.ts';
import type { Governor } from '../../src/core/governor.ts';
import { agentKeyOf, type SecretDigest } from '../../src/core/ids.ts';
import { agentsWithTeams, lineages, overview, stats, tree } from '../../src/core/topology.ts';
import { ADMIN, openGovernor } from '../support/governor.ts';

const AGENTS = 100_000;
const NO_OPS = { pending: 0, running: 0, paused: 0, completing: 0, terminated: 0 };

/** One huge org with one huge team, and behind it as many orgs of one agent each, all of one name. */
function fill(agents: AgentRegistry): AgentRegistry {
  const register = (orgId: string, teamId: string, agentId: string): void =>
    void agents.register({
      identity: { orgId, teamId, agentId },
      credential: `${orgId}/${teamId}/${agentId}` as SecretDigest,
      registeredAtMs: 0,
      parent: undefined,
    });
  for (let n = 0; n < AGENTS; n += 1) register('huge', 'wide', `n${n}`);
  for (let n = 0; n < AGENTS; n += 1) register(`o${n}`, 't', 'worker');
  return agents;
}

/** The quickest of some runs: what else the machine does only ever makes one slower. */
function quickestMs(work: () => unknown): number {
  let best = Infinity;
  for (let run = 0; run < 15; run += 1) {
    const startedMs = performance.now();
    for (let time = 0; time < 20; time += 1) work();
    best = Math.min(best, performance.now() - startedMs);
  }
  return best;
}

describe('deep pages', () => {
  test('pages through a team that is rare among many agents with bounded work', () => {
    const ofTeam = (cursor: string | undefined) => {
      const reply = governor.apply<'list-agents'>(
        { type: 'list-agents', principal: ADMIN, orgId: undefined, teamId: 'search', perPage: 10, cursor },
        0,
      ).reply;
      if (!reply.ok) throw new Error('a fault');
      return reply.value;
    };
    const pages: number[] = [];
    for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
      const page = ofTeam(cursor);
      pages.push(page.items.length);
      cursor = page.next;
    }
    expect(pages).toEqual([3, 0, 0]); // of 200,003 agents at most 100,000 are looked at for a page
  });

  test('pages through a team that few of very many orgs have with bounded work', () => {
    const ofTeam = (teamId: string, cursor: string | undefined) =>
      governor.apply<'topology-team'>(
        { type: 'topology-team', principal: ADMIN, orgId: undefined, teamId, perPage: 2, cursor },
        0,
      ).reply;
    const pages: number[] = [];
    for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
      const page = ofTeam('search', cursor);
      if (!page.ok) throw new Error('a fault');
      pages.push(page.value.agents.length);
      cursor = page.value.next;
    }
    expect(pages).toEqual([2, 1, 0, 0, 0, 0, 0]); // of 100,003 orgs at most 20,000 are looked at for a page
    expect(ofTeam('wide', undefined)).toMatchObject({ value: { agents: [{}, {}] } });
  });

  const governor: Governor = openGovernor();
  const agents = fill(governor.agents);
  const list = (orgId: string | undefined, cursor: string | undefined) =>
    governor.apply<'list-agents'>({ type: 'list-agents', principal: ADMIN, orgId, perPage: 10, cursor }, 0).reply;
  const hugeOrg = agents.groups.orgs.get('huge')!;
  const place = (org: number, registration: number): string => `${org}.${registration}`;
  const firstOfHuge = agents.get(agentKeyOf({ orgId: 'huge', teamId: 'wide', agentId: 'n0' }))!.registration;
  const lastOfHuge = firstOfHuge + AGENTS - 100;
  const lastNamed = firstOfHuge + 2 * AGENTS - 100;

  test.each<[string, (cursor: string | undefined) => { readonly ok: boolean }, string]>([
    ['the agents of one org', (cursor) => list('huge', cursor), String(lastOfHuge)],
    ['all agents', (cursor) => list(undefined, cursor), String(lastNamed)],
    [
      'the overview of one org',
      (cursor) => overview(agents, { orgId: 'huge', perPage: 10, cursor }, 0),
      place(hugeOrg.registration, lastOfHuge),
    ],
    [
      'the overview of all orgs',
      (cursor) => overview(agents, { orgId: undefined, perPage: 10, cursor }, 0),
      place(hugeOrg.registration + 2 * AGENTS - 100, 0),
    ],
    [
      'a team',
      (cursor) => agentsWithTeams(agents, { orgId: 'huge', teamId: 'wide', perPage: 10, cursor }, 0),
      place(hugeOrg.registration, lastOfHuge),
    ],
    [
      'the tree',
      (cursor) => tree(agents, { orgId: 'huge', perPage: 10, cursor }),
      place(hugeOrg.registration, lastOfHuge),
    ],
    [
      'the lineages of one name',
      (cursor) => lineages(agents, { orgId: undefined, agentId: 'worker', perPage: 10, cursor }),
      String(lastNamed),
    ],
    [
      'the numbers of all orgs',
      (cursor) => stats(agents, NO_OPS, { orgId: undefined, perPage: 10, cursor }, 0),
      String(AGENTS),
    ],
  ])('a page deep in %s costs what the first one does', (_listing, read, deepCursor) => {
    expect([read(undefined).ok, read(deepCursor).ok]).toEqual([true, true]);
    const [first, deep] = [quickestMs(() => read(undefined)), quickestMs(() => read(deepCursor))];
    // Walking there passes a hundred thousand entries, which costs several hundred first pages.
    expect(deep).toBeLessThan(first * 10);
  });

  test('the time of a lineage does not reveal how many other orgs use the name', () => {
    const ofOrg = (agentId: string) =>
      quickestMs(() => lineages(agents, { orgId: `o${AGENTS - 1}`, agentId, perPage: 10, cursor: undefined }));
    expect(ofOrg('worker')).toBeLessThan(20 * ofOrg('nobody') + 1);
  });

  test('the time of a budgets page does not reveal how many other orgs have one', () => {
    const budgetsOf = (orgs: number): BudgetTracker => {
      const budgets = new BudgetTracker(undefined, 0);
      for (let n = 0; n < orgs; n += 1) budgets.handleOf({ orgId: `o${n}`, teamId: 't', agentId: 'worker' });
      return budgets;
    };
    const ofLast = (orgs: number): number => {
      const budgets = budgetsOf(orgs);
      expect(budgets.status({ orgId: `o${orgs - 1}`, limit: 10 }, 0).items.map(({ tier }) => tier)).toEqual([
        'org',
        'team',
        'agent',
      ]);
      return quickestMs(() => budgets.status({ orgId: `o${orgs - 1}`, limit: 10 }, 0));
    };
    expect(ofLast(AGENTS)).toBeLessThan(20 * ofLast(1) + 1);
  });

  test('orgs and teams without a registered agent cost a page of agents nothing', () => {
    const registryOf = (groups: number): AgentRegistry => {
      const registry = new AgentRegistry();
      const known = (orgId: string, teamId: string): void => {
        registry.keep(registry.lookUp({ orgId, teamId, agentId: 'worker' })).ops = 1;
      };
      for (let n = 0; n < groups; n += 1)
        for (const [orgId, teamId] of [
          [`o${n}`, 't'],
          ['acme', `t${n}`],
        ] as const)
          known(orgId, teamId);
      return registry;
    };
    const [many, few] = [registryOf(AGENTS), registryOf(1)];
    const page = { perPage: 10, cursor: undefined };
    for (const read of [
      (registry: AgentRegistry) => overview(registry, { orgId: undefined, ...page }, 0),
      (registry: AgentRegistry) => tree(registry, { orgId: undefined, ...page }),
      (registry: AgentRegistry) => lineages(registry, { orgId: 'acme', agentId: 'nobody', ...page }),
    ])
      expect(quickestMs(() => read(many))).toBeLessThan(20 * quickestMs(() => read(few)) + 1);
  });
});
