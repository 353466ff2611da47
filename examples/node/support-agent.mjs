// A support agent with a budget, and people who decide about large refunds.
//
//   SVC_POLICY_PATH=examples/policies/support-agent.yaml npm start         # in one terminal
//   SVC_API_KEY=svc_... node examples/node/support-agent.mjs               # in another, with the key it has shown
//
// The second refund waits for a person: approve it in the dashboard or by `svc approvals approve <id>`, with a credential
// other than the one the agent uses.
import { ActionDeniedError, createAgentClient } from 'svc-gateway-sdk';

const agent = createAgentClient({ agent: process.env.SVC_AGENT || 'acme/support/desk-1' });
const order = { id: 'o-17', total_usd: 120, currency: 'USD' };

const refund = agent.guard('payments.refund', ({ order, amount_usd }) => `refunded ${amount_usd} of ${order.id}`);
const findCustomers = agent.guard('crm.find_customers', ({ name, limit }) => {
  console.log(`asked for ${limit} customers`);
  return { customers: [{ name, card_number: '4111 1111 1111 1111' }] };
});

/** A denial is printed, and the work goes on. */
async function attempt(work) {
  try {
    console.log(await work());
  } catch (error) {
    if (!(error instanceof ActionDeniedError)) throw error;
    console.log(`DENIED ${error.reason}`);
  }
}

try {
  // The rule caps the limit, and hides card numbers in the result.
  console.log(JSON.stringify(await findCustomers({ name: 'Ada', limit: 500 })));
  // A model call: its estimate is reserved in the budget, and the tokens that it has used are priced and recorded.
  await agent.run({ action: 'llm.call', resource: 'claude-sonnet-4-5', estimatedCostUsd: 0.2 }, async (op) => {
    const usage = { model: 'claude-sonnet-4-5', inputTokens: 20_000, outputTokens: 1_000 };
    const { status, costUsd } = await op.recordUsage(usage);
    console.log(`the model answers for ${costUsd} USD; budget: ${status}`);
  });
  await attempt(() =>
    agent.run({ action: 'llm.call', resource: 'claude-sonnet-4-5', estimatedCostUsd: 9 }, () => 'never printed'),
  );
  await attempt(() => refund({ order, amount_usd: 30 }));
  console.log('waiting for a person to decide about 100 USD');
  await attempt(() => refund({ order, amount_usd: 100 }));
} finally {
  await agent.close();
}
