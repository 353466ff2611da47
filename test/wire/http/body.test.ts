import { expect, test } from 'vitest';
import { readPage, readTime } from '../../../src/wire/http/body.ts';

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

test.each([
  ['2026-02-28T12:00:00Z', 1772280000000],
  ['2024-02-29T12:00:00+02:00', 1709200800000],
  ['2026-01-31t12:00:00.5z', 1769860800500],
])('a time of %s is understood', (text, ms) => {
  expect(readTime(new URLSearchParams({ since: text }), 'since')).toEqual({ ok: true, value: ms });
});

test.each(['2026-02-30T00:00:00Z', '2026-02-29T00:00:00Z', '2026-04-31T00:00:00Z', '2026-00-01T00:00:00Z', '2026-01-01', '2026-01-01T00:00Z', 'yesterday'])('a time of %s, which is on no calendar or not whole, is refused by name', (text) => {
  expect(readTime(new URLSearchParams({ since: text }), 'since')).toMatchObject({ ok: false, fault: { kind: 'invalid_argument', field: 'since' } });
});
