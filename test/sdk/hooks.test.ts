import { describe, expect, onTestFinished, test } from 'vitest';
import type { AgentClientOptions } from '../../sdk/typescript/src/index.ts';
import { eventually } from '../support/eventually.ts';
import { scriptedAgent, scriptedGateway } from '../support/scripted-gateway.ts';

/** The warnings of this process, until the test is over. */
function warned(): string[] {
  const warnings: string[] = [];
  const listen = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', listen);
  onTestFinished(() => void process.off('warning', listen));
  return warnings;
}

const FAILING: readonly (readonly [string, string, NonNullable<AgentClientOptions['onStateChange']>])[] = [
  [
    'throws an error',
    'error',
    (state) => {
      throw new Error(`error while ${state}`);
    },
  ],
  [
    'throws something else',
    'text',
    (state) => {
      throw `text while ${state}`;
    },
  ],
  [
    'is asynchronous and rejects',
    'rejection',
    async (state) => {
      throw new Error(`rejection while ${state}`);
    },
  ],
];

describe('hooks', () => {
  test.each(FAILING)(
    'a hook that %s becomes a process warning, and the client continues',
    async (_how, word, onStateChange) => {
      const warnings = warned();
      const gateway = await scriptedGateway();
      const agent = scriptedAgent(gateway, { onStateChange });
      await agent.ready();
      await eventually(() => expect(warnings).toContain(`${word} while connected`));
      expect(await agent.check({ action: 'tool.call' })).toMatchObject({ decision: 'allow' });
    },
  );

  test('an error of onSignal goes to onWarning, and the signal is not acknowledged', async () => {
    const warnings: string[] = [];
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway, {
      onSignal: async () => {
        throw new Error('the log is full');
      },
      onWarning: ({ message }) => warnings.push(message),
    });
    await agent.ready();
    gateway.opened[0]?.write({ opId: 'trace:span', signal: 'pause', sequence: 1 });
    await eventually(() => expect(warnings).toEqual(['the log is full']));
    await agent.close();
    expect(gateway.calls).toEqual([]);
  });
});
