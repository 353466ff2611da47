import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAgentClient, type Op } from '../../sdk/typescript/src/index.ts';
import { workForEver } from '../support/endless-body.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import {
  type Answer,
  type ScriptedCall,
  type ScriptedGateway,
  scriptedAgent,
  scriptedGateway,
} from '../support/scripted-gateway.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };
const GONE = new Error('the caller has gone');

const asked = ({ calls }: ScriptedGateway, of: ScriptedCall['method']): readonly string[] =>
  calls.filter(({ method }) => method === of).map(({ opId }) => opId);

/** A gateway that answers calls of this method only when told to, with what it is told. */
async function hesitant(of: ScriptedCall['method']) {
  const waiting: ((answer?: Answer) => void)[] = [];
  const gateway = await scriptedGateway(({ method }) =>
    method === of ? new Promise((resolve) => waiting.push(resolve)) : undefined,
  );
  return {
    gateway,
    waiting,
    answerAll: (answer?: Answer) => {
      for (const resolve of waiting.splice(0)) resolve(answer);
    },
  };
}

/** A call that waits until the signal is aborted, which rejects with the very reason and leaves no listener behind. */
async function abort(controller: AbortController, ...calls: Promise<unknown>[]): Promise<void> {
  const settled = Promise.allSettled(calls);
  controller.abort(GONE);
  for (const result of await settled) expect(result).toEqual({ status: 'rejected', reason: GONE });
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
}

