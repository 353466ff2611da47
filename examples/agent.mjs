// An agent that lets itself be governed: it reads "pages", a step at a time, and yields to the operators between the
// steps. examples/README.md walks through it.
//
//   AGENT_API_KEY=<a key with write scope> node examples/agent.mjs
import { setTimeout as sleep } from 'node:timers/promises';
import { ActionDeniedError, ClientClosedError, createAgentClient, OpTerminatedError } from 'svc-gateway-sdk';

const {
  AGENT_API_KEY,
  AGENT_GATEWAY = '127.0.0.1:50051',
  AGENT_NAME = 'crawler-1',
  AGENT_STEPS = '600',
  AGENT_STEP_MS = '1000',
} = process.env;
if (!AGENT_API_KEY) {
  console.error('set AGENT_API_KEY to an API key with write scope: the gateway has shown one at its first start');
  process.exit(2);
}

const say = (text) => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`);

const agent = createAgentClient({
  address: AGENT_GATEWAY,
  agent: { orgId: 'acme', teamId: 'search', agentId: AGENT_NAME },
  apiKey: AGENT_API_KEY,
  deadlines: { closeMs: 100 }, // Ctrl-C does not wait for the work to end
  onStateChange: (state, because) => say(`gateway: ${state}${because === undefined ? '' : ` (${because.message})`}`),
  onSignal: ({ signal, opId }) => say(`an operator says: ${signal} ${opId}`),
});
process.once('SIGINT', () => void agent.close());

try {
  await agent.ready();
  // A denied action is never begun.
  await agent
    .run({ action: 'process.exec', resource: 'rm -rf /' }, () => say('this line is never printed'))
    .catch((error) => {
      if (!(error instanceof ActionDeniedError)) throw error;
      say(error.message);
    });

  await agent.run({ action: 'tool.call', resource: 'web_search', attributes: { query: 'otters' } }, async (op) => {
    say(`allowed, running as OP=${op.opId}`);
    for (let page = 1; page <= Number(AGENT_STEPS); page += 1) {
      await op.checkpoint(); // waits here while paused, throws when terminated
      await sleep(Number(AGENT_STEP_MS), undefined, { signal: op.signal });
      say(`read page ${page}`);
    }
    await op.recordUsage(0.002);
  });
  say('done');
} catch (error) {
  if (error instanceof ClientClosedError) say('left');
  else say(error instanceof OpTerminatedError ? `stopped: ${error.message}` : String(error));
  process.exitCode = 1;
} finally {
  await agent.close();
}
