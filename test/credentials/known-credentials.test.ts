import { describe, expect, test } from 'vitest';
import type { SecretDigest } from '../../src/core/base/ids.ts';
import { KnownCredentials } from '../../src/credentials/known-credentials.ts';

const digest = (text: string): SecretDigest => text as SecretDigest;

describe('known credentials', () => {
  test('a credential is known with its org from its first success to its refusal', () => {
    const known = new KnownCredentials();
    expect(known.orgOf(digest('one'))).toBeUndefined();
    known.add(digest('one'), 'acme');
    expect({
      orgOne: known.orgOf(digest('one')),
      orgTwo: known.orgOf(digest('two')),
      org: known.orgOf(undefined),
    }).toEqual({ orgOne: 'acme', orgTwo: undefined, org: undefined });
    known.forget(digest('one'));
    expect(known.orgOf(digest('one'))).toBeUndefined();
  });

  test('keeps at most twenty thousand and drops the oldest thousand when full', () => {
    const known = new KnownCredentials();
    for (let nth = 0; nth <= 20_000; nth += 1) known.add(digest(`agent ${nth}`), `org ${nth % 4}`);
    expect([0, 999, 1_000, 20_000].map((nth) => known.orgOf(digest(`agent ${nth}`)))).toEqual([
      undefined,
      undefined,
      'org 0',
      'org 0',
    ]);
  });

  test('an org with ever more agents displaces its own and none of another org', () => {
    const known = new KnownCredentials();
    known.add(digest('of globex'), 'globex');
    for (let nth = 0; nth < 50_000; nth += 1) known.add(digest(`agent ${nth}`), 'acme');
    expect(known.orgOf(digest('of globex'))).toBe('globex');
    expect([39_999, 40_000, 49_999].map((nth) => known.orgOf(digest(`agent ${nth}`)))).toEqual([
      undefined,
      'acme',
      'acme',
    ]);
  });
});
