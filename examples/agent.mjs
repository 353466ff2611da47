// An agent that lets itself be governed: it reads "pages", a step at a time, and yields to the operators between the steps.
// examples/README.md walks through it.
//
//   SVC_API_KEY=<a key with write scope> node examples/agent.mjs
import { ActionDeniedError, createAgentClient, OpTerminatedError } from 'svc-gateway/sdk';

const { SVC_API_KEY, SVC_GRPC_ADDR = '127.0.0.1:50051', AGENT_NAME = 'crawler-1', AGENT_STEPS = '600', AGENT_STEP_MS = '1000' } = process.env;
if (SVC_API_KEY === undefined) {
  console.error('set SVC_API_KEY to an API key with write scope: the gateway has shown one at its first start');
  process.exit(2);
}

const say = (text) => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`);
const sleep = (ms, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => {
    clearTimeout(timer);
    reject(signal.reason);
  }, { once: true });
});

const agent = createAgentClient({
  address: SVC_GRPC_ADDR,
  agent: { orgId: 'acme', teamId: 'search', agentId: AGENT_NAME },
  apiKey: SVC_API_KEY,
  onStateChange: (state, because) => say(`gateway: ${state}${because === undefined ? '' : ` (${because.message})`}`),
  onSignal: ({ signal, opId }) => say(`an operator says: ${signal} ${opId}`),
});
process.once('SIGINT', () => void agent.close());

try {
  await agent.ready();
  // What no rule allows is never begun.
  await agent.run({ action: 'process.exec', resource: 'rm -rf /' }, () => say('this line is never printed'))
    .catch((error) => {
      if (!(error instanceof ActionDeniedError)) throw error;
      say(error.message);
    });

  await agent.run({ action: 'tool.call', resource: 'web_search', attributes: { query: 'otters' } }, async (op) => {
    say(`allowed, running as OP=${op.opId}`);
    for (let page = 1; page <= Number(AGENT_STEPS); page += 1) {
      await op.checkpoint(); // waits here while paused, throws when terminated
      await sleep(Number(AGENT_STEP_MS), op.signal);
      say(`read page ${page}`);
    }
    await op.recordUsage(0.002);
  });
  say('done');
} catch (error) {
  say(error instanceof OpTerminatedError ? `stopped: ${error.message}` : String(error));
  process.exitCode = 1;
} finally {
  await agent.close();
}
