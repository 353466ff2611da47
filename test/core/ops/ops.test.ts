import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AgentEntry } from '../../../src/core/agents/agent-entry.ts';
import { AgentRegistry } from '../../../src/core/agents/agents.ts';
import type { AgentIdentity, OpId } from '../../../src/core/base/ids.ts';
import { type OpFilter, pageOfOps as slotsOfOps } from '../../../src/core/listings/ops-page.ts';
import { nextState, OP_STATES, OP_TRIGGERS, type OpState, type OpTrigger } from '../../../src/core/ops/op-state.ts';
import type { OpRecord } from '../../../src/core/ops/op-view.ts';
import { OpsRegistry } from '../../../src/core/ops/ops.ts';
import { HASH_KEY } from '../../support/governor.ts';
import { UNCHECKED } from '../../support/ops.ts';
import { runs } from '../../support/runs.ts';

const identity = (agentId: string, orgId = 'acme'): AgentIdentity => ({ orgId, teamId: 'search', agentId });
const owner = (agentId = 'crawler', orgId = 'acme', agents = new AgentRegistry()): AgentEntry =>
  agents.keep(agents.lookUp(identity(agentId, orgId)));
const id = (text: string): OpId => text as OpId;

function pageOfOps(registries: Parameters<typeof slotsOfOps>[0], asked: Parameters<typeof slotsOfOps>[1]) {
  const page = slotsOfOps(registries, asked);
  return page === undefined ? undefined : { ...page, items: page.items.map((slot) => registries.ops.recordOf(slot)) };
}

