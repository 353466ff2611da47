import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AgentRegistry } from '../../src/core/agents.ts';
import { agentKeyOf, type AgentIdentity, type AgentKey, type OpId, type SecretDigest } from '../../src/core/ids.ts';
import { OpsRegistry, type OpSlot } from '../../src/core/ops.ts';
import { nextState, OP_STATES, type OpState, type OpTrigger } from '../../src/core/op-state.ts';
import { agentPage, lineages, overview, stats, tree, type TreeNode } from '../../src/core/topology.ts';
import { HASH_KEY } from '../support/governor.ts';

const MINUTE_MS = 60_000;

const identities = fc.record({ orgId: fc.constantFrom('', 'acme', 'globex'), teamId: fc.constantFrom('a', 'b'), agentId: fc.constantFrom('x', 'y', 'z') });
const steps = fc.array(fc.oneof(
  fc.record({ do: fc.constant('register' as const), agent: identities, parent: fc.option(identities) }),
  fc.record({ do: fc.constant('deregister' as const), agent: identities }),
  fc.record({ do: fc.constant('see' as const), agent: identities }),
  fc.record({ do: fc.constant('begin' as const), agent: identities }),
  fc.record({ do: fc.constant('move' as const), op: fc.nat(20), trigger: fc.constantFrom<OpTrigger>('allow', 'pause', 'resume', 'complete', 'terminate') }),
  fc.record({ do: fc.constant('sweep' as const) }),
  fc.record({ do: fc.constant('wait' as const), minutes: fc.integer({ min: 0, max: 4 }) }),
), { maxLength: 60 });

type Step = typeof steps extends fc.Arbitrary<(infer S)[]> ? S : never;
type ModelAgent = { readonly identity: AgentIdentity; readonly parent: string | undefined; seenMinute: number | undefined };
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
      case 'register': return this.#register(step.agent, step.parent);
      case 'deregister':
        this.agents.deregister(agentKeyOf(step.agent));
        this.registered = this.registered.filter(({ identity }) => !same(identity, step.agent));
        return;
      case 'see': {
        const known = this.registered.find(({ identity }) => same(identity, step.agent));
        if (known === undefined) return;
        known.seenMinute = this.nowMs / MINUTE_MS;
        return this.agents.saw(this.agents.get(agentKeyOf(step.agent))!, this.nowMs);
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
        this.ops.sweep(this.nowMs, 0, 1_000, (_, owner) => this.agents.forgetIfUnused(owner));
        this.running = this.running.filter(({ state }) => state !== 'completing' && state !== 'terminated');
        return;
      case 'wait': this.nowMs += step.minutes * MINUTE_MS;
    }
  }

  #register(identity: AgentIdentity, parent: AgentIdentity | null): void {
    this.#made += 1;
    const known = this.registered.find((agent) => same(agent.identity, identity));
    const isAllowed = parent !== null && parent.orgId === identity.orgId && this.registered.some((agent) => same(agent.identity, parent)) && !this.#ancestors(parent).includes(agentKeyOf(identity));
    const parentKey = isAllowed ? agentKeyOf(parent) : undefined;
    this.agents.register({ identity, credential: `digest-${this.#made}` as SecretDigest, registeredAtMs: this.nowMs, parent: parentKey });
    const agent: ModelAgent = { identity, parent: parentKey, seenMinute: known?.seenMinute };
    this.registered = known === undefined ? [...this.registered, agent] : this.registered.map((each) => (each === known ? agent : each));
  }

  #ancestors(identity: AgentIdentity): AgentKey[] {
    const keys: AgentKey[] = [];
    for (let key: string | undefined = agentKeyOf(identity); key !== undefined && !keys.includes(key as AgentKey);) {
      keys.push(key as AgentKey);
      key = this.registered.find((agent) => agentKeyOf(agent.identity) === key)?.parent;
    }
    return keys;
  }
}

const same = (one: AgentIdentity, other: AgentIdentity): boolean => agentKeyOf(one) === agentKeyOf(other);
const seenCount = (agents: readonly ModelAgent[], nowMs: number): number => agents.filter(({ seenMinute }) => seenMinute !== undefined && seenMinute >= nowMs / MINUTE_MS - 5).length;
const distinct = (values: readonly string[]): number => new Set(values).size;

/** Reads a listing page by page to its end. */
function all<T>(read: (cursor: string | undefined) => { readonly items: readonly T[]; readonly next: string | undefined }): T[] {
  const items: T[] = [];
  for (let cursor: string | undefined, pages = 0; pages === 0 || cursor !== undefined; pages += 1) {
    const page = read(cursor);
    items.push(...page.items);
    cursor = page.next;
    expect(pages).toBeLessThan(100);
  }
  return items;
}

function valueOf<T>(result: { readonly ok: true; readonly value: T } | { readonly ok: false }): T {
  if (!result.ok) throw new Error('a fault');
  return result.value;
}

const keysOf = (nodes: readonly TreeNode[]): string[] => nodes.flatMap(({ agent, children }) => [agentKeyOf(agent.identity), ...keysOf(children)]);

