import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CheckAnswer, CheckCommand } from '../../src/core/commands.ts';
import { ADMIN, checkOf, controlOf, CRAWLER, digestOf, openGovernor, SIBLING, STRANGER } from '../support/governor.ts';

type Draft = { readonly eventType: string; readonly lineage: object; readonly actor: string; readonly decision: string; readonly reason: string; readonly opId: string; readonly payload: Record<string, unknown> };

const decide = (command: CheckCommand, governor = openGovernor(), nowMs = 10): { answer: CheckAnswer; draft: Draft } => {
  const { reply, effects } = governor.apply<'check'>(command, nowMs);
  if (!reply.ok) throw new Error(reply.fault.kind);
  const drafts = effects.flatMap((effect) => (effect.kind === 'audit' ? [effect.draft] : []));
  expect(drafts).toHaveLength(1); // each check is recorded exactly once
  return { answer: reply.value, draft: drafts[0] as unknown as Draft };
};

test.each([
  ['its own token', { credential: digestOf(CRAWLER) }, 'allow', 'ActionAllowed', 'agent:acme/search/crawler'],
  ['a bearer in place of a token', { credential: undefined, principal: ADMIN }, 'allow', 'ActionAllowed', 'key:admin'],
  ['no token', { credential: undefined }, 'deny', 'ActionDenied', 'anonymous'],
  ['an unknown token', { credential: 'unknown' as never }, 'deny', 'ActionDenied', 'anonymous'],
  ['an unknown token beside a bearer', { credential: 'unknown' as never, principal: ADMIN }, 'deny', 'ActionDenied', 'anonymous'],
  ['a bearer of another org', { credential: undefined, principal: { ...ADMIN, subject: 'key:globex', orgId: 'globex' } }, 'deny', 'ActionDenied', 'key:globex'],
  ['a token of the same team', { credential: digestOf(SIBLING) }, 'deny', 'A2AImpersonationAttempted', 'agent:acme/search/sibling'],
  ['a token of another org', { credential: digestOf(STRANGER) }, 'deny', 'A2AImpersonationAttempted', 'agent:globex/search/crawler'],
  ['a token of another org beside a bearer', { credential: digestOf(STRANGER), principal: ADMIN }, 'deny', 'A2AImpersonationAttempted', 'agent:globex/search/crawler'],
] as const)('with %s', (_what, voucher, decision, eventType, actor) => {
  const governor = openGovernor();
  const { answer, draft } = decide(checkOf(CRAWLER, 't:s', voucher), governor);
  expect([answer.decision, draft.decision, draft.eventType, draft.actor, draft.reason]).toEqual([decision, decision, eventType, actor, answer.reason]);
  expect(governor.ops.size).toBe(decision === 'allow' ? 1 : 0);
  expect(answer.opState).toBe(decision === 'allow' ? 'running' : undefined);
});

test('an impersonation is about the owner of the token, names what was claimed, and is a violation', () => {
  const { effects } = openGovernor().apply<'check'>(checkOf(STRANGER, 't:s', { credential: digestOf(CRAWLER) }), 10);
  expect(effects).toEqual([
    { kind: 'audit', draft: {
      eventType: 'A2AImpersonationAttempted', lineage: CRAWLER, actor: 'agent:acme/search/crawler', opId: 't:s', decision: 'deny', reason: 'the credential token is registered to a different agent',
      policy: undefined, ruleId: undefined, payload: { action: 'tool.call', resource: 'web_search', claimed_org_id: 'globex', claimed_team_id: 'search', claimed_agent_id: 'crawler' },
    } },
    { kind: 'violation', agent: CRAWLER, reason: 'the credential token is registered to a different agent', claimed: STRANGER, action: 'tool.call' },
  ]);
});

test('a claimed org that is empty is recorded as none', () => {
  const { draft } = decide(checkOf({ ...CRAWLER, orgId: '' }, 't:s', { credential: digestOf(CRAWLER) }));
  expect(draft.payload.claimed_org_id).toBeNull();
});

test('an allow on behalf of a caller is intercepted, a deny is a deny, and both say who called', () => {
  for (const [resource, eventType] of [['web_search', 'A2ACallIntercepted'], ['forbidden', 'ActionDenied']] as const) {
    const { draft } = decide(checkOf(CRAWLER, 't:s', { caller: STRANGER, resource }));
    expect(draft).toMatchObject({ eventType, lineage: CRAWLER, payload: { caller: { org_id: 'globex', team_id: 'search', agent_id: 'crawler' } } });
  }
});

test('no sequence of checks and controls allows what policy forbids, or anything on an operation that is held, over or another\'s', () => {
  const check = fc.record({
    type: fc.constant('check' as const), agent: fc.constantFrom(CRAWLER, SIBLING, STRANGER), token: fc.constantFrom(CRAWLER, SIBLING, STRANGER, undefined),
    op: fc.constantFrom('t:1', 't:2', 't:3'), resource: fc.constantFrom('web_search', 'forbidden'), dryRun: fc.boolean(),
  });
  const control = fc.record({ type: fc.constant('control' as const), op: fc.constantFrom('t:1', 't:2', 't:3'), trigger: fc.constantFrom('pause' as const, 'resume' as const, 'terminate' as const, 'complete' as const) });
  fc.assert(fc.property(fc.array(fc.oneof(check, control), { maxLength: 80 }), (steps) => {
    const governor = openGovernor();
    const ops = (): string => JSON.stringify(governor.ops.list(undefined, 10).ops);
    for (const step of steps) {
      if (step.type === 'control') {
        governor.apply<'control-op'>(controlOf(step.op, step.trigger), 10);
        continue;
      }
      const slot = governor.ops.find(step.op as never);
      const before = slot === undefined ? undefined : { state: governor.ops.stateOf(slot), owner: governor.ops.ownerOf(slot).identity };
      const listing = ops();
      const { answer } = decide(checkOf(step.agent, step.op, { credential: step.token === undefined ? undefined : digestOf(step.token), resource: step.resource, dryRun: step.dryRun }), governor);
      const mayPass = step.token === step.agent && step.resource !== 'forbidden' && (before === undefined || (before.owner === step.agent && (before.state === 'running' || before.state === 'pending')));
      expect(answer.decision).toBe(mayPass ? 'allow' : 'deny');
      const mayTouch = !step.dryRun && step.token === step.agent && before === undefined;
      if (!mayTouch) expect(ops()).toBe(listing);
    }
  }), { numRuns: 300 });
});
