import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { digestOfPresented } from '../../src/wire/credential-digests.ts';

describe('credential digests', () => {
  test('the digest of a token is its SHA-256, however many tokens come between', () => {
    const expected = 'J1I7Bo4n-PTHj7WoXqFlhx6fEt_wUrBivB5oHKDaec4';
    expect(digestOfPresented('agt_0123456789abcdef0123456789abcdef')).toBe(expected);
    expect(digestOfPresented('agt_0123456789abcdef0123456789abcdef')).toBe(expected);
    for (let index = 0; index < 10_001; index++) digestOfPresented(`another token ${index}`);
    expect(digestOfPresented('agt_0123456789abcdef0123456789abcdef')).toBe(expected);
  });

  test('long texts presented as tokens are not cached', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    collect();
    const beforeBytes = process.memoryUsage().heapUsed;
    for (let index = 0; index < 2_000; index++) digestOfPresented(`${index}`.padEnd(16_000, 'x')); // 32 MB
    collect();
    expect(process.memoryUsage().heapUsed - beforeBytes).toBeLessThan(8_000_000);
  });
});
