import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGlob } from '../../../src/core/policy/glob.ts';
import { runs } from '../../support/runs.ts';

describe('policy glob', () => {
  test.each([
    ['web_*', 'web_search', true],
    ['web_*', 'web_', true],
    ['web_*', 'a web_search', false],
    ['*', '', true],
    ['**', 'anything', true],
    ['tool.call', 'tool.call', true],
    ['tool.call', 'toolxcall', false],
    ['tool.call', 'Tool.call', false],
    ['*.example.com', 'www.example.com', true],
    ['*.example.com', 'example.com', false],
    ['/repo/*.md', '/repo/docs/a/b.md', true],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['a?c', 'a😀c', true],
    ['??', '😀', false],
    ['?*?', 'a', false],
    ['*?', '😀', true],
    ['*ab*ab', 'xabab', true],
    ['*ab*ab', 'xab', false],
    ['(a+)+$', '(a+)+$', true],
    ['', '', true],
  ])('the pattern %s against %j: %s', (pattern, text, expected) => {
    expect(compileGlob(pattern).matches(text)).toBe(expected);
  });

  /** The plain definition, exponential and obviously right. */
  function naive(pattern: readonly string[], text: readonly string[]): boolean {
    const [head, ...rest] = pattern;
    if (head === undefined) return text.length === 0;
    if (head === '*') return naive(rest, text) || (text.length > 0 && naive(pattern, text.slice(1)));
    return text.length > 0 && (head === '?' || head === text[0]) && naive(rest, text.slice(1));
  }

  test('a pattern matches what its definition says, on any input', () => {
    const letter = fc.constantFrom('a', 'b', '😀');
    const symbols = fc.array(fc.oneof(letter, fc.constantFrom('*', '?')), { maxLength: 8 });
    fc.assert(
      fc.property(symbols, fc.array(letter, { maxLength: 8 }), (pattern, text) => {
        expect(compileGlob(pattern.join('')).matches(text.join(''))).toBe(naive(pattern, text));
      }),
      { numRuns: runs(1_500) },
    );
  });

  test.each(['*a*a*a*a*b', '*?a*?a*?a*?b', `${'a*'.repeat(200)}b`, `*${'a?'.repeat(100)}b`])(
    'the hostile pattern %s is decided on 100,000 characters',
    (pattern) => {
      const glob = compileGlob(pattern);
      expect(glob.matches('a'.repeat(100_000))).toBe(false);
    },
  );
});
