import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  APPROVAL_STATES,
  APPROVAL_TRIGGERS,
  type Approval,
  nextApprovalState,
} from '../../../src/core/approvals/approval.ts';
import type { Lineage } from '../../../src/core/approvals/approvers.ts';
import { canonicalCheck, canonicalJson } from '../../../src/core/approvals/digest.ts';
import type { OpId } from '../../../src/core/base/ids.ts';
import type { Effect } from '../../../src/core/effects.ts';
import type { Governor } from '../../../src/core/governor.ts';
import type { Principal } from '../../../src/core/identity/roles.ts';
import type { PolicyDecision } from '../../../src/core/policy/rule.ts';
import { CODE_POINT } from '../../support/code-point.ts';
import { ADMIN, CRAWLER, checkOf, decisionOf, openGovernor } from '../../support/governor.ts';
import { runs } from '../../support/runs.ts';

const MINUTE_MS = 60_000;
const TERMS = { min: 1, expiresMs: 15 * MINUTE_MS, validMs: undefined, approvers: [] };
const asking = (min = 1, ruleId = 'ask') => ({
  decide: (): PolicyDecision => ({
    kind: 'require_approval',
    reason: 'ask',
    policy: 'p',
    ruleId,
    cause: undefined,
    approval: { ...TERMS, min },
  }),
});
const SECOND: Principal = { subject: 'key:second', scopes: ['admin'], orgId: null };
/** Made with the second key. */
const MADE: Principal = { subject: 'key:made', scopes: ['admin'], orgId: null };
const credentialOf = (subject: string) => ({ subject, names: [], isValid: true, isFirst: subject === 'key:first' });
const LINEAGES: Readonly<Record<string, Lineage>> = {
  'key:admin': [credentialOf('key:admin'), credentialOf('key:first')],
  'key:second': [credentialOf('key:second'), credentialOf('key:first')],
  'key:made': [credentialOf('key:made'), credentialOf('key:second'), credentialOf('key:first')],
};
const PEOPLE: Readonly<Record<string, string>> = {
  'key:admin': 'key:admin',
  'key:second': 'key:second',
  'key:made': 'key:second',
};

describe('the digest', () => {
  test('equals that of RFC 8785', () => {
    expect(canonicalJson({ b: [1e21, 0.1, -0, 'ö€\n'], a: { '\u20ac': 1, '\r': 2, '1': null } })).toBe(
      '{"a":{"\\r":2,"1":null,"€":1},"b":[1e+21,0.1,0,"ö€\\n"]}',
    );
    expect(canonicalCheck(checkOf(CRAWLER, 't:a'))).toBe(
      '{"action":"tool.call","agent":{"agent_id":"crawler","org_id":"acme","team_id":"search"},' +
        '"attributes":{},"estimated_cost_usd":0,"resource":"web_search"}',
    );
  });

  test('changes with every argument, and with nothing else', () => {
    const hash = (text: string) => createHash('sha256').update(text).digest('hex');
    const subject = fc.record({
      agent: fc.record({ orgId: fc.string(), teamId: fc.string(), agentId: fc.string() }),
      action: fc.string(),
      resource: fc.string({ unit: CODE_POINT }),
      attributes: fc.dictionary(fc.string(), fc.jsonValue()),
      caller: fc.constant(undefined),
      estimatedCostMicroUsd: fc.nat(),
    });
    fc.assert(
      fc.property(
        subject,
        subject,
        fc.constantFrom('agent', 'action', 'resource', 'attributes', 'estimatedCostMicroUsd'),
        (one, other, field) => {
          const mutated = { ...one, [field]: other[field as keyof typeof other] };
          const isSame = JSON.stringify(sortedKeys(mutated)) === JSON.stringify(sortedKeys(one));
          expect(hash(canonicalCheck(mutated)) === hash(canonicalCheck(one))).toBe(isSame);
          const shuffled = { ...one, attributes: Object.fromEntries(Object.entries(one.attributes).reverse()) };
          expect(canonicalCheck(shuffled)).toBe(canonicalCheck(one));
        },
      ),
    );
  });
});

/** The same value, with the keys of every object in one order. -0 is 0 in JSON. */
function sortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .map(([key, item]) => [key, sortedKeys(item)] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1));
}

describe('the table', () => {
  test('an approval moves only along its rows', () => {
    const moves = APPROVAL_STATES.flatMap((from) =>
      APPROVAL_TRIGGERS.flatMap((trigger) => {
        const to = nextApprovalState(from, trigger);
        return to === undefined ? [] : [`${from} -${trigger}-> ${to}`];
      }),
    );
    expect(moves).toEqual([
      'pending -approve-> approved',
      'pending -deny-> denied',
      'pending -expire-> expired',
      'pending -cancel-> cancelled',
      'approved -expire-> expired',
      'approved -cancel-> cancelled',
      'approved -use-> used',
      'used -use-> used',
    ]);
  });
});

