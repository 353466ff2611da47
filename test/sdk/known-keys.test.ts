import { describe, expect, onTestFinished, test } from 'vitest';
import { type AgentClientOptions, type CheckRequest, createAgentClient } from '../../sdk/typescript/src/index.ts';
import { scriptedAgent, scriptedGateway } from '../support/scripted-gateway.ts';

const OPTIONS = {
  address: '127.0.0.1:1',
  agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
  apiKey: 'key',
};

/** As from JavaScript, where no compiler looks. */
function messageOf(options: unknown): string {
  try {
    const client = createAgentClient(options as AgentClientOptions);
    onTestFinished(() => client.close());
    return 'accepted';
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return error.message;
  }
}

describe('keys that nobody knows', () => {
  test.each([
    [{ ...OPTIONS, adress: 'x' }, "createAgentClient has an unknown key 'adress': did you mean 'address'?"],
    [{ ...OPTIONS, api_key: 'x' }, "createAgentClient has an unknown key 'api_key': did you mean 'apiKey'?"],
    [
      { ...OPTIONS, onUnreachabel: 'allow' },
      "createAgentClient has an unknown key 'onUnreachabel': did you mean 'onUnreachable'?",
    ],
    [{ ...OPTIONS, deadlines: { checkMS: 5 } }, "deadlines has an unknown key 'checkMS': did you mean 'checkMs'?"],
    [
      { ...OPTIONS, deadlines: { timeout: 5 } },
      "deadlines has an unknown key 'timeout'; it takes checkMs, callMs, approvalMs, outageMs, signalMs, closeMs",
    ],
    [{ ...OPTIONS, tls: { servername: 'x' } }, "tls has an unknown key 'servername': did you mean 'serverName'?"],
    [{ ...OPTIONS, tls: true }, 'tls must be an object'],
  ])('createAgentClient names the option that was meant: %#', (options, message) => {
    expect(messageOf(options)).toBe(message);
  });

  test.each([[null], ['127.0.0.1:50051']])('createAgentClient(%j) says what is needed', (options) => {
    expect(messageOf(options)).toBe(
      "createAgentClient needs options: address, such as '127.0.0.1:50051', or url; agent, { orgId, teamId, agentId }; and apiKey or credentialToken",
    );
  });

  test('a key of a megabyte is refused at once', () => {
    const before = process.cpuUsage();
    expect(messageOf({ ...OPTIONS, ['x'.repeat(1_000_000)]: 1 })).toMatch(
      /^createAgentClient has an unknown key 'x{40}'; it takes address, url, fetch, agent/,
    );
    expect(process.cpuUsage(before).user).toBeLessThan(1_000_000);
  });

  test('a call with a misspelt key rejects, and reaches no gateway', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    const check = (request: unknown) => agent.check(request as CheckRequest);
    const action = 'tool.call';
    const calls: [Promise<unknown>, string][] = [
      [
        check({ action, resouce: 'web_search' }),
        "the request of a check has an unknown key 'resouce': did you mean 'resource'?",
      ],
      [
        check({ action, estimated_cost_usd: 1 }),
        "the request of a check has an unknown key 'estimated_cost_usd': did you mean 'estimatedCostUsd'?",
      ],
      [check(undefined), 'the request of a check must be an object'],
      [check('tool.call'), 'the request of a check must be an object'],
      [
        agent.check({ action }, { signl: undefined } as object),
        "the last argument of a call has an unknown key 'signl': did you mean 'signal'?",
      ],
      // It would have been carried out.
      [
        agent.run({ action, dryRun: true } as { action: string }, () => expect.unreachable()),
        "the action of a run has an unknown key 'dryRun'; it takes action, resource, attributes, estimatedCostUsd, caller, traceId, spanId, supportedObligations",
      ],
      // The cost would have been lost.
      [
        agent.complete('trace:span', { costUSD: 1 } as object),
        "the outcome of complete has an unknown key 'costUSD': did you mean 'costUsd'?",
      ],
      [
        agent.recordUsage({ costUsd: 1, usageID: 'u' } as { costUsd: number }),
        "the usage has an unknown key 'usageID': did you mean 'usageId'?",
      ],
    ];
    const errors = await Promise.all(
      calls.map(([call]) =>
        call.then(
          () => 'answered',
          (error: unknown) => (error instanceof TypeError ? error.message : error),
        ),
      ),
    );
    expect(errors).toEqual(calls.map(([, message]) => message));
    expect(gateway.calls).toEqual([]);
  });
});
