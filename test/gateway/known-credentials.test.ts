import { expect, test } from 'vitest';
import type { SecretDigest } from '../../src/core/ids.ts';
import { KnownCredentials } from '../../src/gateway/known-credentials.ts';

const digest = (text: string): SecretDigest => text as SecretDigest;

test('a credential is known with its org from when it was seen to hold until it did not', () => {
  const known = new KnownCredentials();
  expect(known.orgOf(digest('one'))).toBeUndefined();
  known.add(digest('one'), 'acme');
  expect([known.orgOf(digest('one')), known.orgOf(digest('two')), known.orgOf(undefined)]).toEqual(['acme', undefined, undefined]);
  known.forget(digest('one'));
  expect(known.orgOf(digest('one'))).toBeUndefined();
});

test('no more than ten thousand are kept, the latest', () => {
  const known = new KnownCredentials();
  for (let nth = 0; nth <= 10_000; nth += 1) known.add(digest(`agent ${nth}`), 'acme');
  expect([0, 1, 10_000].map((nth) => known.orgOf(digest(`agent ${nth}`)))).toEqual([undefined, 'acme', 'acme']);
});
