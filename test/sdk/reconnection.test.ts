import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ControlChannel, type ControlOptions } from '../../sdk/typescript/src/control.ts';
import { GatewayError } from '../../sdk/typescript/src/errors.ts';
import { Reachability } from '../../sdk/typescript/src/reachability.ts';
import type { ClientState } from '../../sdk/typescript/src/types.ts';

describe('reconnection', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** The channel of an agent whose connection is always there: a stream opens, or fails, as soon as it is tried. */
  function channelOf({
    refusal = (): Error | undefined => undefined,
    whenConnected = async (): Promise<void> => {},
  } = {}) {
    const tried: number[] = [];
    const states: ClientState[] = [];
    const reach = new Reachability(1_000);
    let stream: EventEmitter | undefined;
    const openControl = (): EventEmitter => {
      tried.push(performance.now());
      const opened = new EventEmitter();
      stream = opened;
      queueMicrotask(() => {
        const error = refusal();
        if (error === undefined) opened.emit('metadata');
        else opened.emit('error', error);
      });
      return opened;
    };
    const channel = new ControlChannel({
      settings: {
        agent: { orgId: '', teamId: 't', agentId: 'a' },
        address: 'gateway:50051',
        onStateChange: (state: ClientState) => states.push(state),
        onWarning: () => {},
      },
      transport: { openControl, whenConnected },
      credential: { get: async () => 'token', renew: () => {} },
      reach,
      orphans: { retry: () => {} },
    } as unknown as ControlOptions);
    return {
      channel,
      tried,
      states,
      reach,
      lose: (error = new GatewayError('unavailable', 'Connection dropped')) => stream?.emit('error', error),
    };
  }

  test('a fleet reconnects spread over two seconds, and nobody later', async () => {
    const fleet = Array.from({ length: 400 }, () => channelOf());
    await vi.advanceTimersByTimeAsync(10_000);
    for (let time = 1; time <= 3; time += 1) {
      const lostMs = performance.now();
      for (const { lose } of fleet) lose();
      await vi.advanceTimersByTimeAsync(2_000);
      const afterMs = fleet.map(({ tried }) => tried[time]! - lostMs);
      expect(fleet.filter(({ tried, channel }) => tried.length !== time + 1 || channel.state !== 'connected')).toEqual(
        [],
      );
      // Evenly spread, 20 of them come in each tenth of a second.
      for (let fromMs = 0; fromMs < 2_000; fromMs += 100)
        expect(afterMs.filter((ms) => ms >= fromMs && ms < fromMs + 100).length).toBeLessThan(60);
      await vi.advanceTimersByTimeAsync(10_000);
    }
  });

  test('an agent that reaches the gateway otherwise reopens its control stream at once', async () => {
    const { channel, tried, lose } = channelOf();
    await vi.advanceTimersByTimeAsync(10_000);
    for (let times = 2; times <= 5; times += 1) {
      channel.retryNow();
      lose();
      await vi.advanceTimersByTimeAsync(0);
      channel.retryNow();
      await vi.advanceTimersByTimeAsync(0);
      expect({ times: tried.length, state: channel.state }).toEqual({ times, state: 'connected' });
      await vi.advanceTimersByTimeAsync(10_000);
    }
  });

  test('a control stream ended at once is not retried with each answered check', async () => {
    let refusal: Error | undefined;
    const { channel, tried, lose } = channelOf({ refusal: () => refusal });
    await vi.advanceTimersByTimeAsync(10_000);
    refusal = new GatewayError('internal', 'no streams here');
    lose();
    for (let seconds = 0; seconds < 60; seconds += 0.01) {
      channel.retryNow();
      await vi.advanceTimersByTimeAsync(10);
    }
    // Every 2.5 s on average, and at most every 5.
    expect(tried.length).toBeGreaterThan(12);
    expect(tried.length).toBeLessThan(40);
  });

  test('an agent with a new token reopens its control stream at once', async () => {
    const { channel, tried, lose } = channelOf();
    await vi.advanceTimersByTimeAsync(10_000);
    lose(new GatewayError('unauthenticated', 'void'));
    await vi.advanceTimersByTimeAsync(0);
    expect({ times: tried.length, state: channel.state }).toEqual({ times: 2, state: 'connected' });
  });

  test.each(['unimplemented', 'permission_denied'] as const)(
    'an agent reconnects after a proxy answered %s for the gateway',
    async (code) => {
      const answer = new GatewayError(code, 'no such route');
      let refusal: Error | undefined;
      const { channel, states, lose } = channelOf({ refusal: () => refusal });
      await vi.advanceTimersByTimeAsync(10_000);
      refusal = answer;
      lose();
      await vi.advanceTimersByTimeAsync(20_000);
      expect(channel.state).toBe('reconnecting');
      refusal = undefined;
      await vi.advanceTimersByTimeAsync(5_000);
      expect(states).toEqual(['connected', 'reconnecting', 'connected']);
    },
  );

  test('an agent refused by the gateway, or that never reached one, does not retry', async () => {
    const gatewaySays = new GatewayError('permission_denied', 'no', { fault: 'org_forbidden' });
    const known = channelOf();
    await vi.advanceTimersByTimeAsync(10_000);
    known.lose(gatewaySays);
    const stranger = channelOf({
      refusal: () => new GatewayError('unimplemented', 'no such route'),
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect({ states: known.states, triedCount: known.tried.length }).toEqual({
      states: ['connected', 'reconnecting', 'refused'],
      triedCount: 1,
    });
    expect({ states: stranger.states, triedCount: stranger.tried.length }).toEqual({
      states: ['refused'],
      triedCount: 1,
    });
  });

  test('after a long outage the control stream reopens with the first connection', async () => {
    let connected = (): void => {};
    const isConnected = new Promise<void>((resolve) => {
      connected = resolve;
    });
    const { tried, states, reach, lose } = channelOf({ whenConnected: () => isConnected });
    await vi.advanceTimersByTimeAsync(10_000);
    lose();
    await vi.advanceTimersByTimeAsync(20_000);
    // Checks do not wait for it any more.
    expect({ times: tried.length, isLost: reach.isLost }).toEqual({ times: 1, isLost: true });
    connected();
    await vi.advanceTimersByTimeAsync(0);
    expect({ times: tried.length, isLost: reach.isLost, states }).toEqual({
      times: 2,
      isLost: false,
      states: ['connected', 'reconnecting', 'connected'],
    });
  });

  test('an agent is connecting until its first success, and reconnecting only later', async () => {
    const refusals = [1, 2, 3].map((nth) => new GatewayError('internal', `refused ${nth} times`));
    const { channel, tried, states } = channelOf({ refusal: () => refusals.shift() });
    await vi.advanceTimersByTimeAsync(0);
    expect({ times: tried.length, state: channel.state }).toEqual({ times: 1, state: 'connecting' });
    await vi.advanceTimersByTimeAsync(60_000);
    expect({ times: tried.length, states }).toEqual({ times: 4, states: ['connected'] });
  });

  test('a channel closed between attempts keeps no process alive and stops retrying', async () => {
    const { channel, tried, states, lose, reach } = channelOf();
    await vi.advanceTimersByTimeAsync(10_000);
    lose();
    await vi.advanceTimersByTimeAsync(0);
    channel.close();
    reach.close();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect({ times: tried.length, states }).toEqual({ times: 1, states: ['connected', 'reconnecting', 'closed'] });
  });
});
