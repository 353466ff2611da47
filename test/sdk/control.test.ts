import { queryObjects } from 'node:v8';
import { describe, expect, test } from 'vitest';
import type { AgentClient, Op, OpSignal } from '../../sdk/typescript/src/index.ts';
import { eventually } from '../support/eventually.ts';
import {
  type ScriptedCall,
  type ScriptedGateway,
  scriptedAgent,
  scriptedGateway,
} from '../support/scripted-gateway.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };

const acknowledged = ({ calls }: ScriptedGateway): readonly string[] =>
  calls.filter(({ method }) => method === 'AckOpControl').map(({ opId, sequence }) => `${opId} ${sequence}`);
const isAck = ({ method }: ScriptedCall): boolean => method === 'AckOpControl';

/** An operation whose body runs until `finish`. */
async function running(agent: AgentClient) {
  let finish = (): void => {};
  const isOver = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const op = await new Promise<Op>((begun, failed) => {
    agent
      .run(SEARCH, async (it) => {
        begun(it);
        await isOver;
      })
      .catch(failed);
  });
  return { op, finish };
}

describe('control', () => {
  test('a signal whose acknowledgement was lost is acknowledged on the next stream', async () => {
    let isLost = true;
    const warnings: string[] = [];
    const gateway = await scriptedGateway((call) => (isAck(call) && isLost ? { fails: 'UNAUTHENTICATED' } : undefined));
    const agent = scriptedAgent(gateway, { onWarning: ({ message }) => warnings.push(message) });
    await agent.ready();
    const { op, finish } = await running(agent);
    gateway.opened[0]?.write({ opId: op.opId, signal: 'resume', sequence: 7 });
    await eventually(() => expect(acknowledged(gateway)).toEqual([`${op.opId} 7`]));
    isLost = false;
    gateway.opened[0]?.end();
    await eventually(() => expect(gateway.opened).toHaveLength(2));
    gateway.opened[1]?.write({ opId: op.opId, signal: 'resume', sequence: 7 });
    await eventually(() => expect(acknowledged(gateway)).toEqual([`${op.opId} 7`, `${op.opId} 7`]));
    expect(warnings).toEqual([]);
    finish();
  });

  test('a failed acknowledgement is retried, and a refusal reported once unless gone', async () => {
    const answers = ['UNAVAILABLE', 'RESOURCE_EXHAUSTED', undefined, 'NOT_FOUND', 'PERMISSION_DENIED'] as const;
    let asked = 0;
    const warnings: string[] = [];
    const gateway = await scriptedGateway((call) => {
      if (!isAck(call)) return undefined;
      const fails = answers[asked++];
      return fails === undefined ? undefined : { fails };
    });
    const agent = scriptedAgent(gateway, { onWarning: ({ message }) => warnings.push(message) });
    await agent.ready();
    const { op, finish } = await running(agent);
    gateway.opened[0]?.write({ opId: op.opId, signal: 'resume', sequence: 1 });
    await eventually(() => expect(acknowledged(gateway)).toEqual([`${op.opId} 1`, `${op.opId} 1`, `${op.opId} 1`]));
    expect(warnings).toEqual([]);
    for (const sequence of [2, 3]) gateway.opened[0]?.write({ opId: op.opId, signal: 'resume', sequence });
    await eventually(() => expect(warnings).toEqual(['PERMISSION_DENIED']));
    expect(acknowledged(gateway).slice(3)).toEqual([`${op.opId} 2`, `${op.opId} 3`]);
    finish();
  });

  test('a pause is acknowledged once the body stands still; an unknown signal never', async () => {
    const gateway = await scriptedGateway();
    const signals: string[] = [];
    const agent = scriptedAgent(gateway, {
      onSignal: ({ signal, sequence }) => void signals.push(`${signal} ${sequence}`),
    });
    await agent.ready();
    const { op, finish } = await running(agent);
    const fromTheFuture = Buffer.concat([
      Buffer.from([0x0a, op.opId.length]),
      Buffer.from(op.opId),
      Buffer.from([0x10, 9, 0x18, 2]),
    ]);
    gateway.opened[0]?.write({ opId: op.opId, signal: 'pause', sequence: 1 });
    gateway.opened[0]?.write(fromTheFuture);
    // A signal to another operation, obeyed at once: by then an acknowledgement of the earlier ones would have come,
    // too.
    const other = await running(agent);
    gateway.opened[0]?.write({ opId: other.op.opId, signal: 'resume', sequence: 3 });
    await eventually(() => expect(acknowledged(gateway)).toEqual([`${other.op.opId} 3`]));
    expect(op.state).toBe('paused');
    finish();
    await eventually(() => expect(acknowledged(gateway)).toEqual([`${other.op.opId} 3`, `${op.opId} 1`]));
    expect(signals).toEqual(['pause 1', 'resume 3']);
    gateway.opened[0]?.write({ opId: op.opId, signal: 'resume', sequence: 4 });
    other.finish();
    await eventually(() => expect(gateway.calls.filter(({ method }) => method === 'CompleteOp')).toHaveLength(2));
  });

  test('onSignal gets every signal, and true acknowledges one of a `check`', async () => {
    const gateway = await scriptedGateway();
    const got: OpSignal[] = [];
    const warnings: string[] = [];
    const agent = scriptedAgent(gateway, {
      onWarning: ({ message }) => warnings.push(message),
      onSignal: async (signal) => {
        got.push(signal);
        if (signal.sequence === 3) throw new Error('the handler is broken');
        return signal.sequence !== 2;
      },
    });
    await agent.ready();
    const { op, finish } = await running(agent);
    const signals: OpSignal[] = [
      { opId: 'trace:mine', signal: 'pause', sequence: 1 },
      { opId: 'trace:mine', signal: 'resume', sequence: 2 },
      { opId: 'trace:mine', signal: 'terminate', sequence: 3 },
      { opId: op.opId, signal: 'pause', sequence: 4 },
      { opId: 'trace:mine', signal: 'terminate', sequence: 5 },
    ];
    for (const signal of signals) gateway.opened[0]?.write(signal);
    await eventually(() => expect(acknowledged(gateway)).toEqual(['trace:mine 1', 'trace:mine 5']));
    expect(got).toEqual(signals);
    expect(warnings).toEqual(['the handler is broken']);
    gateway.opened[0]?.write({ opId: op.opId, signal: 'resume', sequence: 6 });
    finish();
  });

  test('a long-lived client keeps nothing of acknowledged signals', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway, { onSignal: () => true });
    await agent.ready();
    const promises = (): number => queryObjects(Promise, { format: 'count' });
    const before = promises();
    for (let sequence = 1; sequence <= 300; sequence += 1)
      gateway.opened[0]?.write({ opId: 'trace:mine', signal: 'resume', sequence });
    await eventually(() => expect(acknowledged(gateway)).toHaveLength(300));
    await eventually(() => expect(promises() - before).toBeLessThan(150));
  });
});
