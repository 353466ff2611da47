import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import { parseBudgetConfig } from '../../../src/core/budget/config.ts';
import type { CheckAnswer, CheckCommand, Command, CommandOf } from '../../../src/core/commands.ts';
import { noPolicyAllows } from '../../../src/core/policy/rule.ts';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  controlOf,
  digestOf,
  openGovernor,
  SIBLING,
  STRANGER,
} from '../../support/governor.ts';
import { runs } from '../../support/runs.ts';
import { spentUsd } from '../../support/spent-usd.ts';

type Draft = {
  readonly eventType: string;
  readonly lineage: object;
  readonly actor: string;
  readonly decision: string;
  readonly reason: string;
  readonly opId: string;
  readonly payload: Record<string, unknown>;
};

const decide = (
  command: CheckCommand,
  governor = openGovernor(),
  nowMs = 10,
): { answer: CheckAnswer; draft: Draft } => {
  const { reply, effects } = governor.apply<'check'>(command, nowMs);
  if (!reply.ok) throw new Error(reply.fault.kind);
  const drafts = effects.flatMap((effect) => (effect.kind === 'audit' ? [effect.draft] : []));
  expect(drafts).toHaveLength(1); // each check is recorded exactly once
  return { answer: reply.value, draft: drafts[0] as unknown as Draft };
};

const NAMESAKE = { ...CRAWLER, teamId: 'ads' };

