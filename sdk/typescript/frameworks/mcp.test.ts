import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { guardServer } from 'svc-gateway-sdk/mcp';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { contract, gatewayOfTest, waiting } from './contract.ts';

for (const make of [contract, waiting])
  make(
    'an MCP server',
    async (agent, pay) => {
      const server = guardServer(agent, new McpServer({ name: 'bank', version: '1' }));
      server.registerTool('pay', { inputSchema: { amount: z.number() } }, async (args: { amount: number }) => ({
        content: [{ type: 'text', text: String(pay(args)) }],
      }));
      const client = new Client({ name: 'test', version: '1' });
      const [one, other] = InMemoryTransport.createLinkedPair();
      await Promise.all([server.connect(one), client.connect(other)]);
      const result = await client.callTool({ name: 'pay', arguments: { amount: 500 } });
      await client.close();
      return JSON.stringify(result);
    },
    'bank/pay',
  );

describe('a server of MCP', () => {
  test('a server that has tools already is refused, as they would not be checked', () => {
    const server = new McpServer({ name: 'bank', version: '1' });
    server.registerTool('pay', {}, async () => ({ content: [] }));
    expect(() => guardServer(gatewayOfTest().client, server, { name: 'bank' })).toThrow(
      'the server has tools already: call guardServer before they are registered',
    );
  });

  test('is named as it says, unless another name is given', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('mcp.call', 'till/*');
    const server = guardServer(gateway.client, new McpServer({ name: 'bank', version: '1' }), { name: 'till' });
    server.registerTool('pay', {}, async () => ({ content: [{ type: 'text', text: 'paid' }] }));
    const client = new Client({ name: 'test', version: '1' });
    const [one, other] = InMemoryTransport.createLinkedPair();
    await Promise.all([server.connect(one), client.connect(other)]);
    expect(JSON.stringify(await client.callTool({ name: 'pay' }))).toContain('paid');
    expect(gateway.ops).toMatchObject([{ resource: 'till/pay' }]);
    await client.close();
  });

  test('without a name is refused', () => {
    expect(() => guardServer(gatewayOfTest().client, { registerTool: () => {} })).toThrow('pass { name }');
  });
});
