import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AgentRegistry } from '../../../src/core/agents/agents.ts';
import {
  type AgentIdentity,
  type AgentKey,
  agentKeyOf,
  type OpId,
  type SecretDigest,
} from '../../../src/core/base/ids.ts';
import {
  agentsWithTeams,
  lineages,
  overview,
  stats,
  type Tree,
  type TreeNode,
  tree,
} from '../../../src/core/listings/topology.ts';
import { nextState, OP_STATES, type OpState, type OpTrigger } from '../../../src/core/ops/op-state.ts';
import { type OpSlot, OpsRegistry } from '../../../src/core/ops/ops.ts';
import { HASH_KEY } from '../../support/governor.ts';
import { runs } from '../../support/runs.ts';

const MINUTE_MS = 60_000;

const identities = fc.record({
  orgId: fc.constantFrom('', 'acme', 'globex'),
  teamId: fc.constantFrom('a', 'b'),
  agentId: fc.constantFrom('x', 'y', 'z'),
});
const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('register' as const), agent: identities, parent: fc.option(identities) }),
    },
    fc.record({ do: fc.constant('deregister' as const), agent: identities }),
    fc.record({ do: fc.constant('see' as const), agent: identities }),
    fc.record({ do: fc.constant('begin' as const), agent: identities }),
    fc.record({
      do: fc.constant('move' as const),
      op: fc.nat(20),
      trigger: fc.constantFrom<OpTrigger>('allow', 'pause', 'resume', 'complete', 'terminate'),
    }),
    fc.record({ do: fc.constant('sweep' as const) }),
    fc.record({ do: fc.constant('wait' as const), minutes: fc.integer({ min: 0, max: 4 }) }),
  ),
  { maxLength: 60, size: 'max' },
);

type Step = typeof steps extends fc.Arbitrary<(infer S)[]> ? S : never;
type ModelAgent = {
  readonly identity: AgentIdentity;
  readonly parent: string | undefined;
  seenMinute: number | undefined;
};
type ModelOp = { readonly identity: AgentIdentity; state: OpState; readonly slot: OpSlot; readonly opId: OpId };

/** The registries, and beside them the plainest lists that could say the same. */
class Scene {
  readonly agents = new AgentRegistry();
  readonly ops = new OpsRegistry(HASH_KEY);
  /** In the order of registration. */
  registered: ModelAgent[] = [];
  running: ModelOp[] = [];
  nowMs = 1_000 * MINUTE_MS;
  #made = 0;

  take(step: Step): void {
    switch (step.do) {
      case 'register':
        return this.#register(step.agent, step.parent);
      case 'deregister':
        this.agents.deregister(agentKeyOf(step.agent));
        this.registered = this.registered.filter(({ identity }) => !same(identity, step.agent));
        return;
      case 'see': {
        const known = this.registered.find(({ identity }) => same(identity, step.agent));
        if (known === undefined) return;
        known.seenMinute = this.nowMs / MINUTE_MS;
        return this.agents.touch(this.agents.get(agentKeyOf(step.agent))!, this.nowMs);
      }
      case 'begin': {
        this.#made += 1;
        const opId = `t:${this.#made}` as OpId;
        const slot = this.ops.ingest(opId, this.agents.keep(this.agents.lookUp(step.agent)), this.nowMs);
        this.running.push({ identity: step.agent, state: 'pending', slot, opId });
        return;
      }
      case 'move': {
        const op = this.running[step.op];
        if (op === undefined) return;
        this.ops.advance(op.slot, step.trigger, this.nowMs);
        op.state = nextState(op.state, step.trigger) ?? op.state;
        return;
      }
      case 'sweep':
        this.ops.sweep(this.nowMs, 0, 1_000, (_, owner) => this.agents.dropIfUnused(owner));
        this.running = this.running.filter(({ state }) => state !== 'completing' && state !== 'terminated');
        return;
      case 'wait':
        this.nowMs += step.minutes * MINUTE_MS;
    }
  }

