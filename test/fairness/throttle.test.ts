import { describe, expect, test } from 'vitest';
import { throttle } from '../../src/fairness/rate-limit.ts';

describe('throttle', () => {
  test('writes one line a minute with its count, also after the clock is set back', () => {
    let nowMs = 1_000_000;
    const written: object[] = [];
    const note = throttle({ nowMs: () => nowMs }, (fields) => void written.push(fields));
    for (const fault of ['a', 'b', 'c']) note({ fault });
    expect(written).toEqual([{ fault: 'a' }]);
    nowMs += 59_999;
    note({ fault: 'd' });
    nowMs += 1;
    note({ fault: 'e' });
    expect(written.slice(1)).toEqual([{ fault: 'e', more: 3 }]);
    nowMs -= 500_000;
    note({ fault: 'f' });
    expect(written.slice(2)).toEqual([{ fault: 'f' }]);
  });
});
