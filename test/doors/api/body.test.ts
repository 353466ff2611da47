import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readPage, readTime, time } from '../../../src/doors/api/body.ts';
import type { Authorized, HttpReply, Route } from '../../../src/doors/engine/route.ts';
import { readBody } from '../../../src/doors/shared/input.ts';
import type { Link } from '../../../src/use-cases/use-cases.ts';
import { nameOf, ROWS } from '../../support/routes.ts';

describe('body', () => {
  test.each([
    ['', { perPage: 50, cursor: undefined }],
    ['per_page=1', { perPage: 1, cursor: undefined }],
    ['per_page=1000&cursor=abc', { perPage: 1000, cursor: 'abc' }],
    ['cursor=', { perPage: 50, cursor: undefined }],
  ])('a listing with ?%s returns a page of its own size, first or from a cursor', (query, page) => {
    expect(readPage(new URLSearchParams(query))).toEqual({ ok: true, value: page });
  });

  test.each(['0', '1001', '-1', '1.5', 'ten', ''])('a page of %j is refused by name', (perPage) => {
    expect(readPage(new URLSearchParams({ per_page: perPage }))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'per_page', problem: 'must be a whole number from 1 to 1000' },
    });
  });

  test.each([
    ['2026-02-28T12:00:00Z', 1772280000000],
    ['2024-02-29T12:00:00+02:00', 1709200800000],
    ['2026-01-31t12:00:00.5z', 1769860800500],
    ['9999-12-31T23:59:59.999Z', 253402300799999],
  ])('a time of %s is accepted, in a query and in a body', (text, ms) => {
    expect(readTime(new URLSearchParams({ since: text }), 'since')).toEqual({ ok: true, value: ms });
    expect(readBody(z.strictObject({ expires_at: time }), { expires_at: text })).toEqual({
      ok: true,
      value: { expires_at: ms },
    });
  });

  test.each([
    '2026-02-30T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-01-01',
    '2026-01-01T00:00Z',
    'yesterday',
    '2026-01-31T24:00:00Z',
    '2026-01-31T12:00:00+24:00',
    '9999-12-31T23:59:59-01:00',
    '0000-01-01T00:00:00+01:00',
  ])('an impossible time of %s is refused by name, in a query and in a body', (text) => {
    const problem = 'must be an RFC 3339 time such as 2026-01-31T12:00:00Z';
    expect(readTime(new URLSearchParams({ since: text }), 'since')).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'since', problem },
    });
    expect(readBody(z.strictObject({ expires_at: time }), { expires_at: text })).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'expires_at', problem },
    });
  });

  test('a time whose + was not escaped is refused with how to write it', () => {
    expect(readTime(new URLSearchParams('since=2026-01-31T12:00:00+02:00'), 'since')).toEqual({
      ok: false,
      fault: {
        kind: 'invalid_argument',
        field: 'since',
        problem: 'must be an RFC 3339 time such as 2026-01-31T12:00:00Z; in a URL, write + as %2B',
      },
    });
    expect(readTime(new URLSearchParams('since=2026-01-31T12:00:00%2B02:00'), 'since')).toEqual({
      ok: true,
      value: 1769853600000,
    });
  });

  function bodyOf(row: string): z.ZodType {
    const body = ROWS.find((route) => nameOf(route) === row)?.body;
    if (body === undefined) throw new Error(`no body of ${row}`);
    return body;
  }

  const AGENT = { team_id: 'search', agent_id: 'a' };
  const NULL_AGENT = { ...AGENT, org_id: null };

  test.each<[row: string, left: object, nulls: object]>([
    ['post /api/v1/auth/token', {}, { scopes: null }],
    [
      'post /api/v1/iam/api-keys',
      { name: 'ci', scopes: ['read'] },
      { name: 'ci', scopes: ['read'], org_id: null, expires_at: null },
    ],
    ['post /api/v1/auth/login', { email: 'e', password: 'p' }, { email: 'e', password: 'p', remember_me: null }],
    ['post /api/v1/auth/invite', { email: 'e' }, { email: 'e', role: null, org_id: null }],
    [
      'post /api/v1/ops',
      { op_id: 't:s', agent: AGENT },
      { op_id: 't:s', trace_id: null, span_id: null, agent: NULL_AGENT },
    ],
    [
      'post /api/v1/ops',
      { trace_id: 't', span_id: 's', agent: AGENT },
      { op_id: null, trace_id: 't', span_id: 's', agent: NULL_AGENT },
    ],
    ['post /api/v1/agents', { agent: AGENT }, { agent: NULL_AGENT, credential_token: null, parent: null }],
    [
      'post /api/v1/usage',
      { agent: AGENT, cost_usd: 1 },
      { agent: NULL_AGENT, cost_usd: 1, op_id: null, usage_id: null },
    ],
    [
      'post /api/v1/policies/explain',
      { agent: AGENT, action: 'a' },
      { agent: NULL_AGENT, caller: null, action: 'a', resource: null, attributes: null, estimated_cost_usd: null },
    ],
  ])('%s accepts null for an optional field as if it were absent', (row, left, nulls) => {
    const body = bodyOf(row);
    const read = readBody(body, left);
    expect(read.ok).toBe(true);
    expect(readBody(body, nulls)).toEqual(read);
  });

  test('every optional field of the API may be null, and no other', () => {
    const properties = (schema: any, path: string): string[] =>
      Object.entries<any>(schema.properties ?? {}).flatMap(([field, inner]) => {
        const takesNull =
          [inner.type].flat().includes('null') || (inner.anyOf ?? []).some((each: any) => each.type === 'null');
        const isOptional = !(schema.required ?? []).includes(field);
        return [...(takesNull === isOptional ? [] : [`${path}.${field}`]), ...properties(inner, `${path}.${field}`)];
      });
    expect(
      ROWS.flatMap((row) =>
        row.body === undefined
          ? []
          : properties(z.toJSONSchema(row.body, { io: 'input', unrepresentable: 'any' }), nameOf(row)),
      ),
    ).toEqual([]);
  });

  test('null for a required field is refused by name', () => {
    const body = bodyOf('post /api/v1/usage');
    expect(readBody(body, { agent: null, cost_usd: 1 })).toMatchObject({ ok: false, fault: { field: 'agent' } });
    expect(readBody(body, { agent: { ...AGENT, team_id: null }, cost_usd: 1 })).toMatchObject({
      ok: false,
      fault: { field: 'agent.team_id', problem: 'must be a string' },
    });
    expect(readBody(body, { agent: AGENT, cost_usd: 1, nothing: null })).toMatchObject({
      ok: false,
      fault: { field: 'nothing', problem: 'unknown field' },
    });
  });

  test('a time of another type is refused with an example', () => {
    const body = bodyOf('post /api/v1/iam/api-keys');
    expect(readBody(body, { name: 'ci', scopes: ['read'], expires_at: 1_795_517_557 })).toEqual({
      ok: false,
      fault: {
        kind: 'invalid_argument',
        field: 'expires_at',
        problem: 'must be an RFC 3339 time such as 2026-01-31T12:00:00Z',
      },
    });
  });

  /** The answer of a row if the rest of the gateway must not be asked for it. */
  function answerOf(
    row: Route,
    { body, query = '' }: { readonly body?: unknown; readonly query?: string },
  ): Promise<HttpReply> {
    const ask = (): never => {
      throw new Error('asked');
    };
    const request: Authorized = {
      params: { team_id: 'search', agent_id: 'a' },
      query: new URLSearchParams(query),
      headers: new Map(),
      body,
      remoteAddress: '192.0.2.1',
      bearer: 'k',
      caller: { cancelled: false },
      principal: { subject: 'key:k', scopes: ['admin'], orgId: null },
    };
    return (row.handle as (request: Authorized, link: Link) => Promise<HttpReply>)(request, { ask, call: ask });
  }

  test.each(
    ROWS.filter(({ access, body }) => body !== undefined && access !== 'agent').map(
      (row) => [nameOf(row), row] as const,
    ),
  )('%s refuses a body that does not fit without running anything', async (_name, row) => {
    expect(await answerOf(row, { body: 'text' })).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'body', problem: 'must be a JSON object' },
    });
    expect(await answerOf(row, { body: { nothing: 1 } })).toMatchObject({
      ok: false,
      fault: { kind: 'invalid_argument' },
    });
  });

  const UNFIT: Readonly<Record<string, string>> = {
    per_page: '0',
    state: 'idle',
    event_type: 'Nothing',
    decision: 'maybe',
    since: 'yesterday',
    until: 'tomorrow',
    format: 'xml',
  };

  test.each(
    ROWS.flatMap((row) =>
      (row.query ?? []).filter((name) => name in UNFIT).map((name) => [nameOf(row), name, row] as const),
    ),
  )('%s refuses a %s that does not fit by its name, without running anything', async (_name, name, row) => {
    expect(await answerOf(row, { query: `${name}=${UNFIT[name]}` })).toMatchObject({
      ok: false,
      fault: { kind: 'invalid_argument', field: name },
    });
  });

  test.each(['post /api/v1/auth/token', 'post /api/v1/iam/api-keys'])(
    '%s refuses a list of more scopes than exist without reading them',
    (row) => {
      const scopes: unknown[] = [];
      let looks = 0;
      for (let at = 0; at < 4; at += 1)
        Object.defineProperty(scopes, at, {
          enumerable: true,
          get: () => {
            looks += 1;
            return 'none';
          },
        });
      const read = readBody(bodyOf(row), { name: 'ci', scopes });
      expect(read).toEqual({
        ok: false,
        fault: {
          kind: 'invalid_argument',
          field: 'scopes',
          problem: 'must be a list of read, write, admin, each at most once',
        },
      });
      expect(looks).toBe(0);
    },
  );

  test("quotes only the beginning of an unknown field's name", () => {
    const read = readBody(z.strictObject({}), { ['k'.repeat(1_000_000)]: 1 });
    expect(read).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'k'.repeat(64), problem: 'unknown field' },
    });
  });
});
