import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AgentGroup } from '../../src/core/agent-groups.ts';
import { AgentEntry } from '../../src/core/agents.ts';
import { agentKeyOf, type AgentIdentity, type OpId } from '../../src/core/ids.ts';
import { nextState, OP_STATES, OP_TRIGGERS, type OpState, type OpTrigger } from '../../src/core/op-state.ts';
import { OpsRegistry, type OpFilter, type OpRecord, type OrgPlace } from '../../src/core/ops.ts';

const identity = (agentId: string, orgId = 'acme'): AgentIdentity => ({ orgId, teamId: 'search', agentId });
const orgOf = (orgId: string): AgentGroup => new AgentGroup(orgId, undefined, 1);
const owner = (agentId = 'crawler', org = orgOf('acme')): AgentEntry => {
  const entry = new AgentEntry(identity(agentId, org.orgId), agentKeyOf(identity(agentId, org.orgId)));
  entry.org = org;
  return entry;
};
const id = (text: string): OpId => text as OpId;

test('an operation moves only along the rows of the table, whatever the trigger', () => {
  const moves = OP_STATES.flatMap((from) => OP_TRIGGERS.flatMap((trigger) => {
    const to = nextState(from, trigger);
    return to === undefined ? [] : [`${from} -${trigger}-> ${to}`];
  }));
  expect(moves).toEqual([
    'pending -allow-> running', 'pending -terminate-> terminated',
    'running -pause-> paused', 'running -complete-> completing', 'running -terminate-> terminated',
    'paused -resume-> running', 'paused -terminate-> terminated', 'terminated -terminate-> terminated',
  ]);
});

/** The shortest way into each state. */
const WAY_TO: Readonly<Record<OpState, readonly OpTrigger[]>> = {
  pending: [], running: ['allow'], paused: ['allow', 'pause'], completing: ['allow', 'complete'], terminated: ['terminate'],
};

describe.each(OP_STATES)('from %s', (from) => {
  test.each(OP_TRIGGERS)('%s leaves a record that the table allows, and the time of the move', (trigger) => {
    const registry = new OpsRegistry();
    const slot = registry.ingest(id('t:s'), owner(), 100);
    for (const step of WAY_TO[from]) registry.advance(slot, step, 200);
    const before = registry.recordOf(slot);
    const to = registry.advance(slot, trigger, 300);
    if (to === undefined || to === from) expect(registry.recordOf(slot)).toEqual(before);
    else expect(registry.recordOf(slot)).toEqual({ ...before, state: to, updatedAtMs: 300 });
    expect(before.registeredAtMs).toBe(100);
  });
});

test('a new operation is pending, and both of its times are that of its ingestion', () => {
  const registry = new OpsRegistry();
  const slot = registry.ingest(id('t:s'), owner(), 42);
  expect(registry.recordOf(slot)).toEqual({ opId: 't:s', state: 'pending', registeredAtMs: 42, updatedAtMs: 42, agent: identity('crawler') });
  expect(registry.find(id('t:s'))).toBe(slot);
  expect(registry.find(id('t:other'))).toBeUndefined();
});

test('time that runs backwards is a defect, not a record', () => {
  const registry = new OpsRegistry();
  const slot = registry.ingest(id('t:s'), owner(), 100);
  expect(() => registry.advance(slot, 'allow', 99)).toThrow('the clock handed to the core never runs backwards');
  expect(registry.stateOf(slot)).toBe('pending');
});

test('the sweep takes finished operations of that age, oldest first, and nothing else', () => {
  const registry = new OpsRegistry();
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
  expect([agent.ops, agent.unfinishedOps]).toEqual([2, 2]);
});

test('a sweep that is cut off by its limit goes on where it stopped', () => {
  const registry = new OpsRegistry();
  for (let n = 0; n < 10; n += 1) registry.advance(registry.ingest(id(`t:${n}`), owner(), 0), 'terminate', n);
  const swept: string[] = [];
  const slices = [4, 4, 4].map((limit) => registry.sweep(1_000, 1, limit, (opId) => swept.push(opId)));
  expect(slices).toEqual([4, 4, 2]);
  expect(swept).toEqual(Array.from({ length: 10 }, (_, n) => `t:${n}`));
});

test('terminating again does not make an operation young again', () => {
  const registry = new OpsRegistry();
  const slot = registry.ingest(id('t:s'), owner(), 0);
  registry.advance(slot, 'terminate', 1);
  expect(registry.advance(slot, 'terminate', 50_000)).toBe('terminated');
  expect(registry.sweep(60_001, 60_000, 10, () => {})).toBe(1);
});

