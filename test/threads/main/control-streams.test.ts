import { describe, expect, test } from 'vitest';
import type { AgentKey } from '../../../src/core/base/ids.ts';
import { ControlStreams } from '../../../src/threads/main/control-streams.ts';

describe('control streams', () => {
  test('only the streams of a dead thread are dropped', () => {
    const streams = new ControlStreams();
    const [crawler, sibling] = ['acme/search/crawler', 'acme/search/sibling'] as AgentKey[];
    streams.open(crawler!, { io: 0, stream: 1 });
    streams.open(crawler!, { io: 0, stream: 2 });
    streams.open(crawler!, { io: 1, stream: 1 });
    streams.open(sibling!, { io: 0, stream: 3 });
    streams.dropThread(0);
    expect([...streams.of(crawler!)]).toEqual([{ io: 1, stream: 1 }]);
    expect([...streams.of(sibling!)]).toEqual([]);
    // A word of the end of such a stream that comes late closes no other.
    streams.close(crawler!, { io: 0, stream: 1 });
    expect([...streams.of(crawler!)]).toEqual([{ io: 1, stream: 1 }]);
  });
});
