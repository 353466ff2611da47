import { setTimeout as sleep } from 'node:timers/promises';
import { queryObjects } from 'node:v8';
import { describe, expect, test } from 'vitest';
import type { Op, UsageAnswer } from '../../sdk/typescript/src/index.ts';
import { RunningOp } from '../../sdk/typescript/src/op.ts';
import { workForEver } from '../support/endless-body.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  type ScriptedCall,
  type ScriptedGateway,
  scriptedAgent,
  scriptedGateway,
} from '../support/scripted-gateway.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };
const NAMED = { ...SEARCH, traceId: 'trace', spanId: 'span' };
const REFUSED: Answer = { fails: 'FAILED_PRECONDITION', fault: 'invalid_transition' };

const timesOf = ({ calls }: ScriptedGateway, of: ScriptedCall['method']): number =>
  calls.filter(({ method }) => method === of).length;

/** A gateway at which the operation is in these states, one after the other, whenever its end is reported. */
async function gatewayWith(...states: readonly ('running' | 'paused' | 'completing')[]) {
  let at = -1;
  return scriptedGateway(({ method }) => {
    if (method === 'CompleteOp') {
      at += 1;
      return at < states.length ? REFUSED : undefined;
    }
    return method === 'CheckAction' && at >= 0
      ? { decision: 'deny', opState: states[Math.min(at, states.length - 1)] }
      : undefined;
  });
}