// The registry against the plainest thing that could be one: a list of records.
type Model = { ops: Map<string, { state: OpState; registeredAtMs: number; updatedAtMs: number; agentId: string }>; finished: string[]; nowMs: number };
type Real = { registry: OpsRegistry; owners: Map<string, AgentEntry> };
type Step = fc.Command<Model, Real>;

const NEXT: Readonly<Record<string, OpState>> = {
  'pending allow': 'running', 'pending terminate': 'terminated', 'running pause': 'paused', 'running complete': 'completing', 'running terminate': 'terminated',
  'paused resume': 'running', 'paused terminate': 'terminated', 'terminated terminate': 'terminated',
};

const step = (name: string, run: (model: Model, real: Real) => void): Step => ({ check: () => true, run, toString: () => name });

const ingest = (op: string, agentId: string): Step => step(`ingest ${op} by ${agentId}`, (model, { registry, owners }) => {
  if (model.ops.has(op)) return;
  registry.ingest(id(op), owners.get(agentId)!, model.nowMs);
  model.ops.set(op, { state: 'pending', registeredAtMs: model.nowMs, updatedAtMs: model.nowMs, agentId });
});

const advance = (op: string, trigger: OpTrigger): Step => step(`${trigger} ${op}`, (model, { registry }) => {
  const slot = registry.find(id(op));
  const known = model.ops.get(op);
  expect(slot === undefined).toBe(known === undefined);
  if (slot === undefined || known === undefined) return;
  const to = NEXT[`${known.state} ${trigger}`];
  expect(registry.advance(slot, trigger, model.nowMs)).toBe(to);
  if (to === undefined || to === known.state) return;
  model.ops.set(op, { ...known, state: to, updatedAtMs: model.nowMs });
  if (to === 'completing' || to === 'terminated') model.finished.push(op);
});

const pass = (ms: number): Step => step(`${ms} ms pass`, (model) => { model.nowMs += ms; });

const sweep = (ttlMs: number, limit: number): Step => step(`sweep ${ttlMs} ms, at most ${limit}`, (model, { registry }) => {
  const expected: string[] = [];
  while (expected.length < limit && model.finished.length > 0 && model.nowMs - model.ops.get(model.finished[0]!)!.updatedAtMs >= ttlMs) expected.push(model.finished.shift()!);
  const swept: string[] = [];
  expect(registry.sweep(model.nowMs, ttlMs, limit, (opId) => swept.push(opId))).toBe(expected.length);
  expect(swept).toEqual(expected);
  for (const op of expected) model.ops.delete(op);
});

type Lister<P> = (from: P | undefined) => { readonly ops: readonly OpRecord[]; readonly next: P | undefined };

function walk<P>(pageFrom: Lister<P>): OpRecord[] {
  const seen: OpRecord[] = [];
  for (let page = pageFrom(undefined); ; page = pageFrom(page.next)) {
    seen.push(...page.ops);
    if (page.next === undefined) return seen;
  }
}

const ORG_OF: Readonly<Record<string, string>> = { crawler: 'acme', indexer: 'acme', buyer: 'globex' };

const list = (filter: OpFilter, orgId: string | undefined, perPage: number): Step => step(`list ${orgId} ${JSON.stringify(filter)} by ${perPage}`, (model, { registry, owners }) => {
  const org = [...owners.values()].find((entry) => entry.org.orgId === orgId)?.org;
  const seen = org === undefined ? walk<number>((from) => registry.list(filter, perPage, from)) : walk<OrgPlace>((from) => registry.listOfOrg(org, filter, perPage, from));
  const expected = [...model.ops]
    .filter(([, op]) => (filter.state ?? op.state) === op.state && (filter.agentId ?? op.agentId) === op.agentId && (orgId ?? ORG_OF[op.agentId]) === ORG_OF[op.agentId])
    .map(([opId, { state, registeredAtMs, updatedAtMs, agentId }]) => ({ opId, state, registeredAtMs, updatedAtMs, agent: identity(agentId, ORG_OF[agentId]) }));
  // Of one org they come in the order in which they were ingested.
  if (org !== undefined) expect(seen).toEqual(expected);
  else expect([...seen].sort((a, b) => (a.opId < b.opId ? -1 : 1))).toEqual(expected.sort((a, b) => (a.opId < b.opId ? -1 : 1)));
});

const count = step('count', (model, { registry, owners }) => {
  const inState = (state: OpState): number => [...model.ops.values()].filter((op) => op.state === state).length;
  expect(registry.counts).toEqual({ pending: inState('pending'), running: inState('running'), paused: inState('paused'), completing: inState('completing'), terminated: inState('terminated') });
  expect(registry.size).toBe(model.ops.size);
  for (const [agentId, entry] of owners) {
    const own = [...model.ops.values()].filter((op) => op.agentId === agentId);
    expect([entry.ops, entry.unfinishedOps]).toEqual([own.length, own.filter(({ state }) => state !== 'completing' && state !== 'terminated').length]);
  }
});

