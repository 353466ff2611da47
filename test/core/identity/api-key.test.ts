import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SecretDigest } from '../../../src/core/base/ids.ts';
import type { ApiKey } from '../../../src/core/identity/api-key.ts';
import {
  formatApiKey,
  hintOf,
  isBootstrapKey,
  isUsable,
  KEY_ENTROPY_BYTES,
  parseApiKey,
} from '../../../src/core/identity/api-key.ts';

const entropy = fc.uint8Array({ minLength: KEY_ENTROPY_BYTES, maxLength: KEY_ENTROPY_BYTES });

describe('api key', () => {
  test('the key format is fixed, now and in every later version', () => {
    expect(formatApiKey(new Uint8Array(40))).toEqual({
      id: '00000000000',
      key: 'svc_00000000000_00000000000000000000000000000000000000000001GTGyY',
    });
    expect(formatApiKey(new Uint8Array(40).fill(255))).toEqual({
      id: 'LygHa16AHYF',
      key: 'svc_LygHa16AHYF_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp13ZQInx',
    });
  });

  test('a minted key parses to its own id, and its hint shows none of its secret', () => {
    fc.assert(
      fc.property(entropy, (bytes) => {
        const { id, key } = formatApiKey(bytes);
        expect(key).toMatch(/^svc_[0-9A-Za-z]{11}_[0-9A-Za-z]{49}$/);
        expect(parseApiKey(key)).toEqual({ id });
        expect(hintOf(key)).toBe(`svc_${id}…`);
      }),
    );
  });

  test('different random inputs give different keys', () => {
    fc.assert(
      fc.property(entropy, entropy, (one, other) => {
        fc.pre(one.some((byte, at) => byte !== other[at]));
        expect(formatApiKey(one).key).not.toBe(formatApiKey(other).key);
      }),
    );
  });

  test('the checksum catches any single mistyped character', () => {
    fc.assert(
      fc.property(entropy, fc.integer({ min: 4, max: 64 }), fc.constantFrom(...'09AZaz-_ '), (bytes, at, character) => {
        const { key } = formatApiKey(bytes);
        fc.pre(at < key.length && key[at] !== character);
        expect(parseApiKey(key.slice(0, at) + character + key.slice(at + 1))).toBeUndefined();
      }),
    );
  });

  test('rejects every other format', () => {
    const { key } = formatApiKey(new Uint8Array(40));
    for (const text of [
      '',
      'svc_',
      key.slice(1),
      `${key} `,
      ` ${key}`,
      `${key}\n`,
      `${key}0`,
      key.toUpperCase(),
      key.replace('svc_', 'svx_'),
    ]) {
      expect(parseApiKey(text), JSON.stringify(text)).toBeUndefined();
    }
    fc.assert(fc.property(fc.string(), (text) => parseApiKey(text) === undefined));
  });

  test('the hint of a key of another format shows four characters', () => {
    expect(hintOf('0123456789abcdef0123456789abcdef')).toBe('0123…');
  });

  test('a bootstrap key is 32 to 256 visible ASCII characters', () => {
    expect(['a'.repeat(32), '!'.repeat(256), `${'x'.repeat(31)}~`].map(isBootstrapKey)).toEqual([true, true, true]);
    expect(
      ['', 'a'.repeat(31), 'a'.repeat(257), `${'a'.repeat(32)} `, `${'a'.repeat(32)}é`, `${'a'.repeat(32)}\n`].map(
        isBootstrapKey,
      ),
    ).toEqual([false, false, false, false, false, false]);
  });

  test('a key is usable until the millisecond it expires or is revoked', () => {
    const key: ApiKey = {
      id: 'k',
      name: 'n',
      digest: 'd' as SecretDigest,
      hint: 'h',
      scopes: ['read'],
      orgId: null,
      createdAtMs: 0,
      createdBy: 'gateway',
      expiresAtMs: null,
      revokedAtMs: null,
      lastUsedAtMs: null,
    };
    expect(isUsable(key, 1e15)).toBe(true);
    expect([999, 1000].map((nowMs) => isUsable({ ...key, expiresAtMs: 1000 }, nowMs))).toEqual([true, false]);
    expect(isUsable({ ...key, revokedAtMs: 5 }, 5)).toBe(false);
  });
});
