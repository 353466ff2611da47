import { describe, expect, test } from 'vitest';
import type { AgentIdentity } from '../../../src/core/base/ids.ts';
import type { Governor } from '../../../src/core/governor.ts';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  completionOf,
  decisionOf,
  digestOf,
  opId,
  SIBLING,
  STRANGER,
} from '../../support/governor.ts';
import { ask, askTimes, limitedPolicies, openLimited, START_MS } from '../../support/limits.ts';

const usageOf = (op: string | undefined, costMicroUsd: number, tokens = 0, agent: AgentIdentity = CRAWLER) =>
  ({
    type: 'record-usage',
    agent,
    credential: digestOf(agent),
    principal: undefined,
    opId: op === undefined ? undefined : opId(op),
    usageId: undefined,
    costMicroUsd,
    tokens:
      tokens === 0
        ? undefined
        : {
            model: 'm',
            provider: undefined,
            inputTokens: tokens - 1,
            outputTokens: 1,
            cacheReadTokens: 0,
            cacheWriteTokens: 0,
          },
  }) as const;

const spend = (governor: Governor, op: string | undefined, costMicroUsd: number, tokens = 0, agent = CRAWLER) =>
  governor.apply<'record-usage'>(usageOf(op, costMicroUsd, tokens, agent), START_MS);

