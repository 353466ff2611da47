import { describe, expect, test } from 'vitest';
import { bearerOf } from '../../../src/doors/rpc/bearer.ts';

describe('bearer', () => {
  test.each([
    ['Bearer svc_key', 'svc_key'],
    ['bearer   svc_key ', 'svc_key'],
    ['BEARER a.b.c', 'a.b.c'],
    ['', undefined],
    ['Bearer', undefined],
    ['Bearer ', undefined],
    ['Basic svc_key', undefined],
    ['Bearersvc_key', undefined],
    ['Bearer two words', undefined],
    ['Bearer one, Bearer other', undefined],
  ])('the credential of %j is %j', (authorization, credential) => {
    expect(bearerOf(authorization)).toBe(credential);
  });
});
