import { expect, onTestFinished, test } from 'vitest';
import { createAgentClient, type AgentClient, type AgentClientOptions } from '../../src/sdk/index.ts';
import { startScriptedGateway, type ScriptedGateway } from '../support/scripted-gateway.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };

function connect({ address }: ScriptedGateway, options: Partial<AgentClientOptions> = {}): AgentClient {
  const client = createAgentClient({ address, agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' }, apiKey: 'any-key', onWarning: () => {}, ...options, deadlines: { closeMs: 50, ...options.deadlines } } as AgentClientOptions);
  onTestFinished(() => client.close());
  return client;
}

async function start(answer?: Parameters<typeof startScriptedGateway>[0]): Promise<ScriptedGateway> {
  const gateway = await startScriptedGateway(answer);
  onTestFinished(() => gateway.close());
  return gateway;
}

const registrationsAt = ({ calls }: ScriptedGateway): number => calls.filter(({ method }) => method === 'RegisterAgent').length;

test('an agent is registered once, however many calls wait for it', async () => {
  const gateway = await start();
  const agent = connect(gateway);
  const answers = await Promise.all(Array.from({ length: 20 }, () => agent.check(SEARCH)));
  expect(new Set(answers.map(({ decision }) => decision))).toEqual(new Set(['allow']));
  expect(registrationsAt(gateway)).toBe(1);
});

test('a token that is void is replaced once, however many calls find it so, and each of them succeeds', async () => {
  let valid = 1;
  const gateway = await start(({ method, token }) => {
    if (method === 'RegisterAgent') return { credentialToken: `token-${valid}` };
    return method === 'CompleteOp' && token !== `token-${valid}` ? { fails: 'UNAUTHENTICATED' } : undefined;
  });
  const agent = connect(gateway);
  await agent.ready();
  valid = 2;
  await Promise.all(Array.from({ length: 20 }, (_, nth) => agent.complete(`trace:${nth}`)));
  expect(registrationsAt(gateway)).toBe(2);
});

test('a gateway that is too busy to register an agent counts as there: the check waits for it', async () => {
  let refusals = 2;
  const gateway = await start(({ method }) => (method === 'RegisterAgent' && refusals-- > 0 ? { fails: 'RESOURCE_EXHAUSTED' } : undefined));
  const agent = connect(gateway, { deadlines: { outageMs: 0 } });
  expect(await agent.check(SEARCH)).toMatchObject({ decision: 'allow', unreachable: false });
  expect(registrationsAt(gateway)).toBe(3);
});

test('a registration that the gateway refuses is not tried again, and every call says why', async () => {
  const gateway = await start(({ method }) => (method === 'RegisterAgent' ? { fails: 'PERMISSION_DENIED' } : undefined));
  const agent = connect(gateway);
  for (const call of [agent.ready(), agent.check(SEARCH), agent.recordUsage({ costUsd: 1 }), agent.complete('a:b')]) {
    await expect(call).rejects.toMatchObject({ name: 'GatewayError', code: 'permission_denied', message: 'the agent cannot be registered: PERMISSION_DENIED' });
  }
  await expect(agent.check(SEARCH)).rejects.toMatchObject({ code: 'permission_denied' });
  expect(agent.state).toBe('refused');
  expect(registrationsAt(gateway)).toBe(1);
});
