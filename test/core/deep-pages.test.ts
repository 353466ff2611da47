/** Pages of long listings: what they cost is measured in bench/checks.ts. */
import { describe, expect, test } from 'vitest';
import type { AgentRegistry } from '../../src/core/agents/agents.ts';
import { agentKeyOf, type SecretDigest } from '../../src/core/base/ids.ts';
import type { Governor } from '../../src/core/governor.ts';
import { agentsWithTeams, lineages, overview, stats, tree } from '../../src/core/listings/topology.ts';
import { ADMIN, openGovernor } from '../support/governor.ts';

const AGENTS = 100_000;
const NO_OPS = { pending: 0, running: 0, paused: 0, completing: 0, terminated: 0 };

/** Registers a huge org with a huge team, and behind it as many orgs of one agent each, all of one name. */
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
  ])('%s has a first page and one at its end', (_listing, read, deepCursor) => {
    expect({ isOk: read(undefined).ok, isDeepOk: read(deepCursor).ok }).toEqual({ isOk: true, isDeepOk: true });
  });
});
