import { Agent, type Model, type ModelResponse, Runner, tool, Usage } from '@openai/agents';
import { countTokens, guardTools } from 'svc-gateway-sdk/openai-agents';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { contract, gatewayOfTest, till, waiting } from './contract.ts';

/** Calls `pay` with the amount 500, and says `done` once it has read the result. */
class ScriptedModel implements Model {
  read = '';

  async getResponse({ input }: { input: unknown }): Promise<ModelResponse> {
    const items = Array.isArray(input) ? (input as { type?: string; output?: unknown }[]) : [];
    const result = items.find(({ type }) => type === 'function_call_result');
    if (result !== undefined) this.read = JSON.stringify(result.output);
    const call = {
      type: 'function_call',
      callId: 'call-1',
      name: 'pay',
      arguments: '{"amount":500}',
      status: 'completed',
    };
    const done = {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'done' }],
    };
    const usage = new Usage({ inputTokens: 10, outputTokens: 5, totalTokens: 15, requests: 1 });
    return {
      usage,
      output: [result === undefined ? call : done],
      responseId: result === undefined ? 'response-1' : 'response-2',
    } as ModelResponse;
  }

  getStreamedResponse(): never {
    throw new Error('no streams');
  }
}

const payTool = (pay: (args: { amount: number }) => unknown) =>
  tool({
    name: 'pay',
    description: 'pays',
    parameters: z.object({ amount: z.number() }),
    execute: async (args) => pay(args),
  });

const runner = new Runner({ tracingDisabled: true });

contract('OpenAI Agents', async (client, pay) => {
  const model = new ScriptedModel();
  await runner.run(new Agent({ name: 'payer', model, tools: guardTools(client, [payTool(pay)]) }), 'pay');
  return model.read;
});
waiting('OpenAI Agents', async (client, pay) => {
  const model = new ScriptedModel();
  const tools = guardTools(client, [payTool(pay)], { approvals: 'wait' });
  await runner.run(new Agent({ name: 'payer', model, tools }), 'pay');
  return model.read;
});

describe('an approval of OpenAI Agents', () => {
  test.each([
    ['approve', [500]],
    ['deny', []],
  ] as const)('is checked again when it resumes, and decided by %s at the gateway', async (decision, expected) => {
    const gateway = gatewayOfTest();
    gateway.requireApproval('tool.call', 'pay');
    const { paid, pay } = till();
    const agent = new Agent({
      name: 'payer',
      model: new ScriptedModel(),
      tools: guardTools(gateway.client, [payTool(pay)]),
    });
    const { interruptions, state } = await runner.run(agent, 'pay');
    expect(interruptions).toHaveLength(1);
    for (const each of interruptions) state.approve(each);
    const resumed = runner.run(agent, state);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(paid).toEqual([]);
    gateway.decide((await gateway.pendingApproval()).id, decision);
    await resumed;
    expect(paid).toEqual(expected);
    expect(gateway.ops).toHaveLength(1);
  });
});

describe('tokens of OpenAI Agents', () => {
  test('tokens of OpenAI Agents are counted by model, once for each answer', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('*');
    const tools = guardTools(gateway.client, [payTool(() => 'paid')]);
    const { rawResponses } = await runner.run(new Agent({ name: 'payer', model: new ScriptedModel(), tools }), 'pay');
    await countTokens(gateway.client, 'scripted', rawResponses);
    expect(gateway.usage).toMatchObject([
      { model: 'scripted', inputTokens: 10, outputTokens: 5, usageId: 'response-1' },
      { model: 'scripted', inputTokens: 10, outputTokens: 5, usageId: 'response-2' },
    ]);
  });
});
