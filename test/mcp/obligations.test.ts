import { describe, expect, test } from 'vitest';
import { enforceOnArguments, enforceOnResult, obligationsIn } from '../../src/core/check/obligations.ts';

const redact = (...paths: string[]) => ({ id: 'r', type: 'redact', properties: { paths } });
const set = (path: string, value: unknown) => ({ id: 's', type: 'set', properties: { path, value } });
const cap = (path: string, max: unknown) => ({ id: 'c', type: 'cap', properties: { path, max } });

describe('obligations', () => {
  test('an answer without any, or of an older gateway, has none', () => {
    expect(obligationsIn(undefined)).toEqual([]);
    expect(obligationsIn([{ id: 'a', type: 'redact', properties: { paths: ['x'] } }])).toEqual([
      { id: 'a', type: 'redact', properties: { paths: ['x'] } },
    ]);
  });

  test('arguments are redacted, set and capped by their paths', () => {
    const args = { to: 'bob', amount: 500, note: { text: 'secret' }, limit: '900' };
    const { ok, value } = enforceOnArguments(args, [
      redact('note.text', 'missing'),
      set('currency', 'USD'),
      set('meta.source', 'svc'),
      cap('amount', 100),
      cap('limit', 100),
    ]) as { ok: true; value: object };
    expect(ok).toBe(true);
    expect(value).toEqual({
      to: 'bob',
      amount: 100,
      note: { text: '[redacted]' },
      limit: 100,
      currency: 'USD',
      meta: { source: 'svc' },
    });
    expect(args.amount).toBe(500);
  });

  test('paths of the result do not touch the arguments, nor the other way round', () => {
    expect(enforceOnArguments({ result: { a: 1 }, b: 2 }, [redact('result.a')])).toEqual({
      ok: true,
      value: { result: { a: 1 }, b: 2 },
    });
    expect(enforceOnResult({ b: 2 }, [redact('b')])).toEqual({ ok: true, value: { b: 2 } });
  });

  test('hide a value of a structured result in its text, too', () => {
    const people = { people: [{ name: 'Ann', email: 'ann@example.com' }], total: 120 };
    const result = { content: [{ type: 'text', text: JSON.stringify(people) }], structuredContent: people };
    const enforced = enforceOnResult(result, [
      redact('result.structuredContent.people.email'),
      cap('result.structuredContent.total', 50),
    ]);
    const hidden = { people: [{ name: 'Ann', email: '[redacted]' }], total: 50 };
    expect(enforced).toEqual({
      ok: true,
      value: { content: [{ type: 'text', text: JSON.stringify(hidden) }], structuredContent: hidden },
    });
  });

  test('a result that is JSON in a text is edited by the names in it', () => {
    const result = {
      content: [
        { type: 'text', text: '{"email":"ann@example.com"}' },
        { type: 'text', text: 'plain' },
      ],
    };
    expect(enforceOnResult(result, [redact('result.email')])).toEqual({
      ok: true,
      value: {
        content: [
          { type: 'text', text: '{"email":"[redacted]"}' },
          { type: 'text', text: 'plain' },
        ],
      },
    });
  });

  test('a path without structuredContent is of the structured result and of its text', () => {
    const people = { people: [{ email: 'ann@example.com' }], total: 9 };
    const hidden = { people: [{ email: '[redacted]' }], total: 5 };
    const result = { content: [{ type: 'text', text: JSON.stringify(people) }], structuredContent: people };
    expect(enforceOnResult(result, [redact('result.people.email'), cap('result.total', 5)])).toEqual({
      ok: true,
      value: { content: [{ type: 'text', text: JSON.stringify(hidden) }], structuredContent: hidden },
    });
  });

  test.each([
    [
      'a resource',
      {
        contents: [
          { uri: 'a', text: '{"email":"ann"}' },
          { uri: 'b', blob: 'xx' },
        ],
      },
    ],
    ['an embedded resource', { content: [{ type: 'resource', resource: { uri: 'a', text: '[{"email":"ann"}]' } }] }],
    ['a prompt', { messages: [{ role: 'user', content: { type: 'text', text: '{"email":"ann"}' } }] }],
  ])('the text of %s is edited as JSON, too', (_, result) => {
    const enforced = enforceOnResult(result, [redact('result.email')]);
    expect(JSON.stringify(enforced)).toContain('[redacted]');
    expect(JSON.stringify(enforced)).not.toContain('ann');
  });

  test('names of the answer itself are not looked for in its texts', () => {
    const result = { content: [{ type: 'text', text: '{"content":"mine","isError":true}' }] };
    expect(enforceOnResult(result, [set('result.isError', false)])).toEqual({
      ok: true,
      value: { ...result, isError: false },
    });
  });

  test('a whole text is redacted by its place', () => {
    const result = { content: [{ type: 'text', text: 'the key is 1234' }] };
    expect(enforceOnResult(result, [redact('result.content.0.text')])).toEqual({
      ok: true,
      value: { content: [{ type: 'text', text: '[redacted]' }] },
    });
  });

  test.each([
    ['an unknown type', { id: 'x', type: 'encrypt', properties: {} }, 'obligation x has the type encrypt'],
    ['no path', { id: 'x', type: 'redact', properties: {} }, 'obligation x names no path'],
    ['no number', cap('a', 'ten'), 'obligation c has no number'],
  ])('cannot be met by leaving out one with %s', (_, obligation, problem) => {
    const enforced = enforceOnArguments({ a: 1 }, [obligation]);
    expect(enforced).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
  });

  test('a member named __proto__ is a member like any other', () => {
    const enforced = enforceOnArguments({}, [set('__proto__.admin', true)]);
    expect(JSON.stringify((enforced as { value: unknown }).value)).toBe('{"__proto__":{"admin":true}}');
    expect(({} as { admin?: unknown }).admin).toBeUndefined();
  });
});
