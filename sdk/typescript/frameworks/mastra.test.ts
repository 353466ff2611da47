import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { guardTools } from 'svc-gateway-sdk/mastra';
import { z } from 'zod';
import { contract, waiting } from './contract.ts';

type Prompt = readonly { readonly role: string; readonly content: unknown }[];

/** Calls `pay` with the amount 500, and says `done` once it has read the result. */
function scriptedModel() {
  const seen = { read: '' };
  const model = {
    specificationVersion: 'v2',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    doGenerate: async ({ prompt }: { prompt: Prompt }) => {
      const result = prompt.find(({ role }) => role === 'tool');
      if (result !== undefined) seen.read = JSON.stringify(result.content);
      const call = { type: 'tool-call', toolCallId: 'call-1', toolName: 'pay', input: '{"amount":500}' };
      return {
        content: [result === undefined ? call : { type: 'text', text: 'done' }],
        finishReason: result === undefined ? 'tool-calls' : 'stop',
        usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
        warnings: [],
      };
    },
  };
  return { model, seen };
}

for (const make of [contract, waiting])
  make('Mastra', async (client, pay) => {
    const { model, seen } = scriptedModel();
    const tool = createTool({
      id: 'pay',
      description: 'pays',
      inputSchema: z.object({ amount: z.number() }),
      execute: async (args: { amount: number }) => pay(args),
    } as never);
    const agent = new Agent({
      id: 'payer',
      name: 'payer',
      instructions: 'pay',
      model: model as never,
      tools: guardTools(client, { pay: tool }),
    });
    const result = await agent.generate('pay', { maxSteps: 3 });
    return `${seen.read} ${JSON.stringify(result.toolResults ?? [])}`;
  });
