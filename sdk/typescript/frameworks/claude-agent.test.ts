/** The hooks as Claude Code calls them, typed by its SDK: a model of its own would need the network. */
import type { Options, PostToolUseHookInput, PreToolUseHookInput } from '@anthropic-ai/claude-agent-sdk';
import { guardHooks } from 'svc-gateway-sdk/claude-agent';
import { describe, expect, test } from 'vitest';
import { contract, gatewayOfTest, waiting } from './contract.ts';

const COMMON = { session_id: 'session-1', transcript_path: '', cwd: '/', tool_name: 'pay', tool_use_id: 'call-1' };

for (const make of [contract, waiting])
  make('the Claude Agent SDK', async (client, pay) => {
    const hooks: NonNullable<Options['hooks']> = guardHooks(client);
    const call = (name: keyof typeof hooks, input: object) =>
      hooks[name]?.[0]?.hooks[0]?.({ ...COMMON, hook_event_name: name, ...input } as never, 'call-1', {
        signal: new AbortController().signal,
      }) as Promise<{ hookSpecificOutput?: Record<string, unknown> }>;
    const input = { amount: 500 } satisfies PreToolUseHookInput['tool_input'];
    const { hookSpecificOutput: before } = await call('PreToolUse', { tool_input: input });
    if (before?.permissionDecision === 'deny') return String(before.permissionDecisionReason);
    const args = (before?.updatedInput ?? input) as { amount: number };
    try {
      const response: PostToolUseHookInput['tool_response'] = pay(args);
      await call('PostToolUse', { tool_input: args, tool_response: response });
      return String(response);
    } catch (error) {
      await call('PostToolUseFailure', { tool_input: args, error: String(error) });
      throw error;
    }
  });

describe('hooks of the Claude Agent SDK', () => {
  test('the result of an operation that an operator has terminated is withheld', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('*');
    const hooks = guardHooks(gateway.client);
    const { signal } = new AbortController();
    await hooks.PreToolUse[0]?.hooks[0]?.({ ...COMMON, tool_input: {} }, 'call-1', { signal });
    gateway.terminate('session-1:call-1');
    const after = await hooks.PostToolUse[0]?.hooks[0]?.({ ...COMMON, tool_response: 'secret' }, 'call-1', { signal });
    expect(JSON.stringify(after)).toContain('The result of pay is withheld');
    expect(JSON.stringify(after)).not.toContain('secret');
  });

  test('every hook blocks when it fails', () => {
    const hooks = guardHooks(gatewayOfTest().client);
    expect(Object.values(hooks).flatMap((each) => each.map(({ onFailure }) => onFailure))).toEqual([
      'block',
      'block',
      'block',
    ]);
  });
});
