/** Requests of MCP in the words of policies. */
import { describe, expect, test } from 'vitest';
import type { Fields } from '../../src/mcp/json-rpc.ts';
import { askedBy } from '../../src/mcp/subjects.ts';

describe('a request of MCP', () => {
  const asked = (method: string, params: Fields) => askedBy({ jsonrpc: '2.0', id: 1, method, params });
  const completed = (uri: string) => ({ ref: { type: 'ref/resource', uri }, argument: { name: 'a', value: 'b' } });

  test.each(['file:///a//b.c/..d', 'https://x.example/a.b?c=..', 'note:..', 'file:///{path}'])(
    'names the resource %s as it is',
    (uri) => {
      expect(asked('resources/read', { uri })).toEqual({ kind: 'resource', name: uri, args: {} });
      expect(asked('completion/complete', completed(uri))).toEqual({ kind: 'resource', name: uri, args: { a: 'b' } });
    },
  );

  test.each([
    'file:///repo/../etc/passwd',
    'file:///repo/..',
    'file:///repo/./a',
    'file:///repo/%2e%2E/etc',
    'file:///repo%2f..%2fetc',
    'file:///repo\\..\\etc',
    'file:///repo/..;x/etc',
  ])('may not name one by the steps of %s', (uri) => {
    const refusal = 'the uri must have no "." or ".." steps';
    for (const method of ['resources/read', 'resources/subscribe']) expect(asked(method, { uri })).toBe(refusal);
    expect(asked('completion/complete', completed(uri))).toBe(refusal);
  });
});