describe('a limit of calls', () => {
  test('allows so many new operations of a session, and denies the next with its remedy', () => {
    const governor = openLimited([{ id: 'few', per: 'session', calls: 2 }]);
    expect(askTimes(governor, 3)).toBe('allow allow deny');
    expect(ask(governor, 't:more')).toMatchObject({
      decision: 'deny',
      cause: 'limit',
      policy: 'limited',
      ruleId: undefined,
      reason: 'the limit of 2 calls per session is reached (limit few of policy limited)',
      remedy: 'the limit holds until the session ends; an operator may raise it',
      exceeded: undefined,
      opState: 'terminated',
    });
  });

  test('is named in the audit entry, with what was used', () => {
    const governor = openLimited([{ id: 'few', per: 'agent', calls: 1, every: '10s' }]);
    ask(governor, 't:1');
    const { effects } = governor.apply<'check'>(checkOf(CRAWLER, 't:2'), START_MS);
    const [entry] = effects.flatMap((effect) => (effect.kind === 'audit' ? [effect.draft] : []));
    expect(entry).toMatchObject({
      eventType: 'ActionDenied',
      cause: 'limit',
      policy: 'limited',
      payload: {
        limit: { policy: 'limited', id: 'few', per: 'agent', key: 'acme/search/crawler', used: 1, max: 1 },
        resets_at: '2026-11-04T12:00:11.000Z',
        remedy: 'the limit resets at 2026-11-04T12:00:11.000Z; an operator may raise it',
      },
    });
  });

  test('counts no dry run, no second check of an operation, and nothing that is denied', () => {
    const governor = openLimited([{ id: 'few', per: 'session', calls: 2 }]);
    for (let nth = 0; nth < 3; nth += 1)
      expect(ask(governor, `t:dry${nth}`, START_MS, { dryRun: true }).decision).toBe('allow');
    for (let nth = 0; nth < 3; nth += 1) expect(ask(governor, 't:same').decision).toBe('allow');
    expect(askTimes(governor, 2)).toBe('allow deny');
    expect(ask(governor, 't:same').decision).toBe('allow');
    expect(ask(governor, 't:dry', START_MS, { dryRun: true })).toMatchObject({ decision: 'deny', cause: 'limit' });
  });

  test.each([
    ['session', ['t:1', 't:2', 'u:1'], [CRAWLER, CRAWLER, CRAWLER], 'allow deny allow'],
    ['session', ['t:1', 't:2', 't:1'], [CRAWLER, SIBLING, STRANGER], 'allow deny allow'],
    ['agent', ['t:1', 'u:1', 't:2'], [CRAWLER, CRAWLER, SIBLING], 'allow deny allow'],
    ['team', ['t:1', 't:2', 't:1'], [CRAWLER, SIBLING, STRANGER], 'allow deny allow'],
    ['org', ['t:1', 't:2', 't:1'], [CRAWLER, SIBLING, STRANGER], 'allow deny allow'],
  ] as const)('counts each %s for itself: %s', (per, ops, agents, expected) => {
    const governor = openLimited([{ id: 'one', per, calls: 1, every: '1m' }]);
    expect(ops.map((op, nth) => ask(governor, op, START_MS, {}, agents[nth]!).decision).join(' ')).toBe(expected);
  });

  test('counts an agent and all it started as one lineage', () => {
    const governor = openLimited([{ id: 'one', per: 'lineage', calls: 1 }]);
    const child = { ...CRAWLER, agentId: 'child' };
    governor.apply<'register-agent'>(
      {
        type: 'register-agent',
        principal: ADMIN,
        agent: child,
        credential: digestOf(child),
        parent: CRAWLER,
      },
      START_MS,
    );
    expect(ask(governor, 't:1', START_MS, {}, child).decision).toBe('allow');
    expect(ask(governor, 'u:2')).toMatchObject({ decision: 'deny', cause: 'limit' });
    expect(ask(governor, 'u:3', START_MS, {}, SIBLING).decision).toBe('allow');
  });

  test('counts only the actions and resources it names', () => {
    const governor = openLimited([{ id: 'mail', per: 'session', calls: 1, actions: ['mail.*'], resources: ['*@a.b'] }]);
    const mail = (op: string, resource: string) =>
      ask(governor, op, START_MS, { action: 'mail.send', resource }).decision;
    expect(mail('t:1', 'x@a.b')).toBe('allow');
    expect(mail('t:2', 'x@a.b')).toBe('deny');
    expect(mail('t:3', 'x@c.d')).toBe('allow');
    expect(ask(governor, 't:4').decision).toBe('allow');
  });

  test('ends with its session, which has ended when it was not used for long enough', () => {
    const governor = openLimited([{ id: 'few', per: 'session', calls: 1 }], { sessionTtlMs: 60_000 });
    expect(ask(governor, 't:1', START_MS).decision).toBe('allow');
    expect(ask(governor, 't:2', START_MS + 59_999).decision).toBe('deny');
    // The check that was denied kept it alive.
    expect(ask(governor, 't:3', START_MS + 119_000).decision).toBe('deny');
    expect(ask(governor, 't:4', START_MS + 179_000).decision).toBe('allow');
    expect(governor.limits.size).toBe(1);
    governor.limits.drainChanges();
    governor.limits.sweep(START_MS + 239_000);
    expect(governor.limits.size).toBe(0);
  });

  test('takes back what could not be recorded', () => {
    const governor = openLimited([{ id: 'few', per: 'session', calls: 1 }]);
    const command = checkOf(CRAWLER, 't:1');
    const before = governor.ops.lastNumber;
    const { undo } = governor.apply<'check'>(command, START_MS);
    governor.rollBack([undo!], [command], before, START_MS);
    expect(askTimes(governor, 2)).toBe('allow deny');
  });

  test('counts on when a reload changes its maximum, and anew when its span changes', () => {
    const governor = openLimited([{ id: 'few', per: 'session', calls: 2 }]);
    expect(askTimes(governor, 3)).toBe('allow allow deny');
    governor.limitsInForce = limitedPolicies([{ id: 'few', per: 'session', calls: 3 }]).limits;
    expect(askTimes(governor, 2, START_MS, 10)).toBe('allow deny');
    governor.limitsInForce = limitedPolicies([]).limits;
    expect(askTimes(governor, 2, START_MS, 20)).toBe('allow allow');
    governor.limitsInForce = limitedPolicies([{ id: 'few', per: 'session', calls: 3 }]).limits;
    expect(askTimes(governor, 1, START_MS, 30)).toBe('deny');
    governor.limitsInForce = limitedPolicies([{ id: 'few', per: 'session', calls: 1, every: '1m' }]).limits;
    expect(askTimes(governor, 2, START_MS, 40)).toBe('allow deny');
  });
});