describe('run end', () => {
  test('a run paused unseen at its end lasts until resumed, with few queries', async () => {
    const gateway = await gatewayWith('paused');
    const agent = scriptedAgent(gateway);
    await agent.ready();
    let begun: Op | undefined;
    let isOver = false;
    const run = agent
      .run(NAMED, (op) => {
        begun = op;
      })
      .finally(() => {
        isOver = true;
      });
    await eventually(() => expect(timesOf(gateway, 'CompleteOp')).toBe(1));
    gateway.opened[0]?.write({ opId: 'trace:span', signal: 'pause', sequence: 1 });
    await eventually(() => expect(timesOf(gateway, 'AckOpControl')).toBe(1));
    await sleep(400);
    expect({ isOver, reports: timesOf(gateway, 'CompleteOp') }).toEqual({ isOver: false, reports: 1 });
    gateway.opened[0]?.write({ opId: 'trace:span', signal: 'resume', sequence: 2 });
    await run;
    expect(begun?.state).toBe('completing');
    expect(timesOf(gateway, 'CompleteOp')).toBe(2);
  });

  test('a pause with a late signal is queried a few times a second', async () => {
    const gateway = await gatewayWith('paused', 'paused', 'paused');
    const startMs = performance.now();
    await scriptedAgent(gateway).run(NAMED, () => {});
    expect(timesOf(gateway, 'CompleteOp')).toBe(4);
    expect(performance.now() - startMs).toBeGreaterThan(700);
  });

  test('an operation paused and resumed unseen at its end is complete', async () => {
    const gateway = await gatewayWith('running');
    await scriptedAgent(gateway).run(NAMED, () => {});
    expect(timesOf(gateway, 'CompleteOp')).toBe(2);
  });

  test('an operation completed by its body is reported once, without a warning', async () => {
    const warnings: string[] = [];
    const gateway = await gatewayWith('completing');
    await scriptedAgent(gateway, { onWarning: ({ message }) => warnings.push(message) }).run(NAMED, () => {});
    expect({ reports: timesOf(gateway, 'CompleteOp'), warnings }).toEqual({ reports: 1, warnings: [] });
  });

  test('completing a forgotten operation is no warning; a refusal is', async () => {
    const warnings: string[] = [];
    const answers: Answer[] = [
      { fails: 'NOT_FOUND', fault: 'not_found' },
      { fails: 'PERMISSION_DENIED', fault: 'not_owner' },
    ];
    const gateway = await scriptedGateway(({ method }) => (method === 'CompleteOp' ? answers.shift() : undefined));
    const agent = scriptedAgent(gateway, { onWarning: ({ message }) => warnings.push(message) });
    await agent.run({ ...NAMED, spanId: 'forgotten' }, () => {});
    await agent.run({ ...NAMED, spanId: 'refused' }, () => {});
    await agent.close();
    expect(warnings).toEqual(['could not report operation trace:refused as complete']);
  });

  test('an operation that ends while a proxy has no route completes later, no warning', async () => {
    const warnings: string[] = [];
    const answers: Answer[] = [{ fails: 'UNIMPLEMENTED' }, { fails: 'PERMISSION_DENIED' }];
    const gateway = await scriptedGateway(({ method }) => (method === 'CompleteOp' ? answers.shift() : undefined));
    await scriptedAgent(gateway, { onWarning: ({ message }) => warnings.push(message) }).run(NAMED, () => {});
    await eventually(() =>
      expect({ reports: timesOf(gateway, 'CompleteOp'), warnings }).toEqual({ reports: 3, warnings: [] }),
    );
  });

  test('an operation that ends at a busy gateway completes once it is accepted', async () => {
    const warnings: string[] = [];
    let isBusy = true;
    const gateway = await scriptedGateway(({ method }) =>
      method === 'CompleteOp' && isBusy ? { fails: 'UNAVAILABLE', fault: 'audit_unavailable' } : undefined,
    );
    const agent = scriptedAgent(gateway, {
      onWarning: ({ message }) => warnings.push(message),
      deadlines: { callMs: 1_000, checkMs: 60_000, outageMs: 60_000, closeMs: 60_000 },
    });
    await agent.run(NAMED, () => {});
    isBusy = false;
    const times = timesOf(gateway, 'CompleteOp');
    await agent.close();
    expect({ times: timesOf(gateway, 'CompleteOp') - times, warnings }).toEqual({ times: 1, warnings: [] });
  });

  test('a run allowed for lack of an answer ends with its body, without waiting', async () => {
    const never = new Promise<undefined>(() => {});
    const gateway = await scriptedGateway(({ method }) =>
      method === 'CheckAction' || method === 'CompleteOp' ? never : undefined,
    );
    const agent = scriptedAgent(gateway, {
      onUnreachable: 'allow',
      deadlines: { checkMs: 100, callMs: 600_000, outageMs: 600_000 },
    });
    expect(await agent.run(NAMED, () => 'the work is done')).toBe('the work is done');
  });

  test('code after an inner operation stops or waits with the outer one', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    await agent.ready();
    const steps: string[] = [];
    const run = agent.run(NAMED, async (outer) => {
      await agent.run(SEARCH, async () => {
        gateway.opened[0]?.write({ opId: outer.opId, signal: 'pause', sequence: 1 });
        await eventually(() => expect(outer.state).toBe('paused'));
      });
      steps.push('after the first');
      await agent.run(SEARCH, async () => {
        gateway.opened[0]?.write({ opId: outer.opId, signal: 'terminate', sequence: 3 });
        await eventually(() => expect(outer.signal.aborted).toBe(true));
      });
      steps.push('after the second');
    });
    run.catch(() => {});
    // It stands still.
    await eventually(() =>
      expect(gateway.calls.filter(({ method }) => method === 'AckOpControl')).toMatchObject([
        { opId: 'trace:span', sequence: 1 },
      ]),
    );
    await sleep(50);
    expect(steps).toEqual([]);
    gateway.opened[0]?.write({ opId: 'trace:span', signal: 'resume', sequence: 2 });
    await expect(run).rejects.toMatchObject({ name: 'OpTerminatedError', opId: 'trace:span' });
    expect(steps).toEqual(['after the first']);
  });

  test('an operation that was terminated is not reported complete', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    await agent.ready();
    await expect(
      agent.run(NAMED, async (op) => {
        gateway.opened[0]?.write({ opId: op.opId, signal: 'terminate', sequence: 1 });
        await eventually(() => expect(op.signal.aborted).toBe(true));
      }),
    ).rejects.toMatchObject({ name: 'OpTerminatedError' });
    expect(timesOf(gateway, 'CompleteOp')).toBe(0);
  });

  test("catching the end of a stopped body shows the body's own error as the cause", async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    await agent.ready();
    const aborted = new Error('AbortError');
    let begun = 0;
    const body = (op: Op): Promise<void> =>
      new Promise((_, reject) => {
        begun += 1;
        op.signal.addEventListener('abort', () => reject(aborted));
      });
    const terminated = agent.run(NAMED, (op) => {
      gateway.opened[0]?.write({ opId: op.opId, signal: 'terminate', sequence: 1 });
      return body(op);
    });
    await expect(terminated).rejects.toMatchObject({
      name: 'OpTerminatedError',
      message: 'operation trace:span was terminated by an operator',
      cause: aborted,
    });
    const closed = agent.run(SEARCH, body);
    closed.catch(() => {});
    await eventually(() => expect(begun).toBe(2));
    await agent.close();
    await expect(closed).rejects.toMatchObject({ name: 'ClientClosedError', cause: aborted });
  });

  test('an operation of many steps keeps nothing of finished ones', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    await agent.run(NAMED, async () => {
      for (let step = 0; step < 200; step += 1) await agent.run(SEARCH, () => {});
      expect(queryObjects(RunningOp, { format: 'count' })).toBeLessThan(50);
    });
  });

  test('close waits for an unreported completion, also when its caller left', async () => {
    let answer = (): void => {};
    const isAnswered = new Promise<undefined>((resolve) => {
      answer = () => resolve(undefined);
    });
    const gateway = await scriptedGateway(({ method }) => (method === 'CompleteOp' ? isAnswered : undefined));
    const agent = scriptedAgent(gateway, { deadlines: { closeMs: 60_000 } });
    const controller = new AbortController();
    let begun: Op | undefined;
    const run = agent.run(
      NAMED,
      (op) => {
        begun = op;
      },
      { signal: controller.signal },
    );
    run.catch(() => {});
    await eventually(() => expect(timesOf(gateway, 'CompleteOp')).toBe(1));
    controller.abort(new Error('the caller has gone'));
    await expect(run).rejects.toThrow('the caller has gone');
    const closed = agent.close();
    answer();
    await closed;
    expect(begun?.state).toBe('completing');
  });

  test('usage is recorded before close, also when its body did not wait', async () => {
    let answer = (): void => {};
    const isAnswered = new Promise<undefined>((resolve) => {
      answer = () => resolve(undefined);
    });
    const gateway = await scriptedGateway(({ method }) => (method === 'RecordUsage' ? isAnswered : undefined));
    const agent = scriptedAgent(gateway, { deadlines: { closeMs: 60_000 } });
    let recorded: Promise<UsageAnswer> | undefined;
    await agent.run(NAMED, (op) => {
      recorded = op.recordUsage(0.01);
    });
    const closed = agent.close();
    answer();
    await closed;
    expect(await recorded).toEqual({ status: 'ok' });
  });

  test('a paused operation refused at close is asked for once', async () => {
    const gateway = await gatewayWith('paused', ...Array.from({ length: 1_000 }, () => 'paused' as const));
    const agent = scriptedAgent(gateway, { deadlines: { closeMs: 50 } });
    await agent.ready();
    const run = agent.run(NAMED, async (op) => {
      gateway.opened[0]?.write({ opId: op.opId, signal: 'pause', sequence: 1 });
      return workForEver(op);
    });
    run.catch(() => {});
    await eventually(() => expect(timesOf(gateway, 'AckOpControl')).toBe(1));
    await agent.close();
    await expect(run).rejects.toMatchObject({ name: 'ClientClosedError' });
    expect(timesOf(gateway, 'CompleteOp')).toBe(1);
  });
});
