/**
 * Answers of a gateway, or of a proxy before it, as the caller gets them: streams do not get through, so each call is
 * answered on its own.
 */
import { describe, expect, test } from 'vitest';
import { attemptOnStream } from '../../sdk/typescript/src/checks.ts';
import { GatewayError } from '../../sdk/typescript/src/index.ts';
import type { StreamCheckReply } from '../../sdk/typescript/src/schema.ts';
import { type Answer, scriptedAgent, scriptedGateway } from '../support/scripted-gateway.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };

const agentWith = async (answer: Answer, method: string, checkMs = 5_000) =>
  scriptedAgent(await scriptedGateway((call) => (call.method === method ? answer : undefined)), {
    onUnreachable: 'allow',
    deadlines: { checkMs, callMs: checkMs },
  });

describe('answers', () => {
  test('a final refusal rejects with the code and text of gateway or proxy', async () => {
    const refusals: readonly Answer[] = [
      { fails: 'PERMISSION_DENIED', fault: 'insufficient_scope' },
      { fails: 'INTERNAL', fault: 'internal' },
      { fails: 'INVALID_ARGUMENT' },
      { fails: 'UNIMPLEMENTED' },
      { fails: 'UNAUTHENTICATED' },
      { fails: 'PERMISSION_DENIED' },
    ];
    const errors = await Promise.all(
      refusals.map(async (refusal) =>
        (await agentWith(refusal, 'CheckAction')).check(SEARCH).then(
          () => undefined,
          (error: unknown) => error,
        ),
      ),
    );
    expect(
      errors.map((error) => (error instanceof GatewayError ? [error.code, error.fault, error.message] : error)),
    ).toEqual([
      ['permission_denied', 'insufficient_scope', 'PERMISSION_DENIED'],
      ['internal', 'internal', 'INTERNAL'],
      ['invalid_argument', undefined, 'INVALID_ARGUMENT'],
      ['unimplemented', undefined, 'UNIMPLEMENTED'],
      ['unauthenticated', undefined, 'UNAUTHENTICATED'],
      ['permission_denied', undefined, 'PERMISSION_DENIED'],
    ]);
  });

  test('a proxy without capacity is treated as a busy gateway, with its retry time', async () => {
    const agent = await agentWith({ fails: 'RESOURCE_EXHAUSTED', retryAfterSecs: 60 }, 'CheckAction');
    expect(await agent.check(SEARCH)).toMatchObject({
      decision: 'deny',
      reason: 'RESOURCE_EXHAUSTED',
      unreachable: false,
    });
  });

  test('a limit of an unknown tier or period does not count as within the budget', async () => {
    for (const unknown of [{ tier: 'org' }, { period: 'daily' }]) {
      const agent = await agentWith({ status: 'limit_exceeded', ...unknown }, 'RecordUsage');
      await expect(agent.recordUsage({ costUsd: 1 })).rejects.toMatchObject({
        name: 'GatewayError',
        code: 'internal',
        message: 'the gateway reported a limit that this client does not know',
      });
    }
    const agent = await agentWith({ status: 'limit_exceeded', tier: 'team', period: 'monthly' }, 'RecordUsage');
    expect(await agent.recordUsage({ costUsd: 1 })).toEqual({
      status: 'limit_exceeded',
      tier: 'team',
      period: 'monthly',
    });
  });

  test("a completion that may have happened before rejects with the gateway's answer", async () => {
    let asked = 0;
    const gateway = await scriptedGateway(({ method }) => {
      if (method === 'CheckAction') return { fails: 'PERMISSION_DENIED' };
      if (method !== 'CompleteOp') return undefined;
      asked += 1;
      return asked === 1 ? { fails: 'UNAVAILABLE' } : { fails: 'FAILED_PRECONDITION', fault: 'invalid_transition' };
    });
    await expect(scriptedAgent(gateway).complete('trace:span')).rejects.toMatchObject({
      code: 'failed_precondition',
      fault: 'invalid_transition',
    });
    expect(asked).toBe(2);
  });

  test('a gateway shutting down is retried, and then counts as unreachable', async () => {
    const leaving = { fails: 'UNAVAILABLE', fault: 'shutting_down', retryAfterSecs: 1 } as const;
    let asked = 0;
    const gateway = await scriptedGateway(({ method }) => {
      if (method !== 'CheckAction') return undefined;
      asked += 1;
      return asked === 1 ? leaving : undefined;
    });
    expect(await scriptedAgent(gateway).check(SEARCH)).toMatchObject({
      decision: 'allow',
      opState: 'running',
      unreachable: false,
    });
    expect(asked).toBe(2);
    const agent = await agentWith(leaving, 'CheckAction', 200);
    expect(await agent.check(SEARCH)).toMatchObject({ decision: 'allow', opState: undefined, unreachable: true });
    const reply = {
      error: { code: 'shutting_down', message: 'the gateway is shutting down; reconnect', retryAfterSecs: 1 },
    } as StreamCheckReply;
    expect(attemptOnStream({ kind: 'answered', reply })).toEqual({
      kind: 'lost',
      because: 'the gateway is shutting down; reconnect',
      isUnsent: false,
    });
  });
});
