import { AIMessage, type BaseMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { Command, interrupt, MemorySaver } from '@langchain/langgraph';
import { createAgent, tool } from 'langchain';
import { countTokens, guardTools } from 'svc-gateway-sdk/langchain';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { contract, gatewayOfTest, till, waiting } from './contract.ts';

/** Calls `pay` with the amount 500, and says `done` once it has read the result. */
class ScriptedModel extends FakeListChatModel {
  constructor() {
    super({ responses: ['done'] });
  }

  override bindTools(): never {
    return this as never;
  }

  override async _generate(messages: BaseMessage[]): Promise<never> {
    const isDone = messages.some((each) => each.getType() === 'tool');
    const message = new AIMessage({
      id: isDone ? 'message-2' : 'message-1',
      content: isDone ? 'done' : '',
      tool_calls: isDone ? [] : [{ id: 'call-1', name: 'pay', args: { amount: 500 }, type: 'tool_call' }],
      usage_metadata: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
      response_metadata: { model_name: 'scripted' },
    } as never);
    return { generations: [{ text: '', message }] } as never;
  }
}

const payTool = (pay: (args: { amount: number }) => unknown) =>
  tool(async (args: { amount: number }) => pay(args), {
    name: 'pay',
    description: 'pays',
    schema: z.object({ amount: z.number() }),
  });

const START = { messages: [{ role: 'user', content: 'pay' }] };
const toolTextIn = (messages: readonly BaseMessage[]): string =>
  JSON.stringify(messages.filter((each) => each.getType() === 'tool').map(({ content }) => content));

for (const make of [contract, waiting])
  make('LangChain', async (client, pay) => {
    const agent = createAgent({ model: new ScriptedModel(), tools: guardTools(client, [payTool(pay)]) });
    return toolTextIn((await agent.invoke(START as never)).messages as never);
  });

describe('an approval of LangChain', () => {
  function interrupted() {
    const gateway = gatewayOfTest();
    gateway.requireApproval('tool.call', 'pay');
    const { paid, pay } = till();
    const tools = guardTools(gateway.client, [payTool(pay)], { interrupt: interrupt as never });
    const agent = createAgent({ model: new ScriptedModel(), tools, checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: 'thread-1' } };
    return {
      gateway,
      paid,
      first: () => agent.invoke(START as never, config),
      resume: (answer: object) => agent.invoke(new Command({ resume: answer }) as never, config),
    };
  }

  test.each([
    ['approve', [500]],
    ['deny', []],
  ] as const)('is checked again when it resumes, and decided by %s at the gateway', async (decision, expected) => {
    const { gateway, paid, first, resume } = interrupted();
    const { __interrupt__ } = (await first()) as { __interrupt__?: { value: object }[] };
    expect(__interrupt__?.[0]?.value).toMatchObject({ type: 'tool_approval', name: 'pay', args: { amount: 500 } });
    const resumed = resume({ type: 'approve' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(paid).toEqual([]);
    gateway.decide((await gateway.pendingApproval()).id, decision);
    await resumed;
    expect(paid).toEqual(expected);
    expect(gateway.ops).toMatchObject([{ opId: 'thread-1:call-1' }]);
  });

  test('is taken back when its user rejects it, and the model is told', async () => {
    const { gateway, paid, first, resume } = interrupted();
    await first();
    const { messages } = await resume({ type: 'reject', message: 'ask my boss' });
    expect(toolTextIn(messages as never)).toContain('ask my boss');
    expect(gateway.approvals).toMatchObject([{ state: 'cancelled' }]);
    expect(paid).toEqual([]);
  });
});

describe('tokens of LangChain', () => {
  test('tokens of LangChain are counted by model, once for each answer', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('*');
    const agent = createAgent({
      model: new ScriptedModel(),
      tools: guardTools(gateway.client, [payTool(() => 'paid')]),
    });
    const { messages } = await agent.invoke(START as never);
    await countTokens(gateway.client, messages as never);
    await countTokens(gateway.client, messages as never);
    expect(gateway.usage).toMatchObject([
      { model: 'scripted', inputTokens: 10, outputTokens: 5, usageId: 'message-1' },
      { model: 'scripted', inputTokens: 10, outputTokens: 5, usageId: 'message-2' },
    ]);
  });
});
