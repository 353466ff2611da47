/** `matches()` finds what the library finds that its syntax is from. */
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { describe, expect, test } from 'vitest';
import { Pattern } from '../../../src/core/condition/matches.ts';
import { runs } from '../../support/runs.ts';

const steps = () => ({ left: 1e9 });

function found(pattern: string, text: string): unknown {
  const compiled = Pattern.compile(pattern);
  return compiled.ok ? compiled.value.isFoundIn(text, steps()) : compiled.fault;
}

const atoms = fc.constantFrom(
  ...['a', 'b', 'ab', 'k', 's', '.', '\\d', '\\D', '\\w', '\\W', '\\s', '\\S', '[ab]', '[^a]', '[a-c0]', '[^\\w]'],
  ...[
    '^',
    '$',
    '\\b',
    '\\B',
    '\\A',
    '\\z',
    '[[:alpha:]]',
    '[^[:^digit:]-]',
    '[\\W]',
    '[^\\W]',
    '[[:^alpha:]]',
    '[\\P{Lu}]',
    '\\pL',
    '\\p{Greek}',
    '\\P{Lu}',
    '\\x41',
  ],
  ...[
    '\\x{3b1}',
    '\\Qa.b\\E',
    '\\.',
    '\\n',
    '[\\]a-]',
    '[]a]',
    'é',
    '😀',
    '[😀-😂]',
    '{',
    '{,2}',
    '(?i:K)',
    '(?i:[^s])',
  ],
);
const patterns = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    atoms,
    fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => one + other),
    fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => `(?:${one}|${other})`),
    fc
      .tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '*?', '{2}', '{1,3}', '{0,2}?', '{2,}'))
      .map(([one, times]) => `(${one})${times}`),
    fc
      .tuple(fc.constantFrom('(?i)', '(?m)', '(?s)', '(?im-s)', '(?i:', '(?P<name>', '(?<name>'), tie('pattern'))
      .map(([flags, one]) => (flags.endsWith(')') ? `(${flags}${one}|${one})` : `${flags}${one})`)),
  ),
})).pattern;
const texts = fc
  .array(fc.constantFrom(...'aabbckKsSſK019_ .\n-{]αΩé😀😁A'), { maxLength: 12 })
  .map((letters) => letters.join(''));

describe('matches()', () => {
  test('agrees with RE2', () => {
    fc.assert(
      fc.property(patterns, fc.array(texts, { minLength: 1, maxLength: 6 }), (pattern, some) => {
        let known: RE2JS;
        try {
          known = RE2JS.compile(pattern);
        } catch {
          expect(Pattern.compile(pattern).ok).toBe(false);
          return;
        }
        const compiled = Pattern.compile(pattern);
        if (!compiled.ok) {
          expect(compiled.fault).toBe('matches() does not know a negated \\p in brackets where case is ignored');
          return;
        }
        for (const text of some)
          expect([text, compiled.value.isFoundIn(text, steps())]).toEqual([text, known.matcher(text).find()]);
      }),
      { numRuns: runs(500) },
    );
  });

  test.each([
    ['^[a-z0-9._-]+@[a-z]+\\.com$', 'x.y@example.com', true],
    ['(?i)rm\\s+-(rf|fr)', 'sudo RM  -Rf /', true],
    ['\\bsecret\\b', 'secrets', false],
    ['', '', true],
    ['a|', 'b', true],
    ['a$\nb', 'a\nb', false],
    ['(?m)^b$', 'a\nb\nc', true],
  ])('finds %j in %j: %j', (pattern, text, expected) => {
    expect(found(pattern, text)).toBe(expected);
  });

  const ab = (length: number): string => {
    let seed = 1;
    return Array.from({ length }, () => ((seed = (seed * 48_271) % 2_147_483_647) % 2 === 0 ? 'a' : 'b')).join('');
  };

  test.each([
    ['a[ab]{200}[cd]$', ab(8_000)],
    ['[ab]*a[ab]{120}[cd]', ab(8_000)],
    ['(a.{0,60}b.{0,60}){1,4}[cd]', ab(8_000)],
    ['(.{1,20}){1,20}[0-9]$', ab(8_000)],
  ])('%s is given up as soon as it has used the steps of a check', (pattern, text) => {
    const compiled = Pattern.compile(pattern);
    if (!compiled.ok) throw new Error(compiled.fault);
    const left = { left: 1_000_000 };
    const outcome = compiled.value.isFoundIn(text, left);
    // Nothing in between: what it did was counted, whether it came to an end or not.
    if (typeof outcome === 'boolean') expect(left.left).toBeGreaterThanOrEqual(0);
    else {
      expect(outcome.reason).toMatch(/^the conditions of all rules for this check take more than 1000000 steps/);
      expect(left.left).toBeGreaterThan(-20_000);
    }
  });

  test('a text costs a step for each character, and more for what is new to the pattern', () => {
    const compiled = Pattern.compile('^[a-z]+(-[a-z]+)*$');
    if (!compiled.ok) throw new Error(compiled.fault);
    const spentOn = (text: string): number => {
      const left = steps();
      expect(compiled.value.isFoundIn(text, left)).toBe(true);
      return 1e9 - left.left;
    };
    expect(spentOn('some-words-of-it')).toBeLessThan(2_000);
    expect(spentOn('some-words-of-it')).toBe(16 + 8);
    expect(spentOn('some-words-of-it-'.repeat(400).slice(0, -1))).toBe(6_799 + 8);
  });
});
