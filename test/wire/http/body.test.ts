import { expect, test } from 'vitest';
import { readPage } from '../../../src/wire/http/body.ts';

test.each([
  ['', { perPage: 50, cursor: undefined }],
  ['per_page=1', { perPage: 1, cursor: undefined }],
  ['per_page=1000&cursor=abc', { perPage: 1000, cursor: 'abc' }],
  ['cursor=', { perPage: 50, cursor: undefined }],
])('a listing asked with ?%s gives a page of its own size, from the first or from its cursor', (query, page) => {
  expect(readPage(new URLSearchParams(query))).toEqual({ ok: true, value: page });
});

test.each(['0', '1001', '-1', '1.5', 'ten', ''])('a page of %j is refused by name', (perPage) => {
  expect(readPage(new URLSearchParams({ per_page: perPage }))).toEqual({ ok: false, fault: { kind: 'invalid_argument', field: 'per_page', problem: 'must be a whole number from 1 to 1000' } });
});
