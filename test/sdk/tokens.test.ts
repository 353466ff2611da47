/** Tokens that the gateway prices, as its SDK and the adapters report them. */
import { createAgentClient } from 'svc-gateway-sdk';
import { countTokens } from 'svc-gateway-sdk/ai';
import { countTokens as countAnswers } from 'svc-gateway-sdk/openai-agents';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };
const USED = { model: 'claude-sonnet-4-5', inputTokens: 10_000, outputTokens: 1_000 };

let gateway: GatewayHere;
beforeAll(async () => {
  gateway = await startGatewayHere();
});
afterAll(async () => {
  await gateway?.stop();
});

describe.each(['gRPC', 'HTTP'] as const)('tokens over %s', (way) => {
  function connect() {
    const warnings: string[] = [];
    const client = createAgentClient({
      ...(way === 'gRPC' ? { address: gateway.grpc } : { url: gateway.url }),
      agent: `acme/search/by-${way}`,
      apiKey: ADMIN_KEY,
      onWarning: ({ message }) => warnings.push(message),
    });
    onTestFinished(() => client.close());
    return { client, warnings };
  }

  test('are priced in a run, at its end and beside it, once for each id', async () => {
    const { client } = connect();
    await client.run(SEARCH, async (op) => {
      expect(await op.recordUsage({ ...USED, usageId: `first-${way}` })).toEqual({ status: 'ok', costUsd: 0.045 });
      expect(await op.recordUsage({ ...USED, usageId: `first-${way}` })).toEqual({ status: 'ok', costUsd: 0.045 });
      await expect(op.recordUsage({ ...USED, inputTokens: 0.5 })).rejects.toThrow('inputTokens must be a whole number');
      await expect(op.recordUsage({ ...USED, tokens: 1 } as never)).rejects.toThrow(/tokens/);
    });
    const { opId } = await client.check(SEARCH);
    await expect(client.complete(opId, { costUsd: 1, usage: USED })).rejects.toThrow(
      'usage is either costUsd or model with its tokens',
    );
    await client.complete(opId, { usage: { ...USED, cacheReadTokens: 10_000 } });
    const { budgets } = (await gateway.call('GET', '/api/v1/budgets?org_id=acme&per_page=1000')).body;
    const own = budgets.find(({ agent_id }: { agent_id: string | null }) => agent_id === `by-${way}`);
    expect(own.daily.spent_usd).toBeCloseTo(0.063, 9);
  });

  test('that a framework counts are a warning where their model has no price', async () => {
    const { client, warnings } = connect();
    const usage = { inputTokens: 10, outputTokens: 5 };
    await countTokens(client)({ usage, response: { id: 'r-1', modelId: 'scripted' } });
    await countAnswers(client, 'scripted', [{ responseId: 'r-2', usage }]);
    expect(warnings).toEqual([
      expect.stringMatching(/^the tokens of scripted are not recorded: .*price/),
      expect.stringMatching(/^the tokens of scripted are not recorded: .*price/),
    ]);
  });

  test('of a cache are part of the input, also where a provider counts them apart', async () => {
    const { client, warnings } = connect();
    const inputTokenDetails = { cacheReadTokens: 10_000, cacheWriteTokens: 0 };
    const response = { id: `cached-${way}`, modelId: USED.model };
    await countTokens(client)({ usage: { inputTokens: 100, outputTokens: 5, inputTokenDetails }, response });
    expect(warnings).toEqual([]);
  });
});