/** Applies these effects as the store would. */
function keep(store: Map<string, Approval>, effects: readonly Effect[]): void {
  for (const effect of effects) {
    if (effect.kind === 'state-saved' && effect.table === 'approvals') store.set(effect.id, effect.row as Approval);
    if (effect.kind === 'state-removed' && effect.table === 'approvals') store.delete(effect.id);
  }
}

function restarted(store: ReadonlyMap<string, Approval>, min: number): Governor {
  const governor = openGovernor({ policies: asking(min) });
  for (const approval of store.values()) governor.restoreApproval(structuredClone(approval));
  return governor;
}

const STEPS = [
  'check-a',
  'check-b',
  'approve',
  'approve-second',
  'approve-made',
  'deny',
  'cancel',
  'terminate-a',
  'terminate-b',
  'wait',
  'tick',
  'pause',
  'halt',
  'release',
  'reload',
  'restart',
  'unrecorded',
] as const;

/** From one state to the next, whatever happens in between. */
const AFTER: Readonly<Record<Approval['state'], readonly Approval['state'][]>> = {
  pending: ['pending', 'approved', 'denied', 'expired', 'cancelled'],
  approved: ['approved', 'used', 'expired', 'cancelled'],
  denied: ['denied'],
  expired: ['expired'],
  cancelled: ['cancelled'],
  used: ['used'],
};

describe('any interleaving', () => {
  test('follows the table, and no approval is used twice or without enough approvers', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...STEPS), { maxLength: 25, size: 'max' }),
        fc.constantFrom(1, 2),
        (steps, min) => {
          const world = new World(min);
          for (const step of steps) world.take(step);
          world.verify();
        },
      ),
      { numRuns: runs(50) },
    );
  });
});

describe('the agent on its control stream', () => {
  const signalsOf = ({ effects }: { readonly effects: readonly Effect[] }) =>
    effects.flatMap((effect) => (effect.kind === 'signal' ? [[effect.opId, effect.signal]] : []));
  const waiting = () => {
    const governor = openGovernor({ policies: asking(2) });
    for (const op of ['t:a', 't:b']) governor.apply(checkOf(CRAWLER, op), 1_000);
    return { governor, approval: [...governor.approvals.all()][0]! };
  };

  test('learns of the last yes it needs, for every operation that waits, and of a no', () => {
    for (const [kind, signal] of [['approve', 'resume'] as const, ['deny', 'terminate'] as const]) {
      const { governor, approval } = waiting();
      expect(signalsOf(governor.apply(decisionOf(governor, ADMIN, approval.id), 2_000))).toEqual([]);
      expect(signalsOf(governor.apply(decisionOf(governor, SECOND, approval.id, kind), 3_000))).toEqual([
        ['t:a', signal],
        ['t:b', signal],
      ]);
    }
  });

  test('learns once of a yes that another gateway was told', () => {
    const { governor, approval } = waiting();
    const adopt = () =>
      governor.apply({ type: 'adopt-approval', id: approval.id, approval: { ...approval, state: 'approved' } }, 2_000);
    expect(adopt().reply).toEqual({ ok: true, value: { isDecided: true } });
    expect(signalsOf(governor.apply({ type: 'follow-approval', id: approval.id }, 2_000))).toEqual([
      ['t:a', 'resume'],
      ['t:b', 'resume'],
    ]);
    expect(adopt().reply).toEqual({ ok: true, value: { isDecided: false } });
  });
});

