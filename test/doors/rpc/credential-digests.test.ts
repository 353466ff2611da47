import { describe, expect, test } from 'vitest';
import type { SecretDigest } from '../../../src/core/base/ids.ts';
import { CredentialDigests, digestOfPresented } from '../../../src/doors/rpc/credential-digests.ts';

describe('credential digests', () => {
  /** Which tokens were computed anew, as they were presented. */
  function scene() {
    const computed: string[] = [];
    const digests = new CredentialDigests((token) => {
      computed.push(token);
      return `digest of ${token}` as SecretDigest;
    });
    const present = (count: number): number => {
      computed.length = 0;
      for (let index = 0; index < count; index += 1) {
        const digest = digests.of(`agent ${index}`);
        if (digest !== `digest of agent ${index}`) throw new Error(`agent ${index} has the ${digest}`);
      }
      return computed.length;
    };
    return { digests, present };
  }

  test('are SHA-256, the first time and after many other tokens', () => {
    const expected = 'J1I7Bo4n-PTHj7WoXqFlhx6fEt_wUrBivB5oHKDaec4';
    expect(digestOfPresented('agt_0123456789abcdef0123456789abcdef')).toBe(expected);
    expect(digestOfPresented('agt_0123456789abcdef0123456789abcdef')).toBe(expected);
    for (let index = 0; index < 10_001; index++) digestOfPresented(`another token ${index}`);
    expect(digestOfPresented('agt_0123456789abcdef0123456789abcdef')).toBe(expected);
  });

  test('are remembered for as many agents as are registered, in turn', () => {
    const { digests, present } = scene();
    expect([present(10_000), present(10_000)]).toEqual([10_000, 0]);
    expect([present(30_000), present(30_000)]).toEqual([20_000, 30_000]); // dropped before their turn came again
    digests.makeRoomFor(30_000);
    expect(present(30_000)).toBeGreaterThan(0);
    expect([present(30_000), present(30_000)]).toEqual([0, 0]);
  });

  test('are remembered for at most 250,000 tokens in each of two generations', () => {
    const { digests, present } = scene();
    digests.makeRoomFor(10_000_000);
    expect([present(250_000), present(250_000)]).toEqual([250_000, 0]);
    expect([present(500_001), present(1)]).toEqual([250_001, 1]);
  });
});