test('the topology says what plain lists would say, after any history, at any page size and for any org', () => {
  fc.assert(fc.property(steps, fc.integer({ min: 1, max: 4 }), fc.constantFrom(undefined, '', 'acme', 'globex', 'nobody'), (history, perPage, orgId) => {
    const scene = new Scene();
    for (const step of history) scene.take(step);
    const { agents, nowMs } = scene;
    const inOrg = ({ identity }: { readonly identity: AgentIdentity }): boolean => orgId === undefined || identity.orgId === orgId;
    const members = scene.registered.filter(inOrg);
    const keys = members.map(({ identity }) => agentKeyOf(identity));

    const listed = all((cursor) => {
      const { agents: items, next, orgCount, teamCount, agentCount } = valueOf(overview(agents, orgId, { perPage, cursor }, nowMs));
      expect([orgCount, teamCount, agentCount]).toEqual([
        distinct(members.flatMap(({ identity }) => (identity.orgId === '' ? [] : [identity.orgId]))),
        distinct(members.map(({ identity }) => `${identity.orgId}/${identity.teamId}`)),
        members.length,
      ]);
      return { items, next };
    });
    expect(listed.map(({ identity }) => agentKeyOf(identity)).sort()).toEqual([...keys].sort());
    const ofOneOrg = listed.filter(({ identity }) => identity.orgId === 'acme').map(({ identity }) => agentKeyOf(identity));
    expect(ofOneOrg).toEqual(keys.filter((key) => key.startsWith('acme/'))); // in the order of registration

    const ofTeam = all((cursor) => {
      const { agents: items, next } = valueOf(agentPage(agents, orgId, 'a', { perPage, cursor }, nowMs));
      return { items, next };
    });
    expect(ofTeam.map(({ identity }) => agentKeyOf(identity)).sort()).toEqual(keys.filter((key) => key.split('/')[1] === 'a').sort());

    const roots = all((cursor) => {
      const { roots: items, next } = valueOf(tree(agents, orgId, { perPage, cursor }));
      return { items, next };
    });
    expect(keysOf(roots).sort()).toEqual([...keys].sort());

    const named = all((cursor) => {
      const { lineages: items, next } = valueOf(lineages(agents, orgId, 'x', { perPage, cursor }));
      return { items, next };
    });
    expect(named.map(({ agent }) => agentKeyOf(agent.identity)).sort()).toEqual(keys.filter((key) => key.endsWith('/x')).sort());
    for (const { agent, ancestors, descendants } of named) {
      const below = descendants.map((each) => agentKeyOf(each.agent.identity));
      for (const { identity } of ancestors) expect(below).not.toContain(agentKeyOf(identity));
      const parent = scene.registered.find(({ identity }) => same(identity, agent.identity))?.parent;
      expect(ancestors.slice(0, 1).map(({ identity }) => agentKeyOf(identity) as string)).toEqual(scene.registered.some(({ identity }) => agentKeyOf(identity) === parent) ? [parent] : []);
    }

    const groups = all((cursor) => {
      const { groups: items, next, agentsSeen, agentCount, ops } = valueOf(stats(agents, scene.ops.counts, orgId, { perPage, cursor }, nowMs));
      expect([agentsSeen, agentCount]).toEqual([seenCount(members, nowMs), members.length]);
      expect(ops).toEqual(countsOf(scene.running.filter(inOrg)));
      return { items, next };
    });
    for (const group of groups) {
      const belongs = ({ identity }: { readonly identity: AgentIdentity }): boolean => identity.orgId === group.orgId && (group.teamId === undefined || identity.teamId === group.teamId);
      expect(group.ops).toEqual(countsOf(scene.running.filter(belongs)));
      expect([group.agentCount, group.agentsSeen]).toEqual([members.filter(belongs).length, seenCount(members.filter(belongs), nowMs)]);
    }
    expect(distinct(groups.map(({ orgId: org, teamId }) => `${org}/${teamId}`))).toBe(groups.length);
  }), { numRuns: 300 });
});

const countsOf = (ops: readonly ModelOp[]): Record<OpState, number> =>
  Object.fromEntries(OP_STATES.map((state) => [state, ops.filter((op) => op.state === state).length])) as Record<OpState, number>;

test('where roots are rare a page of the tree is cut short rather than long to make, and all are found in the end', () => {
  const agents = new AgentRegistry();
  const identityOf = (n: number): AgentIdentity => ({ orgId: 'acme', teamId: 'wide', agentId: `n${n}` });
  for (let n = 0; n < 50_001; n += 1) {
    agents.register({ identity: identityOf(n), credential: `d${n}` as SecretDigest, registeredAtMs: 0, parent: n === 0 || n === 50_000 ? undefined : agentKeyOf(identityOf(0)) });
  }
  const pages: number[] = [];
  let cursor: string | undefined;
  do {
    const { roots, next } = valueOf(tree(agents, 'acme', { perPage: 50, cursor }));
    pages.push(roots.length);
    cursor = next;
  } while (cursor !== undefined);
  expect(pages).toEqual([1, 0, 1]);
});

test('a tree that is larger than one answer says where it is cut, and no chain is too deep for it', () => {
  const agents = new AgentRegistry();
  const identityOf = (n: number): AgentIdentity => ({ orgId: 'acme', teamId: 'deep', agentId: `n${n}` });
  for (let n = 0; n < 10_000; n += 1) {
    agents.register({ identity: identityOf(n), credential: `d${n}` as SecretDigest, registeredAtMs: 0, parent: n === 0 ? undefined : agentKeyOf(identityOf(n - 1)) });
  }
  const { roots } = valueOf(tree(agents, 'acme', { perPage: 50, cursor: undefined }));
  let depth = 1;
  let node = roots[0]!;
  for (; node.children.length > 0; node = node.children[0]!) depth += 1;
  expect([roots.length, depth, node.isCut]).toEqual([1, 32, true]);
  const { lineages: [lineage] } = valueOf(lineages(agents, 'acme', 'n5000', { perPage: 50, cursor: undefined }));
  expect([lineage?.ancestors.length, lineage?.isCut]).toEqual([100, true]);
});
