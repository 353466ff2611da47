import { describe, expect, test } from 'vitest';
import { digestOfPresented } from '../../../src/doors/rpc/requests.ts';

describe('credential digests', () => {
  test('the digest of a token is its SHA-256, however many tokens come between', () => {
    const expected = 'J1I7Bo4n-PTHj7WoXqFlhx6fEt_wUrBivB5oHKDaec4';
    expect(digestOfPresented('agt_0123456789abcdef0123456789abcdef')).toBe(expected);
    expect(digestOfPresented('agt_0123456789abcdef0123456789abcdef')).toBe(expected);
    for (let index = 0; index < 10_001; index++) digestOfPresented(`another token ${index}`);
    expect(digestOfPresented('agt_0123456789abcdef0123456789abcdef')).toBe(expected);
  });
});