describe('a limit of a span', () => {
  test('says when there is room again, and there is', () => {
    const governor = openLimited([{ id: 'few', per: 'agent', calls: 2, every: '10s' }]);
    expect(askTimes(governor, 1, START_MS)).toBe('allow');
    expect(askTimes(governor, 1, START_MS + 5_000)).toBe('allow');
    expect(ask(governor, 't:x', START_MS + 9_999).exceeded).toEqual({ resetsAtMs: START_MS + 11_000 });
    expect(ask(governor, 't:y', START_MS + 10_999).decision).toBe('deny');
    expect(ask(governor, 't:z', START_MS + 11_000).decision).toBe('allow');
    expect(ask(governor, 't:w', START_MS + 11_000).exceeded).toEqual({ resetsAtMs: START_MS + 16_000 });
  });
});

describe('a limit of money', () => {
  test('counts estimates until they are spent or given back', () => {
    const governor = openLimited([{ id: 'cap', per: 'session', usd: 1 }]);
    const costing = (op: string, microUsd: number) =>
      ask(governor, op, START_MS, { estimatedCostMicroUsd: microUsd }).decision;
    expect(costing('t:1', 600_000)).toBe('allow');
    expect(costing('t:2', 500_000)).toBe('deny');
    spend(governor, 't:1', 100_000); // 0.1 spent, 0.5 held
    expect(costing('t:3', 500_000)).toBe('deny');
    governor.apply<'complete-op'>(completionOf(CRAWLER, 't:1'), START_MS);
    expect(costing('t:4', 900_000)).toBe('allow');
    expect(costing('t:5', 1)).toBe('deny');
  });

  test('gives back an estimate after ten minutes, and what a rollback ends', () => {
    const governor = openLimited([{ id: 'cap', per: 'session', usd: 1 }]);
    const command = checkOf(CRAWLER, 't:1', { estimatedCostMicroUsd: 1_000_000 });
    const before = governor.ops.lastNumber;
    const { undo } = governor.apply<'check'>(command, START_MS);
    governor.rollBack([undo!], [command], before, START_MS);
    expect(ask(governor, 't:2', START_MS, { estimatedCostMicroUsd: 1_000_000 }).decision).toBe('allow');
    expect(ask(governor, 't:3', START_MS + 599_999, { estimatedCostMicroUsd: 1 }).decision).toBe('deny');
    governor.sweep(START_MS + 600_000);
    expect(ask(governor, 't:4', START_MS + 600_000, { estimatedCostMicroUsd: 1 }).decision).toBe('allow');
  });

  test('denies once it is reached, also what costs nothing', () => {
    const governor = openLimited([{ id: 'cap', per: 'session', usd: 1 }]);
    ask(governor, 't:1');
    spend(governor, 't:1', 999_999);
    expect(ask(governor, 't:2').decision).toBe('allow');
    spend(governor, 't:2', 1);
    expect(ask(governor, 't:3')).toMatchObject({ decision: 'deny', cause: 'limit' });
    expect(ask(governor, 't:1').decision).toBe('allow');
  });

  test('counts usage where the check of its operation did, or where everything does', () => {
    const governor = openLimited([
      { id: 'search', per: 'agent', usd: 1, every: '1h', actions: ['search.*'] },
      { id: 'all', per: 'agent', usd: 10, every: '1h' },
    ]);
    ask(governor, 't:1', START_MS, { action: 'search.web' });
    spend(governor, 't:1', 1_000_000);
    ask(governor, 't:2');
    spend(governor, 't:2', 5_000_000);
    spend(governor, undefined, 3_999_999);
    expect(ask(governor, 't:3', START_MS, { action: 'search.web' }).reason).toContain('limit search of policy limited');
    expect(ask(governor, 't:4').decision).toBe('allow');
    spend(governor, 'gone:op', 1);
    expect(ask(governor, 't:5').reason).toContain('limit all of policy limited');
  });
});