describe('an operator who terminates waiting operations', () => {
  const world = (...ops: string[]) => {
    const governor = openGovernor({ policies: asking() });
    for (const op of ops) governor.apply(checkOf(CRAWLER, op), 1_000);
    const only = () => [...governor.approvals.all()][0]!;
    const terminate = (opId: string) =>
      governor.apply<'control-op'>(
        { type: 'control-op', principal: SECOND, opId: opId as OpId, trigger: 'terminate' },
        2_000,
      );
    return { governor, only, terminate };
  };

  test('cancels the approval with the last operation that waits for it', () => {
    const { governor, only, terminate } = world('t:a', 't:b');
    terminate('t:a');
    expect(only()).toMatchObject({ state: 'pending', opIds: ['t:b'] });
    const { effects } = terminate('t:b');
    const reason = 'key:second terminated operation t:b, which waited for it';
    expect(only()).toMatchObject({ state: 'cancelled', cancelReason: reason });
    const said = effects.flatMap((each) => (each.kind === 'audit' ? [each.draft] : []));
    expect(said.map(({ eventType, actor }) => [eventType, actor])).toEqual([
      ['OpTerminated', 'key:second'],
      ['ApprovalCancelled', 'key:second'],
    ]);
    expect(effects.filter(({ kind }) => kind === 'approval-changed').length).toBe(1);
    expect(governor.apply(decisionOf(governor, ADMIN, only().id), 3_000).reply).toMatchObject({ ok: false });
    expect(governor.apply(checkOf(CRAWLER, 'new:a'), 4_000).reply).toMatchObject({ value: { decision: 'pending' } });
  });

  test('takes back a yes that was not used yet', () => {
    const { governor, only, terminate } = world('t:a');
    governor.apply(decisionOf(governor, ADMIN, only().id), 1_500);
    terminate('t:a');
    expect(only().state).toBe('cancelled');
    expect(governor.apply(checkOf(CRAWLER, 'new:a'), 4_000).reply).toMatchObject({ value: { decision: 'pending' } });
  });

  test('leaves it as it was when the order cannot be recorded', () => {
    const { governor, only, terminate } = world('t:a');
    const { undo } = terminate('t:a');
    governor.rollBack([undo!], [], governor.ops.lastNumber, 2_000);
    expect(only()).toMatchObject({ state: 'pending', opIds: ['t:a'] });
  });

  test('leaves one that a running operation has used', () => {
    const { governor, only, terminate } = world('t:a');
    governor.apply(decisionOf(governor, ADMIN, only().id), 1_500);
    governor.apply(checkOf(CRAWLER, 't:a'), 1_600);
    terminate('t:a');
    expect(only().state).toBe('used');
  });
});

describe('a halt', () => {
  test('stops the clock of what it covers, for as long as it holds, however often', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(60), fc.nat(10_000)), { minLength: 1, maxLength: 5 }),
        fc.nat(14),
        (pauses, beforeMinutes) => {
          const governor = openGovernor({ policies: asking() });
          let nowMs = 1_000;
          const run = (command: Parameters<Governor['apply']>[0]) => governor.apply(command as never, nowMs);
          const tick = () => run({ type: 'tick-approvals', most: 100 });
          run(checkOf(CRAWLER, 't:a'));
          const only = () => [...governor.approvals.all()][0]!;
          // The remaining time shrinks with each minute without a halt, and with no other.
          let leftMs = TERMS.expiresMs;
          const pass = (ms: number): void => {
            nowMs += ms;
            leftMs -= ms;
          };
          pass(beforeMinutes * MINUTE_MS);
          for (const [n, [heldMinutes, betweenMs]] of pauses.entries()) {
            const halt = { id: `h${n}`, scope: 'org:acme', mode: 'pause', actions: ['*'], reason: 'r' } as const;
            run({ type: 'create-halt', principal: ADMIN, halt: { ...halt, expiresAtMs: undefined } });
            nowMs += heldMinutes * MINUTE_MS;
            tick();
            expect(only().state).toBe('pending');
            run({ type: 'release-halt', principal: ADMIN, id: `h${n}`, reason: 'over' });
            tick();
            pass(betweenMs);
            if (leftMs <= 0) return;
            expect(only().expiresAtMs - nowMs).toBe(leftMs);
          }
          nowMs += leftMs - 1;
          tick();
          expect(only().state).toBe('pending');
          nowMs += 1;
          tick();
          expect(only().state).toBe('expired');
        },
      ),
      { numRuns: runs(35) },
    );
  });
});

class World {
  readonly #min: number;
  readonly #store = new Map<string, Approval>();
  #governor: Governor;
  #nowMs = 1_000;
  #halt: string | undefined;
  #halts = 0;
  #seen = new Map<string, Approval>();
  /** Operations that were allowed to begin, by the approval. */
  readonly #begun = new Map<string, Set<string>>();

  constructor(min: number) {
    this.#min = min;
    this.#governor = restarted(this.#store, min);
  }

  take(step: (typeof STEPS)[number]): void {
    this.#nowMs += 1_000;
    this.#step(step);
    this.#look();
  }