test('whatever is asked of it and in whatever order, the registry answers as a plain list would', () => {
  const op = fc.integer({ min: 0, max: 11 }).map((n) => `t:${n}`);
  const agent = fc.constantFrom('crawler', 'indexer', 'buyer');
  const steps = fc.commands([
    fc.tuple(op, agent).map(([name, agentId]) => ingest(name, agentId)),
    fc.tuple(op, fc.constantFrom(...OP_TRIGGERS)).map(([name, trigger]) => advance(name, trigger)),
    fc.integer({ min: 0, max: 50 }).map(pass),
    fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 1, max: 4 })).map(([ttlMs, limit]) => sweep(ttlMs, limit)),
    fc.tuple(fc.record({ state: fc.constantFrom(undefined, ...OP_STATES), agentId: fc.constantFrom(undefined, 'crawler', 'nobody') }), fc.constantFrom(undefined, 'acme', 'globex'), fc.integer({ min: 1, max: 5 }))
      .map(([filter, orgId, perPage]) => list(filter, orgId, perPage)),
    fc.constant(count),
  ], { maxCommands: 150 });
  fc.assert(fc.property(steps, (commands) => fc.modelRun(() => {
    const [acme, globex] = [orgOf('acme'), orgOf('globex')];
    const owners = [owner('crawler', acme), owner('indexer', acme), owner('buyer', globex)];
    return {
      model: { ops: new Map(), finished: [], nowMs: 0 },
      real: { registry: new OpsRegistry(), owners: new Map(owners.map((entry) => [entry.identity.agentId, entry])) },
    };
  }, commands)), { numRuns: 150 });
});

test.each(['all', 'its org'])('an operation that exists during a whole walk over %s is seen exactly once, whatever comes and goes meanwhile', (walked) => {
  fc.assert(fc.property(fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 30 })), { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), (changes, perPage) => {
    const registry = new OpsRegistry();
    const [acme, globex] = [orgOf('acme'), orgOf('globex')];
    const pageFrom: Lister<unknown> = walked === 'all'
      ? (from) => registry.list({}, perPage, from as number | undefined)
      : (from) => registry.listOfOrg(acme, {}, perPage, from as OrgPlace | undefined);
    for (let n = 0; n < 30; n += 1) registry.ingest(id(`t:${n}`), owner('crawler', acme), 0);
    const stayed = new Set(Array.from({ length: 30 }, (_, n) => `t:${n}`));
    const pending = changes.entries();
    let fresh = 0;
    const seen = walk<unknown>((from) => {
      const page = pageFrom(from);
      const [, [comes, n]] = pending.next().value ?? [0, [true, 0]];
      // What comes takes the places of what was swept.
      if (comes && fresh < 40) registry.ingest(id(`f:${(fresh += 1)}`), owner('crawler', fresh % 2 === 0 ? acme : globex), 0);
      const slot = registry.find(id(`t:${n}`));
      if (comes || slot === undefined) return page;
      registry.advance(slot, 'terminate', 0);
      registry.sweep(0, 0, 10, () => {});
      stayed.delete(`t:${n}`);
      return page;
    });
    for (const op of stayed) expect(seen.filter(({ opId }) => opId === op)).toHaveLength(1);
    expect(new Set(seen.map(({ opId }) => opId)).size).toBe(seen.length);
  }), { numRuns: 100 });
});

test('the operations of a small org are one page, however many others there are', () => {
  const registry = new OpsRegistry();
  const [big, small] = [orgOf('big'), orgOf('small')];
  const [theirs, ours] = [owner('a', big), owner('a', small)];
  for (let n = 0; n < 250_000; n += 1) registry.ingest(id(`t:${n}`), n % 100_000 === 99_999 ? ours : theirs, n);
  const { ops, next } = registry.listOfOrg(small, {}, 2);
  expect([ops.map(({ opId }) => opId), next]).toEqual([['t:99999', 't:199999'], undefined]);
});

test('more operations than fit one block of slots are kept, found and listed like any other', () => {
  const registry = new OpsRegistry();
  const total = 70_000;
  for (let n = 0; n < total; n += 1) registry.ingest(id(`t:${n}`), owner(), n);
  expect(registry.recordOf(registry.find(id('t:69999'))!)).toMatchObject({ opId: 't:69999', registeredAtMs: 69_999 });
  const { ops, next } = registry.list({}, 1, 65_535);
  expect([ops[0]?.opId, next]).toEqual(['t:65535', 65_536]);
  expect(registry.list({}, 1, 10_000_000)).toEqual({ ops: [], next: undefined });
});
