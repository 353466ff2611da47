/** Types that the compiler must or must not take. Checked by `npm run typecheck`, never run. */
import { expectTypeOf } from 'vitest';
import {
  type ActionDeniedError,
  type AgentClient,
  type AgentClientOptions,
  type CheckAnswer,
  type CheckRequest,
  createAgentClient,
  type Op,
  type OpState,
  type UsageAnswer,
} from '../../sdk/typescript/src/index.ts';
import type { CheckMessage } from '../../sdk/typescript/src/schema.ts';
import type { CheckActionRequest } from '../../src/doors/proto/messages.ts';

const address = '127.0.0.1:50051';
const agent = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };

// Exactly one credential, or that of the environment.
expectTypeOf(createAgentClient({ address, agent, apiKey: 'key' })).toEqualTypeOf<AgentClient>();
expectTypeOf(createAgentClient({ address, agent, credentialToken: 'token' })).toEqualTypeOf<AgentClient>();
expectTypeOf(createAgentClient()).toEqualTypeOf<AgentClient>();
expectTypeOf(
  createAgentClient({ url: 'http://127.0.0.1:8080', agent: 'acme/search/crawler' }),
).toEqualTypeOf<AgentClient>();
// @ts-expect-error with two it would not be clear which
createAgentClient({ address, agent, apiKey: 'key', credentialToken: 'token' });
// @ts-expect-error the whole triple is the identity
createAgentClient({ address, agent: { orgId: 'acme', agentId: 'crawler' }, apiKey: 'key' });
// @ts-expect-error there are two answers
createAgentClient({ address, agent, apiKey: 'key', onUnreachable: 'maybe' });
expectTypeOf<AgentClientOptions['onUnreachable']>().toEqualTypeOf<'allow' | 'deny' | undefined>();

declare const client: AgentClient;

// A guarded function takes what the function takes, and resolves to what it returns.
const pay = client.guard('pay', async ({ amount }: { amount: number }, memo?: string) => ({ id: `${amount}${memo}` }));
expectTypeOf(pay).toEqualTypeOf<(argument: { amount: number }, memo?: string) => Promise<{ id: string }>>();
expectTypeOf(client.guard('roll', () => 4)).toEqualTypeOf<() => Promise<number>>();
// @ts-expect-error there are two ways to have people asked
client.guard('roll', () => 4, { approvals: 'ask' });

// `run` resolves to what its body does.
expectTypeOf(client.run({ action: 'tool.call' }, () => 42)).toEqualTypeOf<Promise<number>>();
expectTypeOf(client.run({ action: 'tool.call' }, async (op) => op.opId)).toEqualTypeOf<Promise<string>>();
void client.run(
  { action: 'tool.call', resource: 'web_search', attributes: { size: 3, tags: ['a', null], nested: { deep: true } } },
  (op) => {
    expectTypeOf(op).toEqualTypeOf<Op>();
    expectTypeOf(op.signal).toEqualTypeOf<AbortSignal>();
    expectTypeOf(op.state).toEqualTypeOf<OpState>();
    expectTypeOf(op.checkpoint()).toEqualTypeOf<Promise<void>>();
    // @ts-expect-error its state is the operators' to change
    op.state = 'running';
  },
);
// @ts-expect-error a rehearsal is no operation that could be run
void client.run({ action: 'tool.call', dryRun: true }, () => {});
// @ts-expect-error an action has a name
void client.check({ resource: 'web_search' });
// @ts-expect-error JSON has no functions
void client.check({ action: 'tool.call', attributes: { size: () => 3 } });

expectTypeOf(client.check({ action: 'tool.call' })).toEqualTypeOf<Promise<CheckAnswer>>();
expectTypeOf<CheckAnswer['decision']>().toEqualTypeOf<'allow' | 'deny' | 'pending'>();
expectTypeOf<ActionDeniedError['ruleId']>().toEqualTypeOf<string | undefined>();

// Whatever the gateway reads of a check, an agent can say; the rest is what the SDK itself adds.
expectTypeOf<keyof CheckMessage>().toEqualTypeOf<keyof CheckActionRequest>();
expectTypeOf<keyof CheckRequest>().toEqualTypeOf<
  Exclude<keyof CheckActionRequest, 'agent' | 'credentialToken' | 'correlationId' | 'opHome'>
>();

// Every call can be given up.
declare const signal: AbortSignal | undefined;
expectTypeOf(client.run({ action: 'tool.call' }, () => 42, { signal })).toEqualTypeOf<Promise<number>>();
expectTypeOf(client.check({ action: 'tool.call' }, { signal })).toEqualTypeOf<Promise<CheckAnswer>>();
expectTypeOf(client.complete('trace:span', { costUsd: 1, signal })).toEqualTypeOf<Promise<void>>();
expectTypeOf(client.recordUsage({ costUsd: 1 }, { signal })).toEqualTypeOf<Promise<UsageAnswer>>();
expectTypeOf(client.cancelApproval('appr-1', { signal })).toEqualTypeOf<Promise<boolean>>();
void client.recordUsage({ model: 'gpt-5', inputTokens: 10, outputTokens: 5, usageId: 'response-1' });
// @ts-expect-error either money or tokens
void client.recordUsage({ costUsd: 1, model: 'gpt-5', inputTokens: 10, outputTokens: 5 });
expectTypeOf(client.ready({ signal })).toEqualTypeOf<Promise<void>>();
// @ts-expect-error the controller is not its signal
void client.check({ action: 'tool.call' }, { signal: new AbortController() });

// The exceeded cap is known if there is one.
declare const usage: UsageAnswer;
if (usage.status === 'limit_exceeded') expectTypeOf(usage.tier).toEqualTypeOf<'global' | 'org' | 'team' | 'agent'>();
// @ts-expect-error nothing is exceeded
else void usage.tier;
