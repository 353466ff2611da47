import { generateText, isStepCount, type ModelMessage, tool } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { countTokens, guardTools } from 'svc-gateway-sdk/ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { contract, gatewayOfTest, till, waiting } from './contract.ts';

const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** Calls `pay` with the amount 500, and says `done` once it has read the result. */
const scriptedModel = () =>
  new MockLanguageModelV4({
    modelId: 'scripted',
    doGenerate: async ({ prompt }: { prompt: readonly { role: string }[] }) => {
      const isDone = prompt.some(({ role }) => role === 'tool');
      const call = { type: 'tool-call', toolCallId: 'call-1', toolName: 'pay', input: '{"amount":500}' };
      return {
        content: isDone ? [{ type: 'text', text: 'done' }] : [call],
        finishReason: { unified: isDone ? 'stop' : 'tool-calls', raw: undefined },
        usage: USAGE,
        warnings: [],
        response: { id: isDone ? 'response-2' : 'response-1', modelId: 'scripted', timestamp: new Date(0) },
      } as never;
    },
  });

const payTool = (pay: (args: { amount: number }) => unknown) =>
  tool({
    description: 'pays',
    inputSchema: z.object({ amount: z.number() }),
    execute: async (args: { amount: number }) => pay(args),
  });

const run = (
  tools: Record<string, ReturnType<typeof payTool>>,
  messages: ModelMessage[],
  onStepEnd: ReturnType<typeof countTokens> = async () => {},
) => generateText({ model: scriptedModel(), tools, messages, stopWhen: isStepCount(3), onStepEnd });

const START: ModelMessage[] = [{ role: 'user', content: 'pay' }];

contract('the AI SDK', async (client, pay) => {
  const { steps } = await run(guardTools(client, { pay: payTool(pay) }), START);
  return JSON.stringify(steps[0]?.content, (_key, value) => (value instanceof Error ? value.message : value));
});
waiting('the AI SDK', async (client, pay) => {
  const { steps } = await run(guardTools(client, { pay: payTool(pay) }, { approvals: 'wait' }), START);
  return JSON.stringify(steps[0]?.content, (_key, value) => (value instanceof Error ? value.message : value));
});

describe('an approval of the AI SDK', () => {
  test.each([
    ['approve', [500]],
    ['deny', []],
  ] as const)('is checked again when it resumes, and decided by %s at the gateway', async (decision, expected) => {
    const gateway = gatewayOfTest();
    gateway.requireApproval('tool.call', 'pay');
    const { paid, pay } = till();
    const tools = guardTools(gateway.client, { pay: payTool(pay) });
    const first = await run(tools, START);
    const request = first.content.find(({ type }) => type === 'tool-approval-request') as { approvalId: string };
    const { id } = await gateway.pendingApproval();
    expect(paid).toEqual([]);
    const answer = { type: 'tool-approval-response', approvalId: request.approvalId, approved: true } as const;
    const messages: ModelMessage[] = [...START, ...first.response.messages, { role: 'tool', content: [answer] }];
    // The user of the framework alone decides nothing.
    const resumed = run(tools, messages);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(paid).toEqual([]);
    gateway.decide(id, decision);
    await resumed;
    expect(paid).toEqual(expected);
    expect(gateway.ops).toHaveLength(1);
  });
});

describe('a denied tool of the AI SDK', () => {
  test('has a result that says why, whatever its toModelOutput', async () => {
    const gateway = gatewayOfTest();
    gateway.deny('tool.call', 'pay', { reason: 'too dangerous' });
    const own = ({ output }: { output: { sum: number } }) => ({
      type: 'text' as const,
      value: `${output.sum.toFixed(2)}`,
    });
    const pay = { ...payTool(() => 'paid'), toModelOutput: own } as never;
    const { steps } = await run(guardTools(gateway.client, { pay }), START);
    expect(steps[0]?.toolResults[0]?.output).toMatch(/^pay was denied by policy: too dangerous/);
    expect(JSON.stringify(steps[0]?.response.messages)).toContain(
      '"error-text","value":"pay was denied by policy: too dangerous',
    );
  });
});

describe('tokens of the AI SDK', () => {
  test('tokens of the AI SDK are counted by model, once for each answer', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('*');
    const tools = guardTools(gateway.client, { pay: payTool(() => 'paid') });
    await run(tools, START, countTokens(gateway.client));
    expect(gateway.usage).toMatchObject([
      { model: 'scripted', inputTokens: 10, outputTokens: 5, usageId: 'response-1' },
      { model: 'scripted', inputTokens: 10, outputTokens: 5, usageId: 'response-2' },
    ]);
  });
});