describe('check', () => {
  test.each([
    [
      'its own token',
      {
        voucher: { credential: digestOf(CRAWLER) },
        decision: 'allow',
        eventType: 'ActionAllowed',
        actor: 'agent:acme/search/crawler',
      },
    ],
    [
      'a bearer in place of a token',
      {
        voucher: { credential: undefined, principal: ADMIN },
        decision: 'allow',
        eventType: 'ActionAllowed',
        actor: 'key:admin',
      },
    ],
    [
      'no token',
      { voucher: { credential: undefined }, decision: 'deny', eventType: 'ActionDenied', actor: 'anonymous' },
    ],
    [
      'an unknown token',
      { voucher: { credential: 'unknown' as never }, decision: 'deny', eventType: 'ActionDenied', actor: 'anonymous' },
    ],
    [
      'an unknown token beside a bearer',
      {
        voucher: { credential: 'unknown' as never, principal: ADMIN },
        decision: 'deny',
        eventType: 'ActionDenied',
        actor: 'anonymous',
      },
    ],
    [
      'a bearer of another org',
      {
        voucher: { credential: undefined, principal: { ...ADMIN, subject: 'key:globex', orgId: 'globex' } },
        decision: 'deny',
        eventType: 'A2AImpersonationAttempted',
        actor: 'key:globex',
      },
    ],
    [
      'a token of the same team',
      {
        voucher: { credential: digestOf(SIBLING) },
        decision: 'deny',
        eventType: 'A2AImpersonationAttempted',
        actor: 'agent:acme/search/sibling',
      },
    ],
    [
      'a token of its name in another team',
      {
        voucher: { credential: digestOf(NAMESAKE) },
        decision: 'deny',
        eventType: 'A2AImpersonationAttempted',
        actor: 'agent:acme/ads/crawler',
      },
    ],
    [
      'a token of another org',
      {
        voucher: { credential: digestOf(STRANGER) },
        decision: 'deny',
        eventType: 'A2AImpersonationAttempted',
        actor: 'agent:globex/search/crawler',
      },
    ],
    [
      'a token of another org beside a bearer',
      {
        voucher: { credential: digestOf(STRANGER), principal: ADMIN },
        decision: 'deny',
        eventType: 'A2AImpersonationAttempted',
        actor: 'agent:globex/search/crawler',
      },
    ],
  ] as const)('with %s', (_what, { voucher, decision, eventType, actor }) => {
    const governor = openGovernor({ agents: [CRAWLER, SIBLING, NAMESAKE, STRANGER] });
    const { answer, draft } = decide(checkOf(CRAWLER, 't:s', voucher), governor);
    expect({
      answerDecision: answer.decision,
      draftDecision: draft.decision,
      draftEventType: draft.eventType,
      draftActor: draft.actor,
      draftReason: draft.reason,
    }).toEqual({
      answerDecision: decision,
      draftDecision: decision,
      draftEventType: eventType,
      draftActor: actor,
      draftReason: answer.reason,
    });
    expect(draft.payload).toMatchObject({ action: 'tool.call', resource: 'web_search' });
    expect(governor.ops.size).toBe(decision === 'allow' ? 1 : 0);
    expect(answer.opState).toBe(decision === 'allow' ? 'running' : undefined);
  });

  test("a check with a token of another org is reported to the token's org as a claim", () => {
    const { draft } = decide(
      checkOf(CRAWLER, 't:s', {
        credential: undefined,
        principal: { ...ADMIN, subject: 'key:globex', orgId: 'globex' },
      }),
    );
    expect(draft).toMatchObject({
      lineage: { orgId: 'globex', teamId: null, agentId: null },
      payload: {
        action: 'tool.call',
        resource: 'web_search',
        claimed_org_id: 'acme',
        claimed_team_id: 'search',
        claimed_agent_id: 'crawler',
      },
    });
  });

  test("an impersonation is a violation of the token's owner, with the claimed names", () => {
    const { effects } = openGovernor().apply<'check'>(checkOf(STRANGER, 't:s', { credential: digestOf(CRAWLER) }), 10);
    expect(effects).toEqual([
      {
        kind: 'audit',
        draft: {
          eventType: 'A2AImpersonationAttempted',
          lineage: CRAWLER,
          actor: 'agent:acme/search/crawler',
          opId: 't:s',
          decision: 'deny',
          reason: 'the credential token is registered to a different agent',
          cause: 'credential',
          payload: {
            action: 'tool.call',
            resource: 'web_search',
            claimed_org_id: 'globex',
            claimed_team_id: 'search',
            claimed_agent_id: 'crawler',
          },
        },
      },
      {
        kind: 'violation',
        agent: CRAWLER,
        reason: 'the credential token is registered to a different agent',
        claimed: STRANGER,
        action: 'tool.call',
      },
    ]);
  });

  test('a claimed empty org is recorded as none', () => {
    const { draft } = decide(checkOf({ ...CRAWLER, orgId: '' }, 't:s', { credential: digestOf(CRAWLER) }));
    expect(draft.payload.claimed_org_id).toBeNull();
  });

  test('an allow on behalf of a caller is intercepted, and every answer names the caller', () => {
    for (const [resource, eventType] of [
      ['web_search', 'A2ACallIntercepted'],
      ['forbidden', 'ActionDenied'],
    ] as const) {
      const { draft } = decide(checkOf(CRAWLER, 't:s', { caller: STRANGER, resource }));
      expect(draft).toMatchObject({
        eventType,
        lineage: CRAWLER,
        payload: { caller: { org_id: 'globex', team_id: 'search', agent_id: 'crawler' } },
      });
    }
  });

  test('a caller without an org is recorded with org null, as its lineage would be', () => {
    const { draft } = decide(checkOf(CRAWLER, 't:s', { caller: { ...STRANGER, orgId: '' } }));
    expect(draft.payload.caller).toEqual({ org_id: null, team_id: 'search', agent_id: 'crawler' });
  });

  test('records little of an unauthenticated caller, and no part of a cut credential', () => {
    const at = (length: number) => `${'see '.repeat(length / 4)}ghp_${'a1'.repeat(18)}`;
    const recorded = (resource: string) =>
      decide(checkOf(CRAWLER, 't:s', { credential: 'unknown' as never, resource })).draft.payload;
    expect(recorded('see '.repeat(400))).toEqual({
      action: 'tool.call',
      resource: 'see '.repeat(32),
      identity: 'unverified',
    });
    expect(recorded(at(112)).resource).toBe('[redacted]');
    // Behind what is looked at at all: nothing of it is recorded.
    expect(recorded(at(1_020)).resource).toBe('see '.repeat(32));
  });

  test('the reason of a denial by default holds no part of a credential that is cut off', () => {
    const resource = `${'see '.repeat(47)}ghp_${'a1'.repeat(18)}`;
    const governor = openGovernor({ policies: { decide: noPolicyAllows } });
    const { draft, answer } = decide(checkOf(CRAWLER, 't:s', { resource }), governor);
    expect(draft).toMatchObject({
      reason: 'no policy allows tool.call on [redacted] for acme/search/crawler',
      payload: { resource: '[redacted]' },
    });
    expect(answer.reason).toContain('see see ghp_a1a1a1'); // it is the agent's own
  });

  test('an entry holds the request and its reason, both redacted', () => {
    const asked = { attributes: { size: 1, password: 'hunter2' }, estimatedCostMicroUsd: 1_500_000, dryRun: true };
    const redact = ({ size }: Readonly<Record<string, unknown>>) => ({ size });
    expect(decide(checkOf(CRAWLER, 't:s', asked), openGovernor({ redact })).draft).toMatchObject({
      reason: 'allowed',
      payload: {
        action: 'tool.call',
        resource: 'web_search',
        attributes: { size: 1 },
        estimated_cost_usd: 1.5,
        dry_run: true,
      },
    });
    expect(Object.keys(decide(checkOf(CRAWLER, 't:s')).draft.payload)).toEqual(['action', 'resource']);
    const reason = 'no policy allows net.connect on https://ada:hunter2@example.com';
    const said = (ruleId: string | undefined) =>
      decide(
        checkOf(CRAWLER, 't:s'),
        openGovernor({ policies: { decide: () => ({ kind: 'deny', reason, policy: ruleId, ruleId, cause: 'rule' }) } }),
      ).draft.reason;
    expect({ saidNothing: said(undefined), saidARule: said('a-rule') }).toEqual({
      saidNothing: 'no policy allows net.connect on https://ada:[redacted]@example.com',
      saidARule: reason,
    });
  });

  test('publishes each step of a check to watchers, and builds no event without any', () => {
    const governor = openGovernor();
    const changesOf = (op: string, resource: string) =>
      governor
        .apply<'check'>(checkOf(CRAWLER, op, { resource }), 10)
        .effects.flatMap((effect) => (effect.kind === 'op-changed' ? [`${effect.op.opId} ${effect.op.state}`] : []));
    expect(changesOf('t:1', 'web_search')).toEqual([]);
    governor.isWatched = true;
    expect(changesOf('t:2', 'web_search')).toEqual(['t:2 pending', 't:2 running']);
    expect(changesOf('t:3', 'forbidden')).toEqual(['t:3 pending', 't:3 terminated']);
    expect(changesOf('t:2', 'forbidden')).toEqual([]);
  });

  test("only an agent's own check marks it as seen", () => {
    const governor = openGovernor({ agents: [CRAWLER] });
    const lastSeenMs = () => {
      const { reply } = governor.apply<'list-agents'>(
        { type: 'list-agents', principal: ADMIN, orgId: undefined, teamId: undefined, perPage: 1, cursor: undefined },
        40,
      );
      return reply.ok ? reply.value.items[0]?.lastSeenMs : reply.fault;
    };
    governor.apply<'check'>(checkOf(CRAWLER, 't:1', { credential: undefined, principal: ADMIN }), 10);
    expect(lastSeenMs()).toBeUndefined();
    governor.apply<'check'>(checkOf(CRAWLER, 't:2'), 20);
    expect(lastSeenMs()).toBe(20);
    governor.apply<'check'>(checkOf(CRAWLER, 't:3', { credential: undefined, principal: ADMIN }), 30);
    expect(lastSeenMs()).toBe(20);
    // Registered anew while its operations run, it has not been seen yet.
    governor.apply<'deregister-agent'>({ type: 'deregister-agent', principal: ADMIN, agent: CRAWLER }, 32);
    governor.apply<'register-agent'>(
      { type: 'register-agent', principal: ADMIN, agent: CRAWLER, credential: digestOf(CRAWLER), parent: undefined },
      34,
    );
    expect(lastSeenMs()).toBeUndefined();
  });

  describe('money', () => {
    const USD = 1_000_000;
    const capped = () => {
      const config = parseBudgetConfig({ agent_daily_limit_usd: 10 });
      if (!config.ok) throw new Error(config.fault[0]?.problem);
      return openGovernor({ budgets: new BudgetTracker(config.value, 0) });
    };
    const ask = (usd: number, fields: Partial<CheckCommand> = {}, op = 't:1') =>
      checkOf(CRAWLER, op, { estimatedCostMicroUsd: usd * USD, ...fields });
    const usage = (usd: number, op?: string, usageId?: string): CommandOf<'record-usage'> => ({
      type: 'record-usage',
      agent: CRAWLER,
      credential: digestOf(CRAWLER),
      principal: undefined,
      costMicroUsd: usd * USD,
      opId: op as CheckCommand['opId'] | undefined,
      usageId,
    });
    const OVER = 'the daily budget of the agent tier is exceeded';
    const WAIT =
      'wait until 1970-01-02T00:00:00.000Z, when the daily budget of the agent tier resets, or ask a person to raise it';

    test.each<[string, readonly Command[], number]>([
      ['an allow', [ask(4)], 6],
      ['an allow, and another for the same operation that costs less', [ask(4), ask(3)], 6],
      ['an allow, and another for the same operation that costs nothing', [ask(4), ask(0)], 6],
      ['an allow, and another for the same operation that costs more', [ask(3), ask(4)], 6],
      ['an allow, and one of another operation', [ask(4), ask(3, {}, 't:2')], 3],
      ['what policy denies', [ask(4, { resource: 'forbidden' })], 10],
      ['an allow, and what policy denies of the same operation', [ask(4), ask(3, { resource: 'forbidden' })], 6],
      ['a check over the cap', [ask(11)], 10],
      ['an allow, and a check over the cap of the same operation', [ask(4), ask(11)], 6],
      ['a dry run', [ask(4, { dryRun: true })], 10],
      ['an allow, and a dry run of the same operation', [ask(4), ask(7, { dryRun: true })], 6],
      ['an operation that is paused', [ask(4), controlOf('t:1', 'pause')], 6],
      ['an operation that is completed', [ask(4), controlOf('t:1', 'complete')], 10],
      ['an operation that is terminated', [ask(4), controlOf('t:1', 'terminate')], 10],
      ['an operation that has used less than it held, and goes on', [ask(4), usage(3, 't:1')], 6],
      ['an operation that has used more than it held', [ask(4), usage(5, 't:1')], 5],
      ['what was used for no operation', [ask(4), usage(3)], 3],
      ['what was used for an operation that is gone', [usage(3, 't:gone')], 7],
      ["what was used for an operation that is another org's", [checkOf(STRANGER, 'u:1'), usage(3, 'u:1')], 7],
      ['what was said to be used for an operation of another agent', [checkOf(SIBLING, 's:1'), usage(3, 's:1')], 10],
      ['what was said twice to be used', [usage(3, undefined, 'u'), usage(3, undefined, 'u')], 7],
    ])('%s: the rest of the cap excludes spend and money of operations in flight', (_what, commands, leftUsd) => {
      const governor = capped();
      for (const command of commands) governor.apply(command as never, 10);
      const fits = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].filter(
        (usd) => decide(ask(usd, { dryRun: true }, 'probe:s'), governor).answer.decision === 'allow',
      );
      expect(fits.at(-1)).toBe(leftUsd);
    });

    test('an allow that could not be recorded releases its reservation', () => {
      const governor = capped();
      decide(ask(9), governor);
      governor.rollBack([], [ask(9)], 0, 11);
      expect(decide(ask(10, {}, 't:2'), governor).answer.decision).toBe('allow');
    });

    test('a dry run of an operation with a reservation asks for its replacement', () => {
      const governor = capped();
      decide(ask(4), governor);
      expect(
        [ask(10, { dryRun: true }), ask(7, { dryRun: true }, 't:2'), ask(11, { dryRun: true })].map(
          (command) => decide(command, governor).answer,
        ),
      ).toMatchObject([
        { decision: 'allow', opState: 'running' },
        { decision: 'deny', reason: OVER, opState: undefined },
        { decision: 'deny', reason: OVER, opState: 'running' },
      ]);
    });

    test('a check over a cap ends a new operation, leaves a running one, and is recorded', () => {
      const governor = capped();
      decide(ask(4), governor);
      const { answer, draft } = decide(ask(7, { attributes: { size: 1 } }, 't:2'), governor);
      expect(answer).toEqual({
        decision: 'deny',
        reason: OVER,
        policy: undefined,
        ruleId: undefined,
        cause: 'budget',
        exceeded: { tier: 'agent', period: 'daily', resetsAtMs: 86_400_000 },
        opState: 'terminated',
        remedy: WAIT,
      });
      expect(draft).toMatchObject({
        eventType: 'BudgetLimitExceeded',
        lineage: CRAWLER,
        actor: 'agent:acme/search/crawler',
        opId: 't:2',
        decision: 'deny',
        reason: OVER,
      });
      expect(draft.payload).toEqual({
        action: 'tool.call',
        resource: 'web_search',
        attributes: { size: 1 },
        estimated_cost_usd: 7,
        tier: 'agent',
        period: 'daily',
        spent_usd: 0,
        reserved_usd: 4,
        limit_usd: 10,
        resets_at: '1970-01-02T00:00:00.000Z',
        remedy: WAIT,
      });
      expect(decide(ask(11), governor).answer).toMatchObject({ decision: 'deny', reason: OVER, opState: 'running' });
    });

    test("usage over a cap is recorded once, and another agent's operation is refused", () => {
      const governor = capped();
      const over = { ok: true, value: { status: 'limit_exceeded', tier: 'agent', period: 'daily' } };
      const { reply, effects } = governor.apply<'record-usage'>(usage(11, 't:gone', 'u1'), 10);
      expect(reply).toEqual(over);
      expect(effects.map(({ kind }) => kind)).toEqual(['spend-recorded', 'budget-alert', 'budget-alert', 'audit']);
      expect(effects.at(-1)).toEqual({
        kind: 'audit',
        draft: {
          eventType: 'BudgetLimitExceeded',
          lineage: CRAWLER,
          actor: 'agent:acme/search/crawler',
          opId: 't:gone',
          decision: 'deny',
          reason: OVER,
          cause: 'budget',
          payload: {
            cost_usd: 11,
            usage_id: 'u1',
            tier: 'agent',
            period: 'daily',
            spent_usd: 11,
            reserved_usd: 0,
            limit_usd: 10,
            resets_at: '1970-01-02T00:00:00.000Z',
          },
        },
      });
      expect(governor.apply<'record-usage'>(usage(11, 't:gone', 'u1'), 20)).toEqual({
        reply: over,
        effects: [{ kind: 'spend-recorded' }],
      });
      governor.apply<'check'>(checkOf(SIBLING, 's:1'), 30);
      expect(governor.apply<'record-usage'>(usage(1, 's:1'), 30)).toEqual({
        reply: { ok: false, fault: { kind: 'not_owner', opId: 's:1' } },
        effects: [],
      });
    });

    test('a usage id may be any text and is recorded redacted', () => {
      const { effects } = capped().apply<'record-usage'>(usage(11, 't:gone', 'invoice?token=hunter2'), 10);
      expect(effects.at(-1)).toMatchObject({
        kind: 'audit',
        draft: { payload: { usage_id: 'invoice?token=[redacted]' } },
      });
    });

    test('the cost of a completion counts once per operation, even if an id is reused', () => {
      const governor = capped();
      const spent = () => spentUsd(governor.budgets, 'acme', 500_000).daily;
      const completed = (usd: number, atMs: number) => {
        governor.apply<'record-usage'>(usage(usd, 't:1', 'complete:t:1'), atMs);
        governor.apply<'complete-op'>(
          {
            type: 'complete-op',
            agent: CRAWLER,
            credential: digestOf(CRAWLER),
            principal: undefined,
            opId: 't:1' as CheckCommand['opId'],
          },
          atMs,
        );
        return spent();
      };
      decide(ask(0), governor, 1_000);
      expect(completed(1, 2_000)).toBe(1);
      expect(completed(1, 3_000)).toBe(1);
      governor.sweep(100_000);
      expect(completed(1, 100_000)).toBe(1); // said again of an operation that is forgotten
      decide(ask(0), governor, 101_000);
      expect(completed(2, 101_000)).toBe(3);
      expect(completed(2, 102_000)).toBe(3);
      expect(governor.apply<'record-usage'>(usage(2, 't:1', 'u1'), 103_000).effects).toContainEqual({
        kind: 'spend-recorded',
        spent: { agent: expect.objectContaining({ orgId: 'acme' }), microUsd: 2_000_000 },
      });
      expect(spent()).toBe(5);
      governor.sweep(200_000);
      decide(ask(0), governor, 201_000);
      governor.apply<'record-usage'>(usage(2, 't:1', 'u1'), 202_000);
      expect(spent()).toBe(5); // the agent's own name for a record is its own to choose
    });

    test('a policy denial is a policy denial at any cost', () => {
      for (const dryRun of [false, true]) {
        const { answer, draft } = decide(ask(11, { resource: 'forbidden', dryRun }), capped());
        expect({ reason: answer.reason, ruleId: answer.ruleId, eventType: draft.eventType }).toEqual({
          reason: 'forbidden',
          ruleId: 'no',
          eventType: 'ActionDenied',
        });
      }
    });
  });

  test('no sequence of checks and controls allows a forbidden or finished operation', () => {
    const check = fc.record({
      type: fc.constant('check' as const),
      agent: fc.constantFrom(CRAWLER, SIBLING, STRANGER),
      token: fc.constantFrom(CRAWLER, SIBLING, STRANGER, undefined),
      op: fc.constantFrom('t:1', 't:2', 't:3'),
      resource: fc.constantFrom('web_search', 'forbidden'),
      dryRun: fc.boolean(),
    });
    const control = fc.record({
      type: fc.constant('control' as const),
      op: fc.constantFrom('t:1', 't:2', 't:3'),
      trigger: fc.constantFrom('pause' as const, 'resume' as const, 'terminate' as const, 'complete' as const),
    });
    fc.assert(
      fc.property(fc.array(fc.oneof(check, control), { maxLength: 80, size: 'max' }), (steps) => {
        const governor = openGovernor();
        const ops = (): string =>
          JSON.stringify(governor.ops.list(undefined, 10).ops.map((slot) => governor.ops.recordOf(slot)));
        for (const step of steps) {
          if (step.type === 'control') {
            governor.apply<'control-op'>(controlOf(step.op, step.trigger), 10);
            continue;
          }
          const slot = governor.ops.find(step.op as never, step.agent.orgId);
          const before =
            slot === undefined
              ? undefined
              : { state: governor.ops.stateOf(slot), owner: governor.ops.ownerOf(slot).identity };
          const listing = ops();
          const { answer } = decide(
            checkOf(step.agent, step.op, {
              credential: step.token === undefined ? undefined : digestOf(step.token),
              resource: step.resource,
              dryRun: step.dryRun,
            }),
            governor,
          );
          const mayPass =
            step.token === step.agent &&
            step.resource !== 'forbidden' &&
            (before === undefined ||
              (before.owner === step.agent && (before.state === 'running' || before.state === 'pending')));
          expect(answer.decision).toBe(mayPass ? 'allow' : 'deny');
          const mayTouch = !step.dryRun && step.token === step.agent && before === undefined;
          if (!mayTouch) expect(ops()).toBe(listing);
        }
      }),
      { numRuns: runs(40) },
    );
  });
});