  #register(identity: AgentIdentity, parent: AgentIdentity | null): void {
    this.#made += 1;
    const known = this.registered.find((agent) => same(agent.identity, identity));
    const isAllowed =
      parent !== null &&
      parent.orgId === identity.orgId &&
      this.registered.some((agent) => same(agent.identity, parent)) &&
      !this.#ancestors(parent).includes(agentKeyOf(identity));
    const parentKey = isAllowed ? agentKeyOf(parent) : undefined;
    this.agents.register({
      identity,
      credential: `digest-${this.#made}` as SecretDigest,
      registeredAtMs: this.nowMs,
      parent: parentKey,
    });
    const agent: ModelAgent = { identity, parent: parentKey, seenMinute: known?.seenMinute };
    this.registered =
      known === undefined
        ? [...this.registered, agent]
        : this.registered.map((each) => (each === known ? agent : each));
  }

  #ancestors(identity: AgentIdentity): AgentKey[] {
    const keys: AgentKey[] = [];
    for (let key: string | undefined = agentKeyOf(identity); key !== undefined && !keys.includes(key as AgentKey); ) {
      keys.push(key as AgentKey);
      key = this.registered.find((agent) => agentKeyOf(agent.identity) === key)?.parent;
    }
    return keys;
  }
}

const same = (one: AgentIdentity, other: AgentIdentity): boolean => agentKeyOf(one) === agentKeyOf(other);
const seenCount = (agents: readonly ModelAgent[], nowMs: number): number =>
  agents.filter(({ seenMinute }) => seenMinute !== undefined && seenMinute >= nowMs / MINUTE_MS - 5).length;
const distinct = (values: readonly string[]): number => new Set(values).size;

/** Reads a listing page by page to its end. Every page but the last is full. */
function all<T>(
  perPage: number,
  read: (cursor: string | undefined) => { readonly items: readonly T[]; readonly next: string | undefined },
): T[] {
  const items: T[] = [];
  for (let cursor: string | undefined, pages = 0; pages === 0 || cursor !== undefined; pages += 1) {
    const page = read(cursor);
    items.push(...page.items);
    cursor = page.next;
    if (cursor === undefined) expect(page.items.length).toBeLessThanOrEqual(perPage);
    else expect(page.items.length).toBe(perPage);
    expect(pages).toBeLessThan(100);
  }
  return items;
}

function valueOf<T>(result: { readonly ok: true; readonly value: T } | { readonly ok: false }): T {
  if (!result.ok) throw new Error('a fault');
  return result.value;
}

/** Each agent of a tree with the one above it. */
const linksOf = (nodes: readonly TreeNode[], above = 'none'): string[] =>
  nodes.flatMap(({ agent, children }) => [
    `${agentKeyOf(agent.identity)} below ${above}`,
    ...linksOf(children, agentKeyOf(agent.identity)),
  ]);

