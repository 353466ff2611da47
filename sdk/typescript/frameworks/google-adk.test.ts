import { BaseLlm, FunctionTool, InMemoryRunner, LlmAgent, type LlmRequest } from '@google/adk';
import { guardTools } from 'svc-gateway-sdk/google-adk';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { contract, gatewayOfTest, till, waiting } from './contract.ts';

/** Calls `pay` with the amount 500, and says `done` once it has read the result. */
class ScriptedModel extends BaseLlm {
  read = '';

  constructor() {
    super({ model: 'scripted' });
  }

  override async *generateContentAsync({ contents }: LlmRequest): AsyncGenerator<never, void> {
    const results = contents.flatMap(({ parts = [] }) => parts.flatMap((part) => part.functionResponse ?? []));
    if (results.length > 0) this.read = JSON.stringify(results[0]?.response);
    const call = { functionCall: { id: 'call-1', name: 'pay', args: { amount: 500 } } };
    yield { content: { role: 'model', parts: [results.length > 0 ? { text: 'done' } : call] } } as never;
  }

  override async connect(): Promise<never> {
    throw new Error('no live connections');
  }
}

const CONFIRMATION = 'adk_request_confirmation';

type Client = Parameters<typeof guardTools>[0];

async function payer(
  client: Client,
  pay: (args: { amount: number }) => unknown,
  options: Parameters<typeof guardTools>[2],
) {
  const model = new ScriptedModel();
  const tool = new FunctionTool({
    name: 'pay',
    description: 'pays',
    parameters: z.object({ amount: z.number() }) as never,
    execute: (async (args: { amount: number }) => ({ result: pay(args) })) as never,
  });
  const agent = new LlmAgent({ name: 'payer', model, tools: guardTools(client, [tool], options) });
  const runner = new InMemoryRunner({ agent, appName: 'test' });
  const { id: sessionId } = await runner.sessionService.createSession({ appName: 'test', userId: 'user' });
  return { model, runner, sessionId };
}

for (const make of [contract, waiting])
  make('Google ADK', async (client, pay) => {
    const { model, runner, sessionId } = await payer(client, pay, make === waiting ? { approvals: 'wait' } : {});
    const errors: unknown[] = [];
    const newMessage = { role: 'user', parts: [{ text: 'pay' }] };
    for await (const { errorMessage } of runner.runAsync({ userId: 'user', sessionId, newMessage }))
      errors.push(errorMessage);
    return `${model.read} ${errors.join(' ')}`;
  });

describe('an approval of Google ADK', () => {
  test.each([
    ['approve', [500]],
    ['deny', []],
  ] as const)('is checked again when it is confirmed, and decided by %s at the gateway', async (decision, expected) => {
    const gateway = gatewayOfTest();
    gateway.requireApproval('tool.call', 'pay');
    const { paid, pay } = till();
    const { runner, sessionId } = await payer(gateway.client, pay, {});
    const run = async (part: object): Promise<string[]> => {
      const newMessage = { role: 'user', parts: [part] } as never;
      const ids: string[] = [];
      for await (const { content } of runner.runAsync({ userId: 'user', sessionId, newMessage }))
        for (const { functionCall } of content?.parts ?? [])
          if (functionCall?.name === CONFIRMATION) ids.push(String(functionCall.id));
      return ids;
    };
    const [id] = await run({ text: 'pay' });
    expect(paid).toEqual([]);
    const confirmed = run({ functionResponse: { id, name: CONFIRMATION, response: { confirmed: true } } });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(paid).toEqual([]);
    gateway.decide((await gateway.pendingApproval()).id, decision);
    await confirmed;
    expect(paid).toEqual(expected);
    expect(gateway.ops).toHaveLength(1);
  });
});
