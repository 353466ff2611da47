import { describe, expect, test } from 'vitest';
import { assert, fail } from '../../../src/core/base/result.ts';
import { judgePassage } from '../../../src/doors/rpc/judge.ts';
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
    expect(await passageAt(1, { kind: 'not_found', what: 'operation t:1' })).toEqual({
      decision: 'deny',
      asked: ['check', 'complete-op'],
    });
  });
});