describe('abort', () => {
  test('an already aborted signal lets nothing begin', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    await agent.ready();
    const signal = AbortSignal.abort(GONE);
    await expect(agent.check(SEARCH, { signal })).rejects.toBe(GONE);
    await expect(agent.run(SEARCH, () => {}, { signal })).rejects.toBe(GONE);
    await expect(agent.ready({ signal })).rejects.toBe(GONE);
    await agent.check(SEARCH, { signal: new AbortController().signal });
    expect(asked(gateway, 'CheckAction')).toHaveLength(1);
  });

  test('waiting for an absent gateway can be aborted', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const agent = scriptedAgent(
      { address: '127.0.0.1:1' },
      { apiKey: 'any-key', deadlines: { checkMs: 600_000, outageMs: 600_000, callMs: 600_000 } },
    );
    const given = scriptedAgent(
      { address: '127.0.0.1:1' },
      { deadlines: { checkMs: 600_000, outageMs: 600_000, callMs: 600_000 } },
    );
    const calls = [agent, given].flatMap((it) => [
      it.check(SEARCH, { signal }),
      it.run(SEARCH, () => {}, { signal }),
      it.complete('trace:span', { signal }),
      it.recordUsage({ costUsd: 1 }, { signal }),
      it.ready({ signal }),
    ]);
    for (const call of calls) call.catch(() => {});
    await sleep(100);
    await abort(controller, ...calls);
  });

  test('an aborted check passes its slot on, whether it had one or waited', async () => {
    const { gateway, waiting, answerAll } = await hesitant('CheckAction');
    const agent = scriptedAgent(gateway, { maxInFlight: 1, deadlines: { checkMs: 600_000 } });
    await agent.ready();
    const [first, second] = [new AbortController(), new AbortController()];
    const inFlight = agent.check(SEARCH, { signal: first.signal });
    const inLine = agent.check(SEARCH, { signal: second.signal });
    const last = agent.check({ ...SEARCH, traceId: 'the', spanId: 'last' });
    await eventually(() => expect(waiting).toHaveLength(1));
    await abort(second, inLine);
    await abort(first, inFlight);
    await eventually(() => expect(waiting).toHaveLength(2));
    answerAll();
    expect(await last).toMatchObject({ decision: 'allow', opId: 'the:last' });
  });

  test('an action allowed after its caller left is completed, unless denied or named', async () => {
    for (const onUnreachable of ['deny', 'allow'] as const) {
      const { gateway, waiting, answerAll } = await hesitant('CheckAction');
      const agent = scriptedAgent(gateway, { onUnreachable, deadlines: { closeMs: 60_000 } });
      const controller = new AbortController();
      const { signal } = controller;
      const calls = [
        agent.check({ ...SEARCH, traceId: 'mine' }, { signal }),
        agent.run({ ...SEARCH, traceId: 'mine' }, () => {}, { signal }),
        agent.check({ ...SEARCH, traceId: 'mine', spanId: 'named' }, { signal }),
        agent.run({ ...SEARCH, traceId: 'mine', spanId: 'named-run' }, () => {}, { signal }),
      ];
      await eventually(() => expect(waiting).toHaveLength(4));
      await abort(controller, ...calls);
      answerAll();
      // It waits for what is still to be told.
      await agent.close();
      expect(asked(gateway, 'CompleteOp').toSorted()).toEqual(
        asked(gateway, 'CheckAction')
          .filter((opId) => !opId.startsWith('mine:named'))
          .toSorted(),
      );
      expect(asked(gateway, 'CompleteOp')).toHaveLength(2);
    }
    const { gateway, waiting, answerAll } = await hesitant('CheckAction');
    const agent = scriptedAgent(gateway, { deadlines: { closeMs: 60_000 } });
    const controller = new AbortController();
    const call = agent.check(SEARCH, { signal: controller.signal });
    await eventually(() => expect(waiting).toHaveLength(1));
    await abort(controller, call);
    answerAll({ decision: 'deny' });
    await agent.close();
    expect(asked(gateway, 'CompleteOp')).toEqual([]);
  });

  test('a check aborted before its first answer is completed: it may be allowed', async () => {
    const gateway = await scriptedGateway(({ method }) =>
      method === 'CheckAction' ? { fails: 'UNKNOWN' } : undefined,
    );
    const agent = scriptedAgent(gateway, { deadlines: { checkMs: 600_000, outageMs: 600_000 } });
    const controller = new AbortController();
    const call = agent.check(SEARCH, { signal: controller.signal });
    await eventually(() => expect(asked(gateway, 'CheckAction').length).toBeGreaterThan(0));
    await abort(controller, call);
    await eventually(() => expect(asked(gateway, 'CompleteOp')).toEqual([asked(gateway, 'CheckAction')[0]]));
  });

  test('an action allowed after its caller left completes also before signals arrive', async () => {
    let [open, allow] = [() => {}, () => {}];
    const isOpen = new Promise<undefined>((resolve) => {
      open = () => resolve(undefined);
    });
    const isAllowed = new Promise<undefined>((resolve) => {
      allow = () => resolve(undefined);
    });
    const gateway = await scriptedGateway(({ method }) =>
      method === 'OpControlStream' ? isOpen : method === 'CheckAction' ? isAllowed : undefined,
    );
    const agent = scriptedAgent(gateway);
    const controller = new AbortController();
    const call = agent.check({ ...SEARCH, traceId: 'given-up' }, { signal: controller.signal });
    await eventually(() => expect(asked(gateway, 'CheckAction')).toHaveLength(1));
    await abort(controller, call);
    allow();
    expect(await agent.check({ ...SEARCH, traceId: 'next' })).toMatchObject({ decision: 'allow' });
    expect(agent.state).toBe('connecting');
    open();
    await eventually(() => expect(asked(gateway, 'CompleteOp')).toEqual([expect.stringContaining('given-up:')]));
  });

  test('a check refused by an overloaded gateway is not retried for an absent caller', async () => {
    const gateway = await scriptedGateway(({ method }) =>
      method === 'CheckAction' ? { fails: 'RESOURCE_EXHAUSTED', fault: 'overloaded' } : undefined,
    );
    const agent = scriptedAgent(gateway, { deadlines: { checkMs: 600_000 } });
    const controller = new AbortController();
    const call = agent.check(SEARCH, { signal: controller.signal });
    await eventually(() => expect(asked(gateway, 'CheckAction').length).toBeGreaterThan(0));
    await abort(controller, call);
    // Whatever was on its way has come: the next call is answered.
    await agent.complete('trace:span');
    const times = asked(gateway, 'CheckAction').length;
    await sleep(300);
    expect(asked(gateway, 'CheckAction')).toHaveLength(times);
  });

  test('an abort reaches the body through its signal and completes the operation', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    const bodies: ((op: Op) => Promise<unknown>)[] = [
      workForEver,
      // As fetch and others do, which throw an error of their own.
      (op) =>
        new Promise((_, reject) => {
          op.signal.addEventListener('abort', () => reject(new Error('AbortError')));
        }),
      (op) =>
        new Promise<void>((resolve) => {
          op.signal.addEventListener('abort', () => resolve());
        }),
      (op) => agent.run(SEARCH, workForEver).finally(() => expect(op.signal.reason).toBe(GONE)),
    ];
    for (const body of bodies) {
      const controller = new AbortController();
      const begun = asked(gateway, 'CheckAction').length;
      const call = agent.run(SEARCH, body, { signal: controller.signal });
      await eventually(() => expect(asked(gateway, 'CheckAction').length).toBeGreaterThan(begun));
      await sleep(50);
      await abort(controller, call);
    }
    await eventually(() =>
      expect(asked(gateway, 'CompleteOp').toSorted()).toEqual(asked(gateway, 'CheckAction').toSorted()),
    );
  });

  test('an aborted caller waits at no pause, before or after the end of the body', async () => {
    const gateway = await scriptedGateway();
    const agent = scriptedAgent(gateway);
    await agent.ready();
    for (const body of [workForEver, (op: Op) => eventually(() => expect(op.state).toBe('paused'))]) {
      const controller = new AbortController();
      let begun: Op | undefined;
      const call = agent.run(
        SEARCH,
        (op) => {
          begun = op;
          gateway.opened[0]?.write({ opId: op.opId, signal: 'pause', sequence: 1 });
          return body(op);
        },
        { signal: controller.signal },
      );
      await eventually(() => expect(asked(gateway, 'AckOpControl')).toContain(begun?.opId));
      await abort(controller, call);
      expect(asked(gateway, 'CompleteOp')).not.toContain(begun?.opId);
      gateway.opened[0]?.write({ opId: begun?.opId, signal: 'resume', sequence: 2 });
      await eventually(() => expect(asked(gateway, 'CompleteOp')).toContain(begun?.opId));
    }
  });

  test('an error of the body is thrown unchanged, whatever happens while it is reported', async () => {
    const { gateway, waiting, answerAll } = await hesitant('CompleteOp');
    const agent = scriptedAgent(gateway);
    const controller = new AbortController();
    const call = agent.run(
      SEARCH,
      () => {
        throw new RangeError('no such page');
      },
      { signal: controller.signal },
    );
    call.catch(() => {});
    await eventually(() => expect(waiting).toHaveLength(1));
    controller.abort(GONE);
    await expect(call).rejects.toThrow(new RangeError('no such page'));
    answerAll();
  });

  test('completions and usage are reported although nobody waits; close waits for them', async () => {
    const { gateway, waiting, answerAll } = await hesitant('CompleteOp');
    const agent = scriptedAgent(gateway, { deadlines: { closeMs: 60_000 } });
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [
      agent.run({ ...SEARCH, traceId: 'the', spanId: 'run' }, () => 'done', { signal }),
      agent.complete('the:check', { signal }),
    ];
    await eventually(() => expect(waiting).toHaveLength(2));
    await abort(controller, ...calls);
    await expect(agent.complete('the:late', { signal })).rejects.toBe(GONE);
    await expect(agent.recordUsage({ costUsd: 1, opId: 'the:spent' }, { signal })).rejects.toBe(GONE);
    await eventually(() => expect(waiting).toHaveLength(3));
    let isClosed = false;
    const closed = agent.close().then(() => {
      isClosed = true;
    });
    await sleep(100);
    expect(isClosed).toBe(false);
    answerAll();
    await closed;
    expect(asked(gateway, 'CompleteOp').toSorted()).toEqual(['the:check', 'the:late', 'the:run']);
    expect(asked(gateway, 'RecordUsage')).toEqual(['the:spent']);
  });

  test('a report that fails after its caller left goes to onWarning, others do not', async () => {
    const { gateway, waiting, answerAll } = await hesitant('CompleteOp');
    const warnings: string[] = [];
    const agent = scriptedAgent(gateway, { onWarning: ({ message }) => warnings.push(message) });
    const controller = new AbortController();
    const completed = agent.complete('the:heard', { signal: controller.signal });
    completed.catch(() => {});
    await eventually(() => expect(waiting).toHaveLength(1));
    answerAll({ fails: 'NOT_FOUND' });
    await expect(completed).rejects.toMatchObject({ code: 'not_found' });
    const call = agent.complete('the:unheard', { signal: controller.signal });
    await eventually(() => expect(waiting).toHaveLength(1));
    await abort(controller, call);
    answerAll({ fails: 'NOT_FOUND' });
    await eventually(() => expect(warnings).toEqual(['could not report operation the:unheard as complete']));
  });

  test('many operations share one signal without a leak warning, and all end on abort', {
    timeout: 120_000,
  }, async () => {
    const gateway = await startGatewayHere();
    onTestFinished(async () => {
      await gateway.stop();
    });
    const leaks: string[] = [];
    const onWarning = ({ name }: Error): void => {
      leaks.push(name);
    };
    process.on('warning', onWarning);
    onTestFinished(() => {
      process.off('warning', onWarning);
    });
    const agent = createAgentClient({
      address: gateway.grpc,
      agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
      apiKey: ADMIN_KEY,
      deadlines: { checkMs: 60_000, callMs: 60_000, outageMs: 60_000, closeMs: 60_000 },
    });
    onTestFinished(() => agent.close());
    await agent.ready();
    const controller = new AbortController();
    const { signal } = controller;
    let begun = 0;
    const runs = Array.from({ length: 50 }, () =>
      agent.run(
        SEARCH,
        (op) => {
          begun += 1;
          return workForEver(op);
        },
        { signal },
      ),
    );
    await eventually(() => expect(begun).toBe(50), 60_000);
    // When the first is answered, the others are with the gateway.
    const first = agent.check(SEARCH);
    const checks = Array.from({ length: 200 }, () =>
      agent.check(SEARCH, { signal }).then(
        ({ opId }) => agent.complete(opId),
        (error: unknown) => expect(error).toBe(GONE),
      ),
    );
    const { opId } = await first;
    await abort(controller, ...runs);
    await Promise.all([agent.complete(opId), ...checks]);
    await agent.close();
    expect((await gateway.call('GET', '/api/v1/ops?state=running')).body.ops).toEqual([]);
    expect((await gateway.call('GET', '/api/v1/ops?state=completing')).body.ops.length).toBeGreaterThanOrEqual(50);
    expect(leaks).toEqual([]);
  });
});
