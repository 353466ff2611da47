import { queryObjects } from 'node:v8';
import { describe, expect, test } from 'vitest';
import { UnconfirmedWarning } from '../../sdk/typescript/src/index.ts';
import { type ScriptedGateway, scriptedAgent, scriptedGateway } from '../support/scripted-gateway.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };

const registrationsAt = ({ calls }: ScriptedGateway): number =>
  calls.filter(({ method }) => method === 'RegisterAgent').length;

describe('credential', () => {
  test('an agent is registered once, however many calls wait for it', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway, { apiKey: 'any-key' });
    const answers = await Promise.all(Array.from({ length: 20 }, () => agent.check(SEARCH)));
    expect(new Set(answers.map(({ decision }) => decision))).toEqual(new Set(['allow']));
    expect(registrationsAt(gateway)).toBe(1);
  });

  test('gateways that have not confirmed a new token are named to onWarning', async () => {
    const gateway = await scriptedGateway(({ method }) =>
      method === 'RegisterAgent' ? { unconfirmed: 'gateway-2, gateway-3' } : undefined,
    );
    const warnings: Error[] = [];
    const agent = scriptedAgent(gateway, { apiKey: 'any-key', onWarning: (warning) => void warnings.push(warning) });
    await agent.ready();
    await agent.check(SEARCH);
    expect(warnings).toEqual([expect.any(UnconfirmedWarning)]);
    expect(warnings[0]).toMatchObject({
      gateways: ['gateway-2', 'gateway-3'],
      message: 'not confirmed in time by gateway-2, gateway-3: the change may not be in force there yet',
    });
  });

  test('an invalid token is replaced once for all calls, and each succeeds', async () => {
    let valid = 1;
    const gateway = await scriptedGateway(({ method, token }) => {
      if (method === 'RegisterAgent') return { credentialToken: `token-${valid}` };
      return method === 'CompleteOp' && token !== `token-${valid}` ? { fails: 'UNAUTHENTICATED' } : undefined;
    });
    const agent = scriptedAgent(gateway, { apiKey: 'any-key' });
    await agent.ready();
    valid = 2;
    await Promise.all(Array.from({ length: 20 }, (_, nth) => agent.complete(`trace:${nth}`)));
    expect(registrationsAt(gateway)).toBe(2);
  });

  test('completing twice is an error, also after a first try that was refused', async () => {
    const refusals = [
      'UNAUTHENTICATED',
      'FAILED_PRECONDITION',
      'RESOURCE_EXHAUSTED',
      'FAILED_PRECONDITION',
      'UNAVAILABLE',
      'FAILED_PRECONDITION',
    ] as const;
    const faults = {
      UNAUTHENTICATED: 'unauthenticated',
      FAILED_PRECONDITION: 'invalid_transition',
      RESOURCE_EXHAUSTED: 'overloaded',
      UNAVAILABLE: undefined,
    };
    let asked = 0;
    const gateway = await scriptedGateway(({ method }) => {
      if (method === 'CheckAction') return { decision: 'deny', opState: 'completing' };
      if (method !== 'CompleteOp') return undefined;
      const fails = refusals[asked++]!;
      return { fails, fault: faults[fails] };
    });
    const agent = scriptedAgent(gateway, { apiKey: 'any-key' });
    await agent.ready();
    await expect(agent.complete('trace:span')).rejects.toMatchObject({
      code: 'failed_precondition',
      fault: 'invalid_transition',
    });
    await expect(agent.complete('trace:span')).rejects.toMatchObject({
      code: 'failed_precondition',
      fault: 'invalid_transition',
    });
    // Its answer may be what was lost.
    await agent.complete('trace:span');
    expect(asked).toBe(6);
  });

  test('a gateway too busy to register an agent counts as reachable: checks wait', async () => {
    let refusals = 2;
    const gateway = await scriptedGateway(({ method }) =>
      method === 'RegisterAgent' && refusals-- > 0 ? { fails: 'RESOURCE_EXHAUSTED' } : undefined,
    );
    const agent = scriptedAgent(gateway, { apiKey: 'any-key', deadlines: { outageMs: 0 } });
    expect(await agent.check(SEARCH)).toMatchObject({ decision: 'allow', unreachable: false });
    expect(registrationsAt(gateway)).toBe(3);
  });

  test.each([
    ['RegisterAgent', 10_000_000],
    ['CheckAction', -1],
  ] as const)('an invalid retry time does not mean at once: %s, %d s', async (busy, retryAfterSecs) => {
    const gateway = await scriptedGateway(({ method }) =>
      method === busy ? { fails: 'RESOURCE_EXHAUSTED', retryAfterSecs } : undefined,
    );
    const agent = scriptedAgent(gateway, { apiKey: 'any-key', deadlines: { checkMs: 500 } });
    expect(await agent.check(SEARCH)).toMatchObject({ decision: 'deny' });
    expect(gateway.calls.filter(({ method }) => method === busy).length).toBeLessThan(50);
  });

  test('a refused registration is not retried, and every call gives the reason', async () => {
    const gateway = await scriptedGateway(({ method }) =>
      method === 'RegisterAgent' ? { fails: 'PERMISSION_DENIED' } : undefined,
    );
    const agent = scriptedAgent(gateway, { apiKey: 'any-key' });
    for (const call of [agent.ready(), agent.check(SEARCH), agent.recordUsage({ costUsd: 1 }), agent.complete('a:b')]) {
      await expect(call).rejects.toMatchObject({
        name: 'GatewayError',
        code: 'permission_denied',
        message: 'cannot register the agent: PERMISSION_DENIED',
      });
    }
    await expect(agent.check(SEARCH)).rejects.toMatchObject({ code: 'permission_denied' });
    expect(agent.state).toBe('refused');
    expect(registrationsAt(gateway)).toBe(1);
  });

  test('an invalid token that cannot be replaced holds no call beyond its deadline', async () => {
    const agentWithVoidToken = async () => {
      let isVoid = false;
      const agent = scriptedAgent(
        await scriptedGateway(({ method }) => {
          if (!isVoid) return undefined;
          switch (method) {
            case 'CheckAction':
              return { decision: 'deny', opState: 'unspecified' };
            case 'RegisterAgent':
              return { fails: 'RESOURCE_EXHAUSTED', fault: 'rate_limited' };
            default:
              return { fails: 'UNAUTHENTICATED' };
          }
        }),
        { apiKey: 'any-key', deadlines: { checkMs: 2_000, callMs: 2_000 } },
      );
      await agent.ready();
      isVoid = true;
      return agent;
    };
    const [checking, completing] = await Promise.all([agentWithVoidToken(), agentWithVoidToken()]);
    const answers = [checking.check(SEARCH), completing.complete('trace:span').catch((error: unknown) => error)];
    expect(await Promise.all(answers)).toMatchObject([
      {
        decision: 'deny',
        unreachable: true,
        reason: 'cannot reach the gateway: the agent is not registered yet: RESOURCE_EXHAUSTED',
      },
      {
        name: 'GatewayError',
        code: 'unavailable',
        message: 'cannot reach the gateway: the agent is not registered yet: RESOURCE_EXHAUSTED',
      },
    ]);
  });

  test('hours without a first gateway keep nothing of the checks answered without it', async () => {
    const agent = scriptedAgent({ address: '127.0.0.1:1' }, { apiKey: 'any-key', deadlines: { outageMs: 0 } });
    await agent.check(SEARCH);
    const promises = (): number => queryObjects(Promise, { format: 'count' });
    const before = promises();
    for (let checks = 0; checks < 1_000; checks += 1)
      expect(await agent.check(SEARCH)).toMatchObject({ unreachable: true });
    expect(promises() - before).toBeLessThan(150);
  });
});
