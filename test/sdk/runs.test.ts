import { describe, expect, test } from 'vitest';
import type { AgentClientOptions, Op } from '../../sdk/typescript/src/index.ts';
import { workForEver } from '../support/endless-body.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, type ScriptedGateway, scriptedAgent, scriptedGateway } from '../support/scripted-gateway.ts';

const NAMED = { action: 'tool.call', resource: 'web_search', traceId: 'trace', spanId: 'span' };

const completionsAt = ({ calls }: ScriptedGateway): number =>
  calls.filter(({ method }) => method === 'CompleteOp').length;

describe('runs', () => {
  test('a running operation is not started twice under its name', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    await agent.ready();
    let hasRun = false;
    const first = agent.run(NAMED, async (op) => {
      await expect(
        agent.run(NAMED, () => {
          hasRun = true;
        }),
      ).rejects.toThrow(new TypeError('operation trace:span is already running'));
      gateway.opened[0]?.write({ opId: op.opId, signal: 'terminate', sequence: 1 });
      await eventually(() => expect(op.signal.aborted).toBe(true));
      await op.checkpoint();
    });
    await expect(first).rejects.toMatchObject({ name: 'OpTerminatedError', opId: 'trace:span' });
    expect(hasRun).toBe(false);
  });

  test('an error during a pause is thrown at once; the operation completes on resume', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    await agent.ready();
    const result = agent.run(NAMED, async (op) => {
      gateway.opened[0]?.write({ opId: op.opId, signal: 'pause', sequence: 1 });
      await eventually(() => expect(op.state).toBe('paused'));
      throw new Error('the body has failed');
    });
    await expect(result).rejects.toThrow('the body has failed');
    expect(completionsAt(gateway)).toBe(0);
    gateway.opened[0]?.write({ opId: 'trace:span', signal: 'resume', sequence: 2 });
    await eventually(() => expect(completionsAt(gateway)).toBe(1));
  });

  test('an operation terminated unseen as its body returned rejects its run', async () => {
    const gateway = await scriptedGateway(({ method }) => {
      if (method === 'CompleteOp') return { fails: 'FAILED_PRECONDITION' };
      return completionsAt(gateway) === 0 ? undefined : { decision: 'deny', opState: 'terminated' };
    });
    await expect(scriptedAgent(gateway).run(NAMED, () => 'the work is done')).rejects.toMatchObject({
      name: 'OpTerminatedError',
      opId: 'trace:span',
    });
  });

  test('an operation terminated before its check is answered does not begin', async () => {
    const gateway = await scriptedGateway(async ({ method }) => {
      if (method !== 'CheckAction') return undefined;
      gateway.opened[0]?.write({ opId: 'trace:span', signal: 'terminate', sequence: 1 });
      await eventually(() => expect(gateway.calls.some((call) => call.method === 'AckOpControl')).toBe(true));
      return undefined;
    });
    const agent = scriptedAgent(gateway);
    await agent.ready();
    let hasRun = false;
    await expect(
      agent.run(NAMED, () => {
        hasRun = true;
      }),
    ).rejects.toMatchObject({ name: 'OpTerminatedError' });
    expect(hasRun).toBe(false);
  });

  /** For longer than a check may take. */
  const TOO_BUSY: Answer = { fails: 'RESOURCE_EXHAUSTED', fault: 'overloaded', retryAfterSecs: 120 };

  /**
   * A gateway that forgets the operation of an agent whose body runs, and is told of it again by an announcement that
   * it answers when told to.
   */
  async function forgetful(answer: () => Answer | undefined, options: Partial<AgentClientOptions> = {}) {
    let answerAll = (): void => {};
    const isAnswered = new Promise<void>((resolve) => {
      answerAll = resolve;
    });
    let isKnown = true;
    const gateway = await scriptedGateway(async ({ method }) => {
      if (method === 'CompleteOp' && !isKnown) return { fails: 'NOT_FOUND' };
      if (method !== 'CheckAction' || gateway.calls.length === 1) return undefined;
      await isAnswered;
      isKnown = true;
      return answer();
    });
    const agent = scriptedAgent(gateway, options);
    await agent.ready();
    let finish = (): void => {};
    const isOver = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let signal = new AbortController().signal;
    const run = agent.run(NAMED, (op) => {
      signal = op.signal;
      return isOver;
    });
    await eventually(() => expect(gateway.calls).toHaveLength(1));
    isKnown = false;
    gateway.opened[0]?.end();
    await eventually(() => expect(gateway.calls).toHaveLength(2));
    return { gateway, agent, run, finish, answerAll, isStopped: () => signal.aborted };
  }

  test('an operation announced as its body ends is completed before close resolves', async () => {
    const answers: readonly (Answer | undefined)[] = [
      undefined,
      { fails: 'UNAVAILABLE' },
      { decision: 'deny', opState: 'paused' },
    ];
    for (const answer of answers) {
      const { gateway, agent, run, finish, answerAll } = await forgetful(() => answer, {
        deadlines: { outageMs: 0, closeMs: 60_000 },
      });
      finish();
      await run;
      const closed = agent.close();
      answerAll();
      await closed;
      expect(gateway.calls.map(({ method }) => method)).toEqual([
        'CheckAction',
        'CheckAction',
        'CompleteOp',
        'CompleteOp',
      ]);
    }
  });

  test('an operation is announced until a restarted, busy gateway accepts it', async () => {
    let isBusy = true;
    const { gateway, agent, run, finish, answerAll } = await forgetful(() => (isBusy ? TOO_BUSY : undefined), {
      deadlines: { checkMs: 60_000, closeMs: 60_000 },
    });
    answerAll();
    await eventually(() => expect(gateway.calls.length).toBeGreaterThan(4));
    isBusy = false;
    const times = gateway.calls.length;
    await eventually(() => expect(gateway.calls.length).toBe(times + 1));
    finish();
    await run;
    await agent.close();
    expect(
      gateway.calls
        .slice(times)
        .map(({ method }) => method)
        .filter((method) => method === 'CheckAction'),
    ).toEqual(['CheckAction']);
    expect(completionsAt(gateway)).toBeGreaterThan(0);
  });

  test('close does not wait for the announcement of an ended body', async () => {
    const { agent, run, finish, answerAll } = await forgetful(() => TOO_BUSY, {
      deadlines: { checkMs: 60_000, closeMs: 600_000 },
    });
    answerAll();
    finish();
    await run;
    await agent.close();
  });

  test('an operation that may not continue after an outage is stopped with the reason', async () => {
    const { run, finish, answerAll, isStopped } = await forgetful(() => ({
      decision: 'deny',
      opState: 'terminated',
      reason: 'web tools are over',
    }));
    answerAll();
    await eventually(() => expect(isStopped()).toBe(true));
    finish();
    await expect(run).rejects.toMatchObject({
      name: 'OpTerminatedError',
      opId: 'trace:span',
      message: 'operation trace:span may not continue: web tools are over',
    });
  });

  test('an announcement that people must approve waits for them, while the body goes on', async () => {
    const checks: Answer[] = [
      { decision: 'allow', opState: 'running' },
      { decision: 'pending', approvalId: 'a1', opState: 'pending' },
      { decision: 'allow', approvalId: 'a1', opState: 'running' },
    ];
    let approve = (): void => {};
    const approved = new Promise<void>((resolve) => {
      approve = resolve;
    });
    const gateway = await scriptedGateway(async ({ method }) => {
      if (method === 'WaitApproval') await approved;
      return method === 'CheckAction' ? checks.shift() : undefined;
    });
    const agent = scriptedAgent(gateway);
    await agent.ready();
    const countOf = (of: string): number => gateway.calls.filter(({ method }) => method === of).length;
    await agent.run(NAMED, async (op) => {
      gateway.opened[0]?.end();
      await eventually(() => expect(countOf('WaitApproval')).toBe(1));
      expect(op.signal.aborted).toBe(false);
      approve();
      await eventually(() => expect(checks).toEqual([]));
    });
    expect(countOf('WaitApproval')).toBe(1);
  });

  test('a refused announcement goes to onWarning, and the body continues', async () => {
    const warnings: Error[] = [];
    const { run, finish, answerAll } = await forgetful(() => ({ fails: 'PERMISSION_DENIED' }), {
      onWarning: (error) => warnings.push(error),
    });
    answerAll();
    await eventually(() =>
      expect(warnings).toMatchObject([
        {
          message: 'could not announce operation trace:span again',
          cause: { name: 'GatewayError', code: 'permission_denied' },
        },
      ]),
    );
    finish();
    await run;
    expect(warnings).toHaveLength(1);
  });

  test('a denied action can be requested again under its name', async () => {
    const decisions = ['deny', 'allow'];
    const gateway = await scriptedGateway(({ method }) =>
      method === 'CheckAction' ? { decision: decisions.shift() } : undefined,
    );
    const agent = scriptedAgent(gateway);
    await expect(agent.run(NAMED, () => {})).rejects.toMatchObject({ name: 'ActionDeniedError' });
    expect(await agent.run(NAMED, () => 'the work is done')).toBe('the work is done');
  });

  test('a pause right after an outage is not attributed to the previous gateway', async () => {
    const warnings: string[] = [];
    const checksAt = (): number => gateway.calls.filter(({ method }) => method === 'CheckAction').length;
    const gateway = await scriptedGateway(({ method }) =>
      method === 'CheckAction' && checksAt() === 3 ? { opState: 'paused' } : undefined,
    );
    const agent = scriptedAgent(gateway, { onWarning: ({ message }) => warnings.push(message) });
    await agent.ready();
    let begun: Op | undefined;
    const run = agent.run(NAMED, (op) => {
      begun = op;
      return workForEver(op);
    });
    run.catch(() => {});
    await eventually(() => expect(begun?.state).toBe('running'));
    gateway.opened[0]?.write({ opId: 'trace:span', signal: 'pause', sequence: 1 });
    await eventually(() => expect(begun?.state).toBe('paused'));
    gateway.opened[0]?.end();
    await eventually(() => expect(checksAt()).toBe(3));
    await agent.complete('another:operation');
    expect(warnings).toEqual([]);
  });
});
