import { describe, expect, test } from 'vitest';
import type { SecretDigest } from '../../../src/core/base/ids.ts';
import { assert, fail, ok } from '../../../src/core/base/result.ts';
import { judgePassage } from '../../../src/doors/rpc/judge.ts';
import type { WirePorts } from '../../../src/doors/rpc/ports.ts';
import { knownBearer } from '../../../src/doors/rpc/speaker.ts';
import { fakeGateway, TOKEN } from '../../support/fake-ports.ts';

const QUESTION = {
  action: 'tool.call',
  resource: 'r',
  attributes: {},
  supportedObligations: [],
  traceId: undefined,
} as const;

/** Ends an allowed action at a gateway that refuses the end of it `refusals` times. */
async function passageAt(refusals: number, fault: Parameters<typeof fail>[0]) {
  const gateway = fakeGateway();
  const bearer = await knownBearer(gateway, `Bearer ${TOKEN}`);
  assert(bearer.ok, 'the token is known');
  let left = refusals;
  gateway.answer = ({ type }) => {
    if (type !== 'complete-op' || left === 0) return undefined;
    left -= 1;
    return { reply: fail(fault) as never, auditId: undefined };
  };
  const verdict = await judgePassage(gateway, bearer.value, undefined, QUESTION);
  return {
    decision: verdict.ok ? verdict.value.decision : verdict.fault.kind,
    asked: gateway.asked.map(({ type }) => type),
  };
}

describe('the passage of a request', () => {
  test('ends the operation that it began, also at a gateway that is briefly overloaded', async () => {
    expect(await passageAt(2, { kind: 'overloaded', retryAfterSecs: 1, what: 'the gateway' })).toEqual({
      decision: 'allow',
      asked: ['check', 'complete-op', 'complete-op', 'complete-op'],
    });
  });

  test('is denied at once if the operation was ended in between', async () => {
    expect(await passageAt(2, { kind: 'not_found', what: 'operation t:1' })).toEqual({
      decision: 'deny',
      asked: ['check', 'complete-op', 'complete-op'],
    });
  });
});

const OWNER = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const ALLOWED = ok({ decision: 'allow', reason: 'allowed', policy: undefined, ruleId: undefined, cause: undefined });
const NOT_THERE = fail({ kind: 'not_found', what: 'operation' });

/** Answers the check, and each completion in turn. Shows what was asked, and what before an answer was there. */
async function passes(claimed: string | undefined, check: unknown, completions: readonly unknown[]) {
  const asked: string[] = [];
  let left = completions;
  const ask = async ({ type }: { readonly type: string }) => {
    asked.push(type);
    const [next, ...rest] = left;
    if (type === 'complete-op') left = rest;
    await Promise.resolve();
    asked.push('answered');
    return { reply: type === 'check' ? check : next, auditId: 1 };
  };
  const ports = { link: { ask } } as unknown as WirePorts;
  const bearer = {
    authorization: 'Bearer token',
    owner: OWNER,
    credential: 'digest' as SecretDigest,
    principal: undefined,
  };
  const verdict = await judgePassage(ports, bearer, claimed, {
    action: 'net.connect',
    resource: 'https://api.example/',
    attributes: {},
    supportedObligations: [],
    traceId: undefined,
  });
  return { asked, decision: verdict.ok ? verdict.value.decision : verdict.fault.kind };
}

describe('a passage whose end the door does not see', () => {
  test('is begun and ended before either is answered', async () => {
    expect(await passes(undefined, ALLOWED, [ok({})])).toEqual({
      asked: ['check', 'complete-op', 'answered', 'answered'],
      decision: 'allow',
    });
  });

  test('is ended once more where its check was decided later', async () => {
    expect(await passes(undefined, ALLOWED, [NOT_THERE, ok({})])).toEqual({
      asked: ['check', 'complete-op', 'answered', 'answered', 'complete-op', 'answered'],
      decision: 'allow',
    });
  });

  test('of another agent than the one of the token is put on record once', async () => {
    const denied = ok({
      decision: 'deny',
      reason: 'not yours',
      policy: undefined,
      ruleId: undefined,
      cause: 'credential',
    });
    expect(await passes('acme/search/other', denied, [])).toEqual({ asked: ['check', 'answered'], decision: 'deny' });
  });
});
