import { EventEmitter } from 'node:events';
import { describe, expect, test } from 'vitest';
import { Checker, type CheckerOptions } from '../../sdk/typescript/src/checks.ts';
import { Homes } from '../../sdk/typescript/src/homes.ts';
import { checkBodyOf } from '../../sdk/typescript/src/messages.ts';
import { Underway } from '../../sdk/typescript/src/waiters.ts';
import { eventually } from '../support/eventually.ts';
import { type ScriptedGateway, scriptedAgent, scriptedGateway } from '../support/scripted-gateway.ts';

const NAMED = { action: 'tool.call', traceId: 'trace', spanId: 'span' };

/** Each method that was called, with the home that it named. */
const namedAt = ({ calls }: ScriptedGateway): string[] =>
  [...new Set(calls.map(({ method, home }) => `${method} ${home}`))].sort();

describe("operations' homes", () => {
  test('calls about an operation name the home in the answer to its check', async () => {
    const gateway = await scriptedGateway(({ method }) =>
      method === 'CheckAction' ? { opHome: 'home-1' } : undefined,
    );
    const agent = scriptedAgent(gateway);
    await agent.ready();
    await agent.run(NAMED, async (op) => {
      await op.recordUsage(0.5);
      gateway.opened[0]?.write({ opId: op.opId, signal: 'pause', sequence: 1 });
      await eventually(() => expect(op.state).toBe('paused'));
      gateway.opened[0]?.write({ opId: op.opId, signal: 'resume', sequence: 2 });
      await op.checkpoint();
    });
    const named = ['AckOpControl home-1', 'CheckAction undefined', 'CompleteOp home-1', 'RecordUsage home-1'];
    await eventually(() => expect(namedAt(gateway)).toEqual(named));
    await agent.recordUsage({ costUsd: 0.5, opId: 'trace:span' });
    expect(namedAt(gateway)).toEqual([...named, 'RecordUsage undefined']);
  });

  test('further checks name it until it is over, and follow it to a new home', async () => {
    const answers = [
      { opHome: 'home-1' },
      { decision: 'deny', opState: 'paused', opHome: 'home-2' },
      { decision: 'deny', opState: 'terminated', opHome: 'home-2' },
    ];
    const gateway = await scriptedGateway(({ method }) => (method === 'CheckAction' ? answers.shift() : undefined));
    const agent = scriptedAgent(gateway);
    for (let check = 0; check < 5; check += 1) await agent.check(NAMED);
    expect(gateway.calls.map(({ method, home }) => `${method} ${home}`)).toEqual([
      'CheckAction undefined',
      'CheckAction home-1',
      'CheckAction home-2',
      'CheckAction undefined',
      'CheckAction undefined',
    ]);
  });

  test('an answer on the stream says it, even one that comes too late', async () => {
    const homes = new Homes();
    const stream = Object.assign(new EventEmitter(), { ask: () => true });
    const orphans: string[] = [];
    const checker = new Checker({
      settings: { checkMs: 10, maxInFlight: 10, onUnreachable: 'deny', address: 'gateway:50051' },
      transport: { openChecks: () => stream },
      credential: { current: 'token', canRenew: false },
      reach: { succeeded: () => {}, failed: () => {}, isLost: false },
      underway: new Underway(),
      orphans: { add: (opId: string) => void orphans.push(`${opId} at ${homes.of(opId)}`) },
      homes,
    } as unknown as CheckerOptions);
    const body = checkBodyOf(NAMED, { orgId: '', teamId: 't', agentId: 'a' }, NAMED);
    expect(await checker.check(body, { isFresh: true })).toMatchObject({ unreachable: true });
    stream.emit('data', { correlationId: '1', decision: 1, opState: 2, opHome: 'home-1' });
    expect(orphans).toEqual(['trace:span at home-1']);
  });

  test('a check is tried again while the home does not answer', async () => {
    const away = { fails: 'UNAVAILABLE', fault: 'unreachable_gateway' } as const;
    let asked = 0;
    const gateway = await scriptedGateway(({ method }) => {
      if (method !== 'CheckAction') return undefined;
      asked += 1;
      return asked === 1 ? away : undefined;
    });
    expect(await scriptedAgent(gateway).check(NAMED)).toMatchObject({ decision: 'allow', unreachable: false });
    expect(asked).toBe(2);
  });

  test('a check that the home may have allowed is denied and completed', async () => {
    const away = { fails: 'UNAVAILABLE', fault: 'unreachable_gateway', retryAfterSecs: 1 } as const;
    const gateway = await scriptedGateway(({ method }) => (method === 'CheckAction' ? away : undefined));
    const agent = scriptedAgent(gateway, { onUnreachable: 'allow', deadlines: { checkMs: 500 } });
    const { opId, ...answer } = await agent.check({ action: 'tool.call' });
    expect(answer).toMatchObject({ decision: 'deny', unreachable: false });
    await eventually(() =>
      expect(gateway.calls).toContainEqual(expect.objectContaining({ method: 'CompleteOp', opId })),
    );
  });

  test('are known for the 10,000 operations used last', () => {
    const homes = new Homes();
    for (let nth = 0; nth < 10_000; nth += 1) homes.learn(`op:${nth}`, 'home-1');
    expect(homes.of('op:0')).toBe('home-1');
    homes.learn('op:10000', 'home-1');
    expect([0, 1, 2, 10_000].map((nth) => homes.of(`op:${nth}`))).toEqual(['home-1', undefined, 'home-1', 'home-1']);
  });
});
