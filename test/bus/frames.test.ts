/** Messages lost between gateways are noticed, and repeated, late or foreign ones are dropped. */
import { beforeEach, describe, expect, test } from 'vitest';
import { Frames } from '../../src/bus/frames.ts';
import type { RunId } from '../../src/ports/cluster.ts';

const MOST = 200;
const text = (id: number, detail = ''): string => JSON.stringify({ type: 'confirm', id, said: detail });

describe('frames of a bus', () => {
  let sender: Frames;
  let receiver: Frames;
  beforeEach(() => {
    sender = new Frames({ self: 'one' as RunId, secret: 's' });
    receiver = new Frames({ self: 'two' as RunId, secret: 's' });
  });
  const packed = (...texts: readonly string[]): readonly string[] =>
    sender
      .pack(
        texts.map((each) => ({ channel: 'all', text: each })),
        MOST,
      )
      .map(({ payload }) => payload);
  const opened = (payload: string, channel = 'all'): string => {
    const found = receiver.open(channel, payload);
    if (found === undefined) return 'dropped';
    const ids = found.messages.map((message) => (message as { id: number }).id);
    return `${found.from} [${ids.join()}]${found.isGap ? ' gap' : ''}`;
  };

  test('have as many messages as fit, on each channel by itself', () => {
    const frames = sender.pack(
      [1, 2, 3, 4, 5, 6].map((id) => ({ channel: id % 2 === 0 ? 'all' : 'inbox', text: text(id, 'x'.repeat(50)) })),
      MOST,
    );
    expect(frames.map(({ channel, payload }) => `${channel} ${opened(payload, channel)}`)).toEqual([
      'inbox one [1,3]',
      'inbox one [5]',
      'all one [2,4]',
      'all one [6]',
    ]);
  });

  test('say what was lost, once, and not what everybody has been told to read again', () => {
    const [, b, c, , e] = [1, 2, 3, 4, 5].map((id) => packed(text(id))[0]!);
    expect([opened(b!), opened(c!), opened(e!)]).toEqual(['one [2]', 'one [3]', 'one [5] gap']);
    const [, f, g, , h] = [6, 7, 8, 9, 10].map((id) => packed(text(id))[0]!);
    receiver.forgiveGaps();
    expect([opened(f!), opened(g!), opened(h!)]).toEqual(['one [7]', 'one [8]', 'one [10] gap']);
    packed(text(11));
    expect(opened(sender.empty('all'))).toBe('one [] gap');
  });

  test('count once, and not after later ones', () => {
    const [a, b] = [packed(text(1))[0]!, packed(text(2))[0]!];
    expect([opened(b), opened(b), opened(a)]).toEqual(['one [2]', 'dropped', 'dropped']);
    receiver.forgiveGaps();
    expect(opened(b)).toBe('dropped');
  });

  test('count only for whom they were made, from who has the secret', () => {
    const [frame] = packed(text(1));
    expect(opened(frame!, 'inbox')).toBe('dropped');
    expect(opened(frame!.replace('"id":1', '"id":2'))).toBe('dropped');
    expect(opened(frame!.slice(0, 10))).toBe('dropped');
    expect(sender.open('all', frame!)).toBeUndefined(); // its own
    expect(new Frames({ self: 'two' as RunId, secret: 'other' }).open('all', frame!)).toBeUndefined();
    expect(opened(frame!)).toBe('one [1]');
  });

  test('make up a message only once all its parts have come', () => {
    const parts = packed(text(1, '🎉"\\'.repeat(60)));
    expect(parts.length).toBeGreaterThan(3);
    expect(parts.map((part) => opened(part)).filter((found) => found !== 'one []')).toEqual(['one [1]']);
    const [first, , ...rest] = packed(text(2, '🎉"\\'.repeat(60)));
    expect([first!, ...rest].map((part) => opened(part)).filter((found) => found !== 'one []')).toEqual(['one [] gap']);
    expect(opened(packed(text(3))[0]!)).toBe('one [3]');
  });
});