describe('a limit of tokens', () => {
  test('counts input and output, and denies once it is reached', () => {
    const governor = openLimited([{ id: 'tokens', per: 'session', tokens: 1_000 }]);
    ask(governor, 't:1');
    spend(governor, 't:1', 0, 999);
    expect(ask(governor, 't:2').decision).toBe('allow');
    spend(governor, 't:2', 0, 2);
    expect(ask(governor, 't:3').reason).toBe(
      'the limit of 1000 tokens per session is reached (limit tokens of policy limited)',
    );
    expect(ask(governor, 'u:3').decision).toBe('allow');
  });
});

describe('where there are too many keys', () => {
  test('denies those unseen so far, counts on for the others, and says what to do', () => {
    const governor = openLimited([{ id: 'few', per: 'session', calls: 5 }], { maxLimitStates: 2 });
    expect(ask(governor, 'a:1').decision).toBe('allow');
    expect(ask(governor, 'b:1').decision).toBe('allow');
    expect(ask(governor, 'c:1')).toMatchObject({
      decision: 'deny',
      cause: 'limit',
      reason: 'too much is counted already for limit few of policy limited to begin counting this',
      remedy: 'ask an operator to raise SVC_MAX_LIMIT_STATES',
    });
    expect(ask(governor, 'a:2').decision).toBe('allow');
    expect(governor.limits.size).toBe(2);
  });

  test('one org leaves a tenth to the others', () => {
    const governor = openLimited([{ id: 'few', per: 'session', calls: 5 }], {
      maxLimitStates: 1_000,
      maxOps: 5_000,
      maxOrgOps: 5_000,
    });
    for (let nth = 0; nth < 950; nth += 1) ask(governor, `s${nth}:1`);
    expect(governor.limits.size).toBe(900);
    expect(ask(governor, 'theirs:1', START_MS, {}, STRANGER).decision).toBe('allow');
  });
});

describe('the order of decisions', () => {
  test('names the first limit that leaves no room, from the widest scope on', () => {
    const governor = openLimited([
      { id: 'first', per: 'session', calls: 1 },
      { id: 'second', per: 'session', calls: 1 },
    ]);
    expect(askTimes(governor, 1)).toBe('allow');
    expect(ask(governor, 't:n').reason).toContain('limit first');
  });

  test('counts nothing where a later limit has no room', () => {
    const governor = openLimited([
      { id: 'many', per: 'session', calls: 2 },
      { id: 'mail', per: 'session', calls: 1, actions: ['mail.send'] },
    ]);
    const mail = (op: string) => ask(governor, op, START_MS, { action: 'mail.send' }).decision;
    expect([mail('t:1'), mail('t:2'), mail('t:3')].join(' ')).toBe('allow deny deny');
    expect(ask(governor, 't:4').decision).toBe('allow');
    expect(ask(governor, 't:5').decision).toBe('deny');
  });
});

describe('what a store has kept', () => {
  test('counts on after a restart, with what was raised', () => {
    const limits = [
      { id: 'few', per: 'session', calls: 3, on_exceed: 'ask', step: 1 },
      { id: 'span', per: 'agent', calls: 100, every: '10m' },
    ];
    const governor = openLimited(limits);
    expect(askTimes(governor, 4)).toBe('allow allow allow pending');
    const { approvalId } = ask(governor, 't:next');
    governor.apply<'decide-approval'>(decisionOf(governor, ADMIN, approvalId!), START_MS);
    const rows = governor.limits.drainChanges().flatMap(({ row }) => (row === undefined ? [] : [row]));
    const restarted = openLimited(limits);
    restarted.limits.restore(JSON.parse(JSON.stringify(rows)));
    expect(askTimes(restarted, 2, START_MS + 1_000)).toBe('allow pending');
    expect(restarted.limits.size).toBe(2);
  });
});