  /** The store has what the governor has. */
  verify(): void {
    for (const approval of this.#governor.approvals.all()) expect(this.#store.get(approval.id)).toEqual(approval);
    for (const [id, ops] of this.#begun) {
      expect(ops.size).toBe(1);
      const approvers = new Set(this.#store.get(id)?.decisions.map(({ by }) => PEOPLE[by]));
      expect(approvers.size).toBeGreaterThanOrEqual(this.#min);
    }
  }

  #step(step: (typeof STEPS)[number]): void {
    switch (step) {
      case 'check-a':
      case 'check-b':
        return this.#check(`t:${step.at(-1)}`);
      case 'approve':
        return this.#decide('approve', ADMIN);
      case 'approve-second':
        return this.#decide('approve', SECOND);
      case 'approve-made':
        return this.#decide('approve', MADE);
      case 'deny':
        return this.#decide('deny', ADMIN);
      case 'cancel':
        return this.#run({ type: 'cancel-approval', principal: ADMIN, id: this.#latest });
      case 'terminate-a':
      case 'terminate-b': {
        const opId = `t:${step.at(-1)}` as OpId;
        return this.#run({ type: 'control-op', principal: ADMIN, opId, trigger: 'terminate' });
      }
      case 'wait':
        this.#nowMs += 10 * MINUTE_MS;
        return;
      case 'tick':
        return this.#run({ type: 'tick-approvals', most: 100 });
      case 'pause':
      case 'halt':
        return this.#haltWith(step === 'pause' ? 'pause' : 'terminate');
      case 'release':
        if (this.#halt !== undefined)
          this.#run({ type: 'release-halt', principal: ADMIN, id: this.#halt, reason: 'over' });
        this.#halt = undefined;
        return;
      case 'reload':
        this.#governor.policies = asking(this.#min);
        return;
      case 'restart':
        // A restart forgets operations; the halt is restored with its own table elsewhere.
        if (this.#halt === undefined) this.#governor = restarted(this.#store, this.#min);
        return;
      case 'unrecorded':
        return this.#unrecorded();
    }
  }

  get #latest(): string {
    for (const { id } of this.#governor.approvals.all()) return id;
    return 'none';
  }

  #check(op: string): void {
    const { reply, effects } = this.#governor.apply<'check'>(checkOf(CRAWLER, op), this.#nowMs);
    keep(this.#store, effects);
    if (!reply.ok || reply.value.decision !== 'allow') return;
    const id = reply.value.approvalId ?? 'none';
    const ops = this.#begun.get(id) ?? new Set();
    this.#begun.set(id, ops.add(op));
  }

  /** A check whose change could not be recorded is undone. */
  #unrecorded(): void {
    const before = [...this.#governor.approvals.all()];
    const { effects, undo } = this.#governor.apply<'check'>(checkOf(CRAWLER, 't:lost'), this.#nowMs);
    keep(this.#store, effects);
    keep(
      this.#store,
      this.#governor.rollBack(
        undo === undefined ? [] : [undo],
        [checkOf(CRAWLER, 't:lost')],
        this.#governor.ops.lastNumber - 1,
        this.#nowMs,
      ),
    );
    expect([...this.#governor.approvals.all()]).toEqual(before);
  }

  #decide(kind: 'approve' | 'deny', principal: Principal): void {
    const { requesters = [], decisions = [] } = this.#governor.approvals.get(this.#latest) ?? {};
    const subjects = [...requesters, ...decisions.map(({ by }) => by)];
    this.#run({
      type: 'decide-approval',
      principal,
      id: this.#latest,
      kind,
      reason: 'r',
      lineage: LINEAGES[principal.subject]!,
      people: Object.fromEntries(subjects.map((subject) => [subject, PEOPLE[subject] ?? subject])),
    });
  }

  #haltWith(mode: 'pause' | 'terminate'): void {
    if (this.#halt !== undefined) return;
    this.#halts += 1;
    this.#halt = `h${this.#halts}`;
    const halt = { id: this.#halt, scope: 'org:acme', mode, actions: ['*'], reason: 'drill', expiresAtMs: undefined };
    this.#run({ type: 'create-halt', principal: ADMIN, halt });
  }

  #run(command: Parameters<Governor['apply']>[0]): void {
    keep(this.#store, this.#governor.apply(command as never, this.#nowMs).effects);
  }

  #look(): void {
    const now = new Map([...this.#governor.approvals.all()].map((approval) => [approval.id, approval]));
    for (const [id, before] of this.#seen) {
      const after = now.get(id);
      if (after !== undefined) expect(AFTER[before.state]).toContain(after.state);
    }
    this.#seen = now;
    const pending = [...now.values()].filter(({ state }) => state === 'pending' || state === 'approved');
    expect(pending.filter((one) => !this.#isOver(one)).length).toBeLessThanOrEqual(1);
  }

  #isOver({ expiresAtMs, frozenAtMs }: Approval): boolean {
    return frozenAtMs === undefined && expiresAtMs <= this.#nowMs;
  }
}