describe('topology properties', () => {
  test('after any history the topology matches plain lists, for any page size and org', () => {
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: 1, max: 4 }),
        fc.constantFrom(undefined, '', 'acme', 'globex', 'nobody'),
        (history, perPage, orgId) => {
          const scene = new Scene();
          for (const step of history) scene.take(step);
          const { agents, nowMs } = scene;
          const inOrg = ({ identity }: { readonly identity: AgentIdentity }): boolean =>
            orgId === undefined || identity.orgId === orgId;
          const members = scene.registered.filter(inOrg);
          const keys = members.map(({ identity }) => agentKeyOf(identity));
          /** Orgs, teams and agents. */
          const sizes = [
            distinct(members.flatMap(({ identity }) => (identity.orgId === '' ? [] : [identity.orgId]))),
            distinct(members.map(({ identity }) => `${identity.orgId}/${identity.teamId}`)),
            members.length,
          ];
          /** A deregistered parent is none. */
          const parentOf = (key: string): string | undefined =>
            scene.registered
              .map(({ identity }) => agentKeyOf(identity) as string)
              .find((other) => other === scene.registered.find(({ identity }) => agentKeyOf(identity) === key)?.parent);
          const above = (key: string): string[] => {
            const parent = parentOf(key);
            return parent === undefined ? [] : [parent, ...above(parent)];
          };

          const listed = all(perPage, (cursor) => {
            const {
              agents: items,
              teams,
              next,
              orgCount,
              teamCount,
              agentCount,
            } = valueOf(overview(agents, { orgId, perPage, cursor }, nowMs));
            expect([orgCount, teamCount, agentCount]).toEqual(sizes);
            const teamOf = ({ identity }: { readonly identity: AgentIdentity }): string =>
              `${identity.orgId}/${identity.teamId}`;
            expect(teams.map(({ orgId: org, teamId, agentCount: count }) => [`${org}/${teamId}`, count])).toEqual(
              [...new Set(items.map(teamOf))].map((team) => [
                team,
                members.filter((agent) => teamOf(agent) === team).length,
              ]),
            );
            return { items, next };
          });
          expect(listed.map(({ identity }) => agentKeyOf(identity)).sort()).toEqual([...keys].sort());
          const ofOneOrg = listed
            .filter(({ identity }) => identity.orgId === 'acme')
            .map(({ identity }) => agentKeyOf(identity));
          expect(ofOneOrg).toEqual(keys.filter((key) => key.startsWith('acme/'))); // in the order of registration

          const ofTeam = all(perPage, (cursor) => {
            const { agents: items, next } = valueOf(
              agentsWithTeams(agents, { orgId, teamId: 'a', perPage, cursor }, nowMs),
            );
            return { items, next };
          });
          expect(ofTeam.map(({ identity }) => agentKeyOf(identity)).sort()).toEqual(
            keys.filter((key) => key.split('/')[1] === 'a').sort(),
          );

          const roots = all(perPage, (cursor) => {
            const { roots: items, next } = valueOf(tree(agents, { orgId, perPage, cursor }));
            return { items, next };
          });
          expect(linksOf(roots).sort()).toEqual(keys.map((key) => `${key} below ${parentOf(key) ?? 'none'}`).sort());

          const named = all(perPage, (cursor) => {
            const { lineages: items, next } = valueOf(lineages(agents, { orgId, agentId: 'x', perPage, cursor }));
            return { items, next };
          });
          expect(named.map(({ agent }) => agentKeyOf(agent.identity))).toEqual(
            keys.filter((key) => key.endsWith('/x')),
          );
          for (const { agent, ancestors, descendants } of named) {
            const key = agentKeyOf(agent.identity);
            expect(ancestors.map(({ identity }) => agentKeyOf(identity) as string)).toEqual(above(key));
            const below = descendants.map((each) => [each.depth, agentKeyOf(each.agent.identity)] as const);
            // the nearest first
            expect(below.map(([depth]) => depth)).toEqual(below.map(([depth]) => depth).toSorted((a, b) => a - b));
            expect(below.map(String).sort()).toEqual(
              keys
                .filter((other) => above(other).includes(key))
                .map((other) => `${above(other).indexOf(key) + 1},${other}`)
                .sort(),
            );
          }

          const groups = all(perPage, (cursor) => {
            const {
              groups: items,
              next,
              orgCount,
              teamCount,
              agentsSeen,
              agentCount,
              ops,
            } = valueOf(stats(agents, scene.ops.counts, { orgId, perPage, cursor }, nowMs));
            expect([orgCount, teamCount, agentCount, agentsSeen]).toEqual([...sizes, seenCount(members, nowMs)]);
            expect(ops).toEqual(countsOf(scene.running.filter(inOrg)));
            return { items, next };
          });
          for (const group of groups) {
            const belongs = ({ identity }: { readonly identity: AgentIdentity }): boolean =>
              identity.orgId === group.orgId && (group.teamId === undefined || identity.teamId === group.teamId);
            expect(group.ops).toEqual(countsOf(scene.running.filter(belongs)));
            expect({ agentCount: group.agentCount, agentsSeen: group.agentsSeen }).toEqual({
              agentCount: members.filter(belongs).length,
              agentsSeen: seenCount(members.filter(belongs), nowMs),
            });
          }
          // Groups that have an agent or an operation; others are forgotten.
          const nameOfGroup = (org: string, team: string | undefined): string =>
            orgId === undefined ? org : `${org}/${team}`;
          const known = [...members, ...scene.running.filter(inOrg)].map(({ identity }) =>
            nameOfGroup(identity.orgId, identity.teamId),
          );
          expect(groups.map(({ orgId: org, teamId }) => nameOfGroup(org, teamId)).sort()).toEqual(
            [...new Set(known)].sort(),
          );
        },
      ),
      { numRuns: runs(80) },
    );
  });

  const countsOf = (ops: readonly ModelOp[]): Record<OpState, number> =>
    Object.fromEntries(OP_STATES.map((state) => [state, ops.filter((op) => op.state === state).length])) as Record<
      OpState,
      number
    >;

  test('a page of a tree with rare roots is cut short, and paging still finds all', () => {
    const agents = new AgentRegistry();
    const identityOf = (n: number): AgentIdentity => ({ orgId: 'acme', teamId: 'wide', agentId: `n${n}` });
    for (let n = 0; n < 50_001; n += 1) {
      agents.register({
        identity: identityOf(n),
        credential: `d${n}` as SecretDigest,
        registeredAtMs: 0,
        parent: n === 0 || n === 50_000 ? undefined : agentKeyOf(identityOf(0)),
      });
    }
    const pages: number[] = [];
    let cursor: string | undefined;
    do {
      const { roots, next } = valueOf(tree(agents, { orgId: 'acme', perPage: 50, cursor }));
      pages.push(roots.length);
      cursor = next;
    } while (cursor !== undefined);
    expect(pages).toEqual([1, 0, 1]);
  });

  test('a tree larger than one answer says where it is cut, at any depth', () => {
    const agents = new AgentRegistry();
    const identityOf = (n: number): AgentIdentity => ({ orgId: 'acme', teamId: 'deep', agentId: `n${n}` });
    for (let n = 0; n < 10_000; n += 1) {
      agents.register({
        identity: identityOf(n),
        credential: `d${n}` as SecretDigest,
        registeredAtMs: 0,
        parent: n === 0 ? undefined : agentKeyOf(identityOf(n - 1)),
      });
    }
    const { roots } = valueOf(tree(agents, { orgId: 'acme', perPage: 50, cursor: undefined }));
    let depth = 1;
    let node = roots[0]!;
    for (; node.children.length > 0; node = node.children[0]!) depth += 1;
    expect({ rootCount: roots.length, depth, isCut: node.isCut }).toEqual({ rootCount: 1, depth: 32, isCut: true });
    const {
      lineages: [lineage],
    } = valueOf(lineages(agents, { orgId: 'acme', agentId: 'n5000', perPage: 50, cursor: undefined }));
    expect({
      ancestorCount: lineage?.ancestors.length,
      descendantCount: lineage?.descendants.length,
      isCut: lineage?.isCut,
    }).toEqual({ ancestorCount: 100, descendantCount: 1_000, isCut: true });
  });

  test('a lineage that just fits is whole', () => {
    const agents = new AgentRegistry();
    const identityOf = (n: number): AgentIdentity => ({ orgId: 'acme', teamId: 'deep', agentId: `n${n}` });
    const last = 100 + 1_000 + 1;
    for (let n = 0; n <= last; n += 1) {
      agents.register({
        identity: identityOf(n),
        credential: `d${n}` as SecretDigest,
        registeredAtMs: 0,
        parent: n === 0 ? undefined : agentKeyOf(identityOf(n - 1)),
      });
    }
    const cut = (): (boolean | undefined)[] =>
      ['n100', 'n101'].map(
        (name) =>
          valueOf(lineages(agents, { orgId: 'acme', agentId: name, perPage: 1, cursor: undefined })).lineages[0]?.isCut,
      );
    expect(cut()).toEqual([true, true]); // one descendant too many, one ancestor too many
    agents.deregister(agentKeyOf(identityOf(last)));
    expect(cut()).toEqual([false, true]);
  });

  test('a page of the tree ends after five thousand agents, and the next continues', () => {
    const agents = new AgentRegistry();
    const identityOf = (root: number, n: number): AgentIdentity => ({
      orgId: 'acme',
      teamId: `team-${root}`,
      agentId: `n${n}`,
    });
    for (const [root, below] of [2_999, 2_999, 0].entries()) {
      for (let n = 0; n <= below; n += 1) {
        agents.register({
          identity: identityOf(root, n),
          credential: `d${root}-${n}` as SecretDigest,
          registeredAtMs: 0,
          parent: n === 0 ? undefined : agentKeyOf(identityOf(root, 0)),
        });
      }
    }
    const page = (cursor: string | undefined) => valueOf(tree(agents, { orgId: 'acme', perPage: 50, cursor }));
    const shown = ({ roots }: Tree): unknown[] =>
      roots.map(({ agent, children, isCut }) => [agent.identity.teamId, children.length, isCut]);
    const first = page(undefined);
    expect(shown(first)).toEqual([
      ['team-0', 2_999, false],
      ['team-1', 1_999, true],
    ]);
    const second = page(first.next);
    expect({ shown: shown(second), next: second.next }).toEqual({ shown: [['team-2', 0, false]], next: undefined });
  });
});
