import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { WebSocketServer } from 'ws';
import type { Api } from '../../src/cli/remote/api.ts';
import { openLiveStream } from '../../src/cli/remote/live-stream.ts';

describe('live stream', () => {
  test('a live stream ends after two minutes without even a ping', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    onTestFinished(() => {
      vi.useRealTimers();
      server.close();
    });
    await once(server, 'listening');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const connected = once(server, 'connection');
    const api = {
      target: { apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, proxy: undefined },
      bearer: async () => undefined,
    } as unknown as Api;
    const stream = await openLiveStream(api, {}, new AbortController().signal);
    const [far] = await connected;
    let hasEnded = false;
    const ended = (async () => {
      for await (const _ of stream.frames);
      hasEnded = true;
    })();
    const turn = async (): Promise<void> => {
      far.ping();
      await once(far, 'pong');
    };
    for (let nth = 0; nth < 3; nth += 1) {
      vi.advanceTimersByTime(119_000);
      await turn();
      expect(hasEnded).toBe(false);
    }
    vi.advanceTimersByTime(121_000);
    await ended;
  });

  test('text that is not JSON in a live stream is reported', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    onTestFinished(() => {
      server.close();
    });
    await once(server, 'listening');
    server.once('connection', (far) => {
      far.send('{"event_type":"ops_change"}');
      far.send('<html>');
    });
    const api = {
      target: { apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, proxy: undefined },
      bearer: async () => undefined,
    } as unknown as Api;
    const stream = await openLiveStream(api, {}, new AbortController().signal);
    onTestFinished(() => stream.close());
    const seen: unknown[] = [];
    await expect(
      (async () => {
        for await (const frame of stream.frames) seen.push(frame);
      })(),
    ).rejects.toThrow(SyntaxError);
    expect(seen).toEqual([{ event_type: 'ops_change' }]);
  });
});