describe('ops', () => {
  test('an operation moves only along the rows of the table, whatever the trigger', () => {
    const moves = OP_STATES.flatMap((from) =>
      OP_TRIGGERS.flatMap((trigger) => {
        const to = nextState(from, trigger);
        return to === undefined ? [] : [`${from} -${trigger}-> ${to}`];
      }),
    );
    expect(moves).toEqual([
      'pending -allow-> running',
      'pending -terminate-> terminated',
      'running -pause-> paused',
      'running -complete-> completing',
      'running -terminate-> terminated',
      'paused -resume-> running',
      'paused -terminate-> terminated',
      'terminated -terminate-> terminated',
    ]);
  });

  /** The shortest way into each state. */
  const WAY_TO: Readonly<Record<OpState, readonly OpTrigger[]>> = {
    pending: [],
    running: ['allow'],
    paused: ['allow', 'pause'],
    completing: ['allow', 'complete'],
    terminated: ['terminate'],
  };

  describe.each(OP_STATES)('from %s', (from) => {
    test.each(OP_TRIGGERS)('%s leaves a record that the table allows and the time of the move', (trigger) => {
      const registry = new OpsRegistry(HASH_KEY);
      const slot = registry.ingest(id('t:s'), owner(), 100);
      for (const step of WAY_TO[from]) registry.advance(slot, step, 200);
      const before = registry.recordOf(slot);
      const to = registry.advance(slot, trigger, 300);
      const ended = to === 'completing' ? 'completed' : to === 'terminated' ? 'terminated' : undefined;
      if (to === undefined || to === from) expect(registry.recordOf(slot)).toEqual(before);
      else expect(registry.recordOf(slot)).toEqual({ ...before, state: to, updatedAtMs: 300, ended });
      expect(before.registeredAtMs).toBe(100);
    });
  });

  test('a new operation is pending, and both of its times are its ingestion', () => {
    const registry = new OpsRegistry(HASH_KEY);
    const slot = registry.ingest(id('t:s'), owner(), 42);
    expect(registry.recordOf(slot)).toEqual({
      ...UNCHECKED,
      opId: 't:s',
      state: 'pending',
      registeredAtMs: 42,
      updatedAtMs: 42,
      agent: identity('crawler'),
    });
    expect(registry.find(id('t:s'), 'acme')).toBe(slot);
    expect(registry.find(id('t:other'), 'acme')).toBeUndefined();
  });

  test('time that runs backwards is a defect, not a record', () => {
    const registry = new OpsRegistry(HASH_KEY);
    const slot = registry.ingest(id('t:s'), owner(), 100);
    expect(() => registry.advance(slot, 'allow', 99)).toThrow('the clock handed to the core never runs backwards');
    expect(registry.stateOf(slot)).toBe('pending');
  });

  test('the sweep takes finished operations of that age, oldest first, and nothing else', () => {
    const registry = new OpsRegistry(HASH_KEY);
    const agent = owner();
    const finish = (name: string, trigger: OpTrigger | undefined, atMs: number): void => {
      const slot = registry.ingest(id(name), agent, 0);
      registry.advance(slot, 'allow', 1);
      if (trigger !== undefined) registry.advance(slot, trigger, atMs);
    };
    finish('t:terminated', 'terminate', 10);
    finish('t:running', undefined, 0);
    finish('t:completing', 'complete', 20);
    finish('t:paused', 'pause', 20);
    finish('t:young', 'terminate', 30);
    const swept: string[] = [];
    const sweep = (nowMs: number, limit = 100): string[] => {
      swept.length = 0;
      registry.sweep(nowMs, 60_000, limit, (opId) => swept.push(opId));
      return [...swept];
    };
    expect(sweep(60_009)).toEqual([]);
    expect(sweep(60_010)).toEqual(['t:terminated']);
    expect(sweep(60_029)).toEqual(['t:completing']);
    expect(sweep(1e12)).toEqual(['t:young']);
    expect(registry.counts).toEqual({ pending: 0, running: 1, paused: 1, completing: 0, terminated: 0 });
    expect({ ops: agent.ops, unfinishedOps: agent.unfinishedOps }).toEqual({ ops: 2, unfinishedOps: 2 });
  });

  test('a sweep cut off by its limit continues where it stopped', () => {
    const registry = new OpsRegistry(HASH_KEY);
    for (let n = 0; n < 10; n += 1) registry.advance(registry.ingest(id(`t:${n}`), owner(), 0), 'terminate', n);
    const swept: string[] = [];
    const slices = [4, 4, 4].map((limit) => registry.sweep(1_000, 1, limit, (opId) => swept.push(opId)));
    expect(slices).toEqual([4, 4, 2]);
    expect(swept).toEqual(Array.from({ length: 10 }, (_, n) => `t:${n}`));
  });

  test("terminating again does not restart an operation's age", () => {
    const registry = new OpsRegistry(HASH_KEY);
    const slot = registry.ingest(id('t:s'), owner(), 0);
    registry.advance(slot, 'terminate', 1);
    expect(registry.advance(slot, 'terminate', 50_000)).toBe('terminated');
    expect(registry.sweep(60_001, 60_000, 10, () => {})).toBe(1);
  });

  // The registry against the plainest thing that could be one: a list of records.
  type Model = {
    ops: Map<string, { state: OpState; registeredAtMs: number; updatedAtMs: number; agentId: string }>;
    finished: string[];
    nowMs: number;
  };
  type Real = { registry: OpsRegistry; agents: AgentRegistry; owners: Map<string, AgentEntry> };
  type Step = fc.Command<Model, Real>;

  const NEXT: Readonly<Record<string, OpState>> = {
    'pending allow': 'running',
    'pending terminate': 'terminated',
    'running pause': 'paused',
    'running complete': 'completing',
    'running terminate': 'terminated',
    'paused resume': 'running',
    'paused terminate': 'terminated',
    'terminated terminate': 'terminated',
  };

  const step = (name: string, run: (model: Model, real: Real) => void): Step => ({
    check: () => true,
    run,
    toString: () => name,
  });

  const ingest = (op: string, agentId: string): Step =>
    step(`ingest ${op} by ${agentId}`, (model, { registry, owners }) => {
      const key = `${ORG_OF[agentId]}/${op}`;
      if (model.ops.has(key)) return;
      registry.ingest(id(op), owners.get(agentId)!, model.nowMs);
      model.ops.set(key, { state: 'pending', registeredAtMs: model.nowMs, updatedAtMs: model.nowMs, agentId });
    });

  const advance = (op: string, orgId: string, trigger: OpTrigger): Step =>
    step(`${trigger} ${op} of ${orgId}`, (model, { registry }) => {
      const key = `${orgId}/${op}`;
      const slot = registry.find(id(op), orgId);
      const known = model.ops.get(key);
      expect(slot === undefined).toBe(known === undefined);
      if (slot === undefined || known === undefined) return;
      const to = NEXT[`${known.state} ${trigger}`];
      expect(registry.advance(slot, trigger, model.nowMs)).toBe(to);
      if (to === undefined || to === known.state) return;
      model.ops.set(key, { ...known, state: to, updatedAtMs: model.nowMs });
      if (to === 'completing' || to === 'terminated') model.finished.push(key);
    });

  const pass = (ms: number): Step =>
    step(`${ms} ms pass`, (model) => {
      model.nowMs += ms;
    });

  const sweep = (ttlMs: number, limit: number): Step =>
    step(`sweep ${ttlMs} ms, at most ${limit}`, (model, { registry }) => {
      const expected: string[] = [];
      while (
        expected.length < limit &&
        model.finished.length > 0 &&
        model.nowMs - model.ops.get(model.finished[0]!)!.updatedAtMs >= ttlMs
      )
        expected.push(model.finished.shift()!);
      const swept: string[] = [];
      const onSwept = (opId: string, { identity: { orgId } }: AgentEntry) => swept.push(`${orgId}/${opId}`);
      expect(registry.sweep(model.nowMs, ttlMs, limit, onSwept)).toBe(expected.length);
      expect(swept).toEqual(expected);
      for (const op of expected) model.ops.delete(op);
    });

  function walk(pageFrom: (cursor: string | undefined) => ReturnType<typeof pageOfOps>): OpRecord[] {
    const seen: OpRecord[] = [];
    for (let page = pageFrom(undefined)!; ; page = pageFrom(page.next)!) {
      seen.push(...page.items);
      if (page.next === undefined) return seen;
    }
  }

  /** The agents of the model: of one name in two orgs, and of two names in one team. */
  const ORG_OF: Readonly<Record<string, string>> = { crawler: 'acme', indexer: 'acme', buyer: 'globex' };

  const nameOf = ({ agent, opId }: Pick<OpRecord, 'agent'> & { readonly opId: string }) => `${agent.orgId}/${opId}`;
  const byName = (a: Parameters<typeof nameOf>[0], b: Parameters<typeof nameOf>[0]) => (nameOf(a) < nameOf(b) ? -1 : 1);

  const list = (filter: OpFilter, perPage: number): Step =>
    step(`list ${JSON.stringify(filter)} by ${perPage}`, (model, { registry, agents }) => {
      const seen = walk((cursor) => pageOfOps({ ops: registry, agents }, { ...filter, perPage, cursor }));
      const expected = [...model.ops]
        .filter(
          ([, op]) =>
            (filter.state ?? op.state) === op.state &&
            (filter.agentId ?? op.agentId) === op.agentId &&
            (filter.teamId ?? 'search') === 'search' &&
            (filter.orgId ?? ORG_OF[op.agentId]) === ORG_OF[op.agentId],
        )
        .map(([key, { state, registeredAtMs, updatedAtMs, agentId }]) => ({
          ...UNCHECKED,
          opId: key.slice(key.indexOf('/') + 1),
          state,
          registeredAtMs,
          updatedAtMs,
          agent: identity(agentId, ORG_OF[agentId]),
          ended: state === 'completing' ? 'completed' : state === 'terminated' ? 'terminated' : undefined,
        }));
      // With one org, operations come in the order in which they were ingested.
      if (filter.orgId !== undefined) expect(seen).toEqual(expected);
      else expect([...seen].sort(byName)).toEqual(expected.sort(byName));
    });

  const count = step('count', (model, { registry, owners }) => {
    const inState = (state: OpState): number => [...model.ops.values()].filter((op) => op.state === state).length;
    expect(registry.counts).toEqual({
      pending: inState('pending'),
      running: inState('running'),
      paused: inState('paused'),
      completing: inState('completing'),
      terminated: inState('terminated'),
    });
    expect(registry.size).toBe(model.ops.size);
    for (const [agentId, entry] of owners) {
      const own = [...model.ops.values()].filter((op) => op.agentId === agentId);
      expect({ ops: entry.ops, unfinishedOps: entry.unfinishedOps }).toEqual({
        ops: own.length,
        unfinishedOps: own.filter(({ state }) => state !== 'completing' && state !== 'terminated').length,
      });
    }
  });

  test('any sequence of calls is answered as a plain list would', () => {
    const op = fc.integer({ min: 0, max: 11 }).map((n) => `t:${n}`);
    const agent = fc.constantFrom('crawler', 'indexer', 'buyer');
    const steps = fc.commands(
      [
        fc.tuple(op, agent).map(([name, agentId]) => ingest(name, agentId)),
        fc
          .tuple(op, fc.constantFrom('acme', 'globex'), fc.constantFrom(...OP_TRIGGERS))
          .map(([name, orgId, trigger]) => advance(name, orgId, trigger)),
        fc.integer({ min: 0, max: 50 }).map(pass),
        fc
          .tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 1, max: 4 }))
          .map(([ttlMs, limit]) => sweep(ttlMs, limit)),
        fc
          .tuple(
            fc.record({
              state: fc.constantFrom(undefined, ...OP_STATES),
              agentId: fc.constantFrom(undefined, 'crawler', 'buyer', 'nobody'),
              teamId: fc.constantFrom(undefined, 'search', 'none'),
              orgId: fc.constantFrom(undefined, 'acme', 'globex', 'nowhere'),
            }),
            fc.integer({ min: 1, max: 5 }),
          )
          .map(([filter, perPage]) => list(filter, perPage)),
        fc.constant(count),
      ],
      { maxCommands: 150, size: 'max' },
    );
    fc.assert(
      fc.property(steps, (commands) =>
        fc.modelRun(() => {
          const agents = new AgentRegistry();
          const owners = Object.entries(ORG_OF).map(([agentId, orgId]) => owner(agentId, orgId, agents));
          return {
            model: { ops: new Map(), finished: [], nowMs: 0 },
            real: {
              registry: new OpsRegistry(HASH_KEY),
              agents,
              owners: new Map(owners.map((entry) => [entry.identity.agentId, entry])),
            },
          };
        }, commands),
      ),
      { numRuns: runs(50) },
    );
  });

  test.each<[string, OpFilter]>([
    ['all', {}],
    ['its org', { orgId: 'acme' }],
    ['its team', { teamId: 'search' }],
    ['its agent', { orgId: 'acme', agentId: 'crawler' }],
    ['its state', { state: 'pending' }],
  ])('an operation that exists throughout a walk over %s is seen exactly once', (_walked, filter) => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 30 })), { maxLength: 60, size: 'max' }),
        fc.integer({ min: 1, max: 4 }),
        (changes, perPage) => {
          const registry = new OpsRegistry(HASH_KEY);
          const agents = new AgentRegistry();
          const [ours, theirs] = [owner('crawler', 'acme', agents), owner('crawler', 'globex', agents)];
          for (let n = 0; n < 30; n += 1) registry.ingest(id(`t:${n}`), ours, 0);
          const stayed = new Set(Array.from({ length: 30 }, (_, n) => `t:${n}`));
          const pending = changes.entries();
          let fresh = 0;
          const seen = walk((cursor) => {
            const page = pageOfOps({ ops: registry, agents }, { ...filter, perPage, cursor });
            const [, [comes, n]] = pending.next().value ?? [0, [true, 0]];
            // New operations take the places of swept ones.
            if (comes && fresh < 40) registry.ingest(id(`f:${(fresh += 1)}`), fresh % 2 === 0 ? ours : theirs, 0);
            const slot = registry.find(id(`t:${n}`), 'acme');
            if (comes || slot === undefined) return page;
            registry.advance(slot, 'terminate', 0);
            registry.sweep(0, 0, 10, () => {});
            stayed.delete(`t:${n}`);
            return page;
          });
          for (const op of stayed) expect(seen.filter(({ opId }) => opId === op)).toHaveLength(1);
          expect(new Set(seen.map(({ opId }) => opId)).size).toBe(seen.length);
        },
      ),
      { numRuns: runs(30) },
    );
  });

  describe('among a quarter of a million running operations of one big org', () => {
    const registry = new OpsRegistry(HASH_KEY);
    const agents = new AgentRegistry();
    const keep = (orgId: string, teamId: string, agentId: string): AgentEntry =>
      agents.keep(agents.lookUp({ orgId, teamId, agentId }));
    const [many, team, agent, small] = [
      keep('big', 'wide', 'worker'),
      keep('big', 'rare', 'other'),
      keep('big', 'wide', 'single'),
      keep('small', 'wide', 'rare'),
    ];
    for (let n = 0; n < 250_000; n += 1) {
      const slot = registry.ingest(
        id(`t:${n}`),
        n === 99_999 ? small : n === 149_999 ? team : n === 199_999 ? agent : many,
        n,
      );
      registry.advance(slot, 'allow', n);
      if (n % 100_000 === 50_000) registry.advance(slot, 'pause', n);
    }

    test.each<[string, OpFilter, readonly string[]]>([
      ['the operations of a small org', { orgId: 'small' }, ['t:99999']],
      ['those of a team, in its org', { orgId: 'big', teamId: 'rare' }, ['t:149999']],
      ['those of a team name', { teamId: 'rare' }, ['t:149999']],
      ['those of an agent, in its org', { orgId: 'big', agentId: 'single' }, ['t:199999']],
      ['those of an agent name', { agentId: 'single' }, ['t:199999']],
      ['those of an agent in a rare state', { agentId: 'single', state: 'running' }, ['t:199999']],
      ['those in a rare state', { state: 'paused' }, ['t:50000', 't:150000']],
      ['those in a state that none is in', { orgId: 'big', state: 'pending' }, []],
      ['those of nobody', { teamId: 'wide', agentId: 'nobody' }, []],
    ])('%s are one page', (_which, filter, expected) => {
      const page = pageOfOps({ ops: registry, agents }, { ...filter, perPage: 10, cursor: undefined })!;
      expect({ items: page.items.map(({ opId }) => opId), next: page.next }).toEqual({
        items: expected,
        next: undefined,
      });
    });

    test('finds what is rare within one org in pages of bounded work', () => {
      const pages: string[][] = [];
      for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
        const page = pageOfOps({ ops: registry, agents }, { orgId: 'big', state: 'paused', perPage: 10, cursor })!;
        pages.push(page.items.map(({ opId }) => opId));
        cursor = page.next;
      }
      expect(pages).toEqual([['t:50000'], ['t:150000'], []]);
    });
  });

  test("finds an agent's operations among very many teams in pages of bounded work", () => {
    const registry = new OpsRegistry(HASH_KEY);
    const agents = new AgentRegistry();
    for (let n = 0; n < 30_000; n += 1) {
      const entry = agents.keep(
        agents.lookUp({ orgId: 'acme', teamId: `t${n}`, agentId: n % 29_999 === 0 ? 'rare' : 'worker' }),
      );
      registry.ingest(id(`t:${n}`), entry, n);
    }
    const page = (cursor: string | undefined) =>
      pageOfOps({ ops: registry, agents }, { orgId: 'acme', agentId: 'rare', perPage: 10, cursor })!;
    const first = page(undefined); // to look into a team counts as five steps, of which a page has 100,000
    const second = page(first.next);
    expect([first.items, second.items].map((items) => items.map(({ opId }) => opId))).toEqual([['t:0'], ['t:29999']]);
    expect(second.next).toBeUndefined();
  });

  test('the few operations left of very many are one page', () => {
    const registry = new OpsRegistry(HASH_KEY);
    const agent = owner();
    for (let n = 0; n < 120_000; n += 1) {
      const slot = registry.ingest(id(`t:${n}`), agent, 0);
      if (n % 60_000 !== 59_999) registry.advance(slot, 'terminate', 0);
    }
    registry.sweep(0, 0, 120_000, () => {});
    expect(registry.list(undefined, 10).ops.map((slot) => registry.idOf(slot))).toEqual(['t:59999', 't:119999']);
  });

  test('resumes after a place whose operation is gone in pages of bounded work', () => {
    const registry = new OpsRegistry(HASH_KEY);
    const agents = new AgentRegistry();
    const agent = owner('crawler', 'acme', agents);
    for (let n = 0; n < 150_000; n += 1) registry.ingest(id(`t:${n}`), agent, 0);
    const { next } = registry.walk(
      'org',
      agent.org,
      undefined,
      1,
      { steps: 1_000_000 },
      { from: 120_001, slot: 119_999, number: 120_000 },
    );
    registry.advance(next!.slot as never, 'terminate', 0);
    registry.sweep(0, 0, 1, () => {});
    const budget = { steps: 100_000 };
    const seeking = registry.walk('org', agent.org, undefined, 2, budget, next);
    expect({ ops: seeking.ops, steps: budget.steps }).toEqual({ ops: [], steps: 0 });
    const found = registry.walk('org', agent.org, undefined, 2, { steps: 100_000 }, seeking.next);
    expect(found.ops.map((slot) => registry.idOf(slot))).toEqual(['t:120002', 't:120003']);
  });

  test('a cursor from before a restart continues the list or ends it without an error', () => {
    const registry = new OpsRegistry(HASH_KEY);
    const agents = new AgentRegistry();
    const agent = owner('crawler', 'acme', agents);
    for (const name of ['t:1', 't:2', 't:3']) registry.ingest(id(name), agent, 0);
    const page = (cursor: string) => {
      const { items, next } =
        pageOfOps({ ops: registry, agents }, { orgId: 'acme', perPage: 10, cursor }) ?? expect.unreachable();
      return [items.map(({ opId }) => opId), next];
    };
    expect(page('1.0.900001.900000.900001')).toEqual([[], undefined]);
    expect(page('1.0.2.900000.900001')).toEqual([['t:2', 't:3'], undefined]);
  });

  test('keeps, finds and lists more operations than fit one block of slots', () => {
    const registry = new OpsRegistry(HASH_KEY);
    const total = 70_000;
    const agent = owner();
    for (let n = 0; n < total; n += 1) registry.ingest(id(`t:${n}`), agent, n);
    expect(registry.recordOf(registry.find(id('t:69999'), 'acme')!)).toMatchObject({
      opId: 't:69999',
      registeredAtMs: 69_999,
    });
    const { ops, next } = registry.list(undefined, 1, 65_535);
    expect({ opId: ops.map((slot) => registry.idOf(slot)), next }).toEqual({ opId: ['t:65535'], next: 65_536 });
    expect(registry.list(undefined, 1, 10_000_000)).toEqual({ ops: [], next: undefined });
  });
});
