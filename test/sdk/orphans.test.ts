import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { GatewayError, type OpState } from '../../sdk/typescript/src/index.ts';
import { OrphanSettler, type OrphanSettlerOptions, Orphans } from '../../sdk/typescript/src/orphans.ts';
import { Underway } from '../../sdk/typescript/src/waiters.ts';
import { eventually } from '../support/eventually.ts';
import { startProxy } from '../support/proxy.ts';
import { type ScriptedGateway, scriptedAgent, scriptedGateway } from '../support/scripted-gateway.ts';

/** The list, and what works it off, with this in the place of the gateway. */
function settled({ onWarning = () => {}, ...gateway }: Partial<OrphanSettlerOptions>) {
  const orphans = new Orphans(onWarning);
  const settler = new OrphanSettler({
    orphans,
    complete: async () => {},
    stateOf: async () => undefined,
    isReachable: () => true,
    underway: new Underway(),
    onWarning,
    ...gateway,
  });
  return { orphans, settler };
}

/** Orphans of a gateway that holds these states; `asked` is every call, in order. */
function orphansOf(
  states: Map<string, OpState>,
  options: { isReachable?: () => boolean; onAsked?: (what: string, opId: string) => void } = {},
) {
  const asked: string[] = [];
  const warnings: string[] = [];
  const ask = (what: string, opId: string): OpState | undefined => {
    asked.push(`${what} ${opId}`);
    const state = states.get(opId);
    options.onAsked?.(what, opId);
    return state;
  };
  const { orphans } = settled({
    complete: async (opId) => {
      const state = ask('complete', opId);
      if (state === undefined) throw new GatewayError('not_found', 'no such operation');
      if (state !== 'running') throw new GatewayError('failed_precondition', `it is ${state}`);
      states.set(opId, 'completing');
    },
    stateOf: async (opId) => ask('state', opId),
    isReachable: options.isReachable ?? (() => true),
    onWarning: ({ message }) => warnings.push(message),
  });
  return { orphans, asked, warnings };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('orphans', () => {
  test('a paused abandoned operation is queried once and completed when resumed', async () => {
    const states = new Map<string, OpState>([
      ['a', 'paused'],
      ['b', 'running'],
    ]);
    const { orphans, asked } = orphansOf(states);
    orphans.add('a');
    orphans.add('b');
    await eventually(() => expect(states.get('b')).toBe('completing'));
    await new Promise((resolve) => setTimeout(resolve, 600));
    orphans.add('c');
    await eventually(() => expect(asked).toEqual(['complete a', 'state a', 'complete b', 'complete c']));
    states.set('a', 'running');
    expect(orphans.signalled('a')).toBe(true);
    await eventually(() => expect(states.get('a')).toBe('completing'));
    await turn();
    expect(orphans.signalled('a')).toBe(false);
    expect(orphans.signalled('b')).toBe(false);
  });

  test('a resume during the query of an abandoned operation is not missed', async () => {
    const states = new Map<string, OpState>([['a', 'paused']]);
    const { orphans } = orphansOf(states, {
      onAsked: (what) => {
        if (what !== 'state') return;
        // The answer, which says paused, is still on its way.
        states.set('a', 'running');
        orphans.signalled('a');
      },
    });
    orphans.add('a');
    await eventually(() => expect(states.get('a')).toBe('completing'));
  });

  test('an abandoned operation resumed before its query is completed', async () => {
    const states = new Map<string, OpState>([['a', 'paused']]);
    const { orphans } = orphansOf(states, {
      onAsked: (what) => {
        if (what === 'complete' && states.get('a') === 'paused') states.set('a', 'running');
      },
    });
    orphans.add('a');
    await eventually(() => expect(states.get('a')).toBe('completing'));
  });

  test('an abandoned operation is queried again after a failed query', async () => {
    const states: (OpState | undefined)[] = [undefined, 'completing'];
    const errors = ['unavailable', 'failed_precondition', 'failed_precondition'] as const;
    const asked: string[] = [];
    const { orphans } = settled({
      complete: async () => {
        const code = errors[asked.push('complete') - 1 - asked.filter((what) => what === 'state').length] ?? 'internal';
        throw new GatewayError(code, code);
      },
      stateOf: async () => {
        asked.push('state');
        return states.shift();
      },
    });
    orphans.add('a');
    await eventually(() => expect(asked).toEqual(['complete', 'complete', 'state', 'complete', 'state']));
    await turn();
    expect(orphans.signalled('a')).toBe(false);
  });

  test('abandoned operations terminated, finished or unknown at the gateway are dropped', async () => {
    const states = new Map<string, OpState>([
      ['a', 'terminated'],
      ['b', 'completing'],
    ]);
    const { orphans, asked, warnings } = orphansOf(states);
    for (const opId of ['a', 'b', 'c']) orphans.add(opId);
    await eventually(() => expect(asked).toEqual(['complete a', 'state a', 'complete b', 'state b', 'complete c']));
    await turn();
    expect(['a', 'b', 'c'].map((opId) => orphans.signalled(opId))).toEqual([false, false, false]);
    expect(warnings).toEqual([]);
  });

  test('abandoned operations are reported at once, then with backoff, reset on contact', async () => {
    vi.useFakeTimers();
    // Without this, a pause in some hundreds is so short that it is over at once.
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
    onTestFinished(() => {
      random.mockRestore();
      vi.useRealTimers();
    });
    const asked: string[] = [];
    let isReachable = true;
    const { orphans, settler } = settled({
      complete: async (opId) => {
        asked.push(opId);
        throw new GatewayError('unavailable', 'not now');
      },
      stateOf: async () => undefined,
      isReachable: () => isReachable,
    });
    orphans.add('a');
    orphans.add('b');
    await vi.advanceTimersByTimeAsync(0);
    // While one cannot be reported, the other cannot, either.
    expect(asked).toEqual(['a']);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(asked.length).toBeGreaterThan(12);
    expect(asked.length).toBeLessThan(60);
    const times = asked.length;
    settler.retryNow();
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toHaveLength(times + 1);
    await vi.advanceTimersByTimeAsync(500);
    expect(asked.length).toBeGreaterThan(times + 1);
    isReachable = false;
    settler.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('many abandoned operations are completed in one pass', async () => {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const ids = Array.from({ length: 40 }, (_, nth) => `op-${nth}`);
    const fates: readonly (OpState | undefined)[] = ['running', undefined, 'terminated', 'paused'];
    const states = new Map<string, OpState>(
      ids.flatMap((id, nth) => {
        const fate = fates[nth % 4];
        return fate === undefined ? [] : [[id, fate]];
      }),
    );
    const { orphans } = orphansOf(states);
    for (const id of ids) orphans.add(id);
    await vi.advanceTimersByTimeAsync(0);
    expect([...states.values()].filter((state) => state === 'running')).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('nothing is queried offline; once back, paused operations are queried again', async () => {
    const states = new Map<string, OpState>([['a', 'paused']]);
    let isReachable = false;
    const { orphans, asked } = orphansOf(states, { isReachable: () => isReachable });
    orphans.add('a');
    await turn();
    expect(asked).toEqual([]);
    isReachable = true;
    orphans.retry();
    await eventually(() => expect(asked).toEqual(['complete a', 'state a']));
    await turn();
    states.delete('a');
    orphans.retry();
    await eventually(() => expect(asked).toEqual(['complete a', 'state a', 'complete a']));
    await turn();
    expect(orphans.signalled('a')).toBe(false);
  });

  test('beyond ten thousand abandoned operations the oldest is dropped and named', () => {
    const { orphans, warnings } = orphansOf(new Map(), { isReachable: () => false });
    for (let nth = 1; nth <= 10_001; nth += 1) orphans.add(`op-${nth}`);
    expect(warnings).toEqual([
      'operation op-1 may stay open at the gateway: too many are waiting until it can be reached',
    ]);
    expect(orphans.signalled('op-1')).toBe(false);
    expect(orphans.signalled('op-2')).toBe(true);
  });

  test('checks that were never sent are not reported after reconnecting', async () => {
    const gateway = await scriptedGateway();
    const proxy = await startProxy(gateway.address);
    onTestFinished(() => proxy.close());
    const agent = scriptedAgent({ ...gateway, address: proxy.address }, { deadlines: { outageMs: 0 } });
    await agent.ready();
    proxy.refuse();
    await eventually(() => expect(agent.state).toBe('reconnecting'));
    for (let count = 0; count < 50; count += 1)
      expect(await agent.check({ action: 'tool.call' })).toMatchObject({ decision: 'deny', unreachable: true });
    expect(gateway.calls).toEqual([]);
    proxy.serve();
    await eventually(() => expect(agent.state).toBe('connected'));
    await agent.complete('another:operation');
    expect(gateway.calls).toMatchObject([{ method: 'CompleteOp', opId: 'another:operation' }]);
  });

  const completedAt = ({ calls }: ScriptedGateway): readonly string[] =>
    calls.filter(({ method }) => method === 'CompleteOp').map(({ opId }) => opId);

  test('close waits for a delayed completion, within its time limit', async () => {
    const NAMED = { action: 'tool.call', traceId: 'trace', spanId: 'span' };
    const gateway = await scriptedGateway(({ method }) =>
      method === 'CompleteOp' && completedAt(gateway).length <= 2 ? { fails: 'UNAVAILABLE' } : undefined,
    );
    const agent = scriptedAgent(gateway, { deadlines: { outageMs: 0, closeMs: 60_000 } });
    await agent.ready();
    await agent.run(NAMED, () => {});
    await eventually(() => expect(completedAt(gateway).length).toBeGreaterThanOrEqual(2));
    await agent.close();
    expect(completedAt(gateway)).toHaveLength(3);

    const broken = await scriptedGateway(({ method }) =>
      method === 'CompleteOp' ? { fails: 'UNAVAILABLE' } : undefined,
    );
    const hasty = scriptedAgent(broken, { deadlines: { outageMs: 0, closeMs: 50 } });
    await hasty.ready();
    await hasty.run(NAMED, () => {});
    await eventually(() => expect(completedAt(broken).length).toBeGreaterThanOrEqual(2));
    await hasty.close();
  });

  test('close does not wait for a lost gateway', async () => {
    const agent = scriptedAgent(
      { address: '127.0.0.1:1' },
      { onUnreachable: 'allow', deadlines: { outageMs: 0, closeMs: 600_000 } },
    );
    expect(await agent.run({ action: 'tool.call' }, () => 'ungoverned')).toBe('ungoverned');
    await agent.close();
  });

  test('a refused abandoned operation is named and does not block the next', async () => {
    let isBroken = true;
    const warnings: string[] = [];
    const gateway = await scriptedGateway(({ method, opId }) => {
      if (method === 'CheckAction' && isBroken) return { fails: 'UNAVAILABLE' };
      return method === 'CompleteOp' && opId === 'of:another'
        ? { fails: 'PERMISSION_DENIED', fault: 'not_owner' }
        : undefined;
    });
    const agent = scriptedAgent(gateway, {
      onUnreachable: 'allow',
      onWarning: ({ message }) => warnings.push(message),
      deadlines: { outageMs: 0 },
    });
    await agent.ready();
    await agent.run({ action: 'tool.call', traceId: 'of', spanId: 'another' }, () => {});
    await agent.run({ action: 'tool.call', traceId: 'of', spanId: 'mine' }, () => {});
    isBroken = false;
    await eventually(() => expect(completedAt(gateway)).toContain('of:mine'));
    expect(completedAt(gateway)).toEqual(['of:another', 'of:mine']);
    expect(warnings).toEqual(['could not report operation of:another as complete']);
  });

  test('a check whose answer was lost, with a busy gateway after it, is completed', async () => {
    for (const onUnreachable of ['deny', 'allow'] as const) {
      const gateway = await scriptedGateway(({ method }) => {
        if (method !== 'CheckAction') return undefined;
        return gateway.calls.length === 1
          ? { fails: 'UNKNOWN' }
          : { fails: 'RESOURCE_EXHAUSTED', fault: 'overloaded', retryAfterSecs: 120 };
      });
      const agent = scriptedAgent(gateway, {
        onUnreachable,
        deadlines: { checkMs: 60_000, outageMs: 60_000, closeMs: 60_000 },
      });
      const { decision, unreachable, opId } = await agent.check({ action: 'tool.call' });
      expect({ decision, unreachable }).toEqual({ decision: 'deny', unreachable: false });
      await agent.close();
      expect(completedAt(gateway)).toEqual([opId]);
    }
  });

  test('a signal to an abandoned operation is acknowledged', async () => {
    let decide = (): void => {};
    const decided = new Promise<void>((resolve) => {
      decide = resolve;
    });
    let checks = 0;
    const gateway = await scriptedGateway(async ({ method }) => {
      if (method === 'CompleteOp') return { fails: 'FAILED_PRECONDITION', fault: 'invalid_transition' };
      if (method !== 'CheckAction') return undefined;
      checks += 1;
      if (checks > 1) return { decision: 'deny', opState: 'paused' };
      await decided;
      return undefined;
    });
    const agent = scriptedAgent(gateway);
    await agent.ready();
    const leaving = new AbortController();
    const checked = agent.check({ action: 'tool.call' }, { signal: leaving.signal });
    await eventually(() => expect(checks).toBe(1));
    leaving.abort(new Error('left'));
    await expect(checked).rejects.toThrow('left');
    decide();
    await eventually(() => expect(checks).toBe(2)); // its state: paused
    const opId = gateway.calls.find(({ method }) => method === 'CompleteOp')!.opId;
    gateway.opened[0]!.write({ opId, signal: 'terminate', sequence: 5 });
    await eventually(() =>
      expect(gateway.calls.filter(({ method }) => method === 'AckOpControl')).toEqual([
        { method: 'AckOpControl', opId, sequence: 5, token: 'any-token' },
      ]),
    );
  });
});
