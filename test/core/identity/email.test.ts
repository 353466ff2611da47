import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type EmailAddress, emailKeyOf, parseEmail } from '../../../src/core/identity/email.ts';
import { CODE_POINT } from '../../support/code-point.ts';
import { runs } from '../../support/runs.ts';

describe('email', () => {
  test.each([
    ['a@b.c', 'a@b.c'],
    ['  First.Last+tag@Example.COM\n', 'First.Last+tag@Example.COM'],
    ['root@localhost', 'root@localhost'],
    ["o'neil@example.com", "o'neil@example.com"],
    ['zoë@bücher.example', 'zoë@bücher.example'],
    ['ｆｕｌｌ＠ｗｉｄｔｈ.com', 'full@width.com'],
    ['用户@例子.公司', '用户@例子.公司'],
    [`${'a'.repeat(64)}@b.c`, `${'a'.repeat(64)}@b.c`],
    [`a@${'b'.repeat(63)}.c`, `a@${'b'.repeat(63)}.c`],
    [`a@${'bcd.'.repeat(62)}efgh`, `a@${'bcd.'.repeat(62)}efgh`], // 254 characters
  ])('%j is an address', (text, email) => expect(parseEmail(text)).toBe(email));

  test.each([
    '',
    '@',
    'a',
    'a@',
    '@b',
    'a b@c.d',
    'a@b c',
    'a@b@c',
    '.a@b.c',
    'a.@b.c',
    'a..b@c.d',
    'a@-b.c',
    'a@b-.c',
    'a@b..c',
    'a@.b',
    'a@b.',
    'a,b@c.d',
    'a@b.c,d@e.f',
    '<a@b.c>',
    'A <a@b.c>',
    '"a"@b.c',
    'a@b.c\r\nBcc: x@y.z',
    'a\u0000@b.c',
    'a\u202e@b.c',
    'a@[127.0.0.1]',
    `${'a'.repeat(65)}@b.c`,
    `a@${'b'.repeat(64)}.c`,
    `a@${'bcd.'.repeat(62)}efghi`,
    'a'.repeat(1_000_000),
  ])('%j is not an address', (text) => expect(parseEmail(text)).toBeUndefined());

  test('two spellings of one address have one key', () => {
    const key = (text: string) => emailKeyOf(parseEmail(text)!);
    expect(key('OWNER@Example.com')).toBe('owner@example.com');
    expect(key('Zoe\u0308@example.com')).toBe(key('ZOË@EXAMPLE.COM'));
    expect(key('a@example.com')).not.toBe(key('b@example.com'));
  });

  test('an accepted address cannot break out of a mail header and parses to itself', () => {
    // Mostly letters, so that many are accepted; now and then a character that must not be.
    const letter = fc.oneof(
      { weight: 40, arbitrary: fc.constantFrom('a', 'Z', '0', 'ä', 'e\u0301') },
      { weight: 4, arbitrary: fc.constantFrom('.', '-', '+', '_') },
      { weight: 1, arbitrary: fc.string({ unit: CODE_POINT, minLength: 1, maxLength: 1 }) },
    );
    const text = fc.string({ unit: letter, minLength: 1, maxLength: 300, size: 'max' });
    const short = fc.string({ unit: letter, minLength: 1, maxLength: 20 });
    let accepted = 0;
    fc.assert(
      fc.property(
        fc.oneof({ weight: 4, arbitrary: short }, text),
        fc.oneof({ weight: 4, arbitrary: short }, text),
        (local, domain) => {
          const email = parseEmail(`${local}@${domain}.example`);
          if (email === undefined) return;
          accepted += 1;
          expect(email).not.toMatch(/[\s\p{C}<>,;:"]/u);
          expect(email.length).toBeLessThanOrEqual(254);
          expect(parseEmail(email)).toBe(email);
          expect(emailKeyOf(emailKeyOf(email) as string as EmailAddress)).toBe(emailKeyOf(email));
        },
      ),
      { numRuns: runs(500) },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});
