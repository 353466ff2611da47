import fc from 'fast-check';
import { expect, test } from 'vitest';
import { emailKeyOf, parseEmail, type EmailAddress } from '../../src/core/email.ts';

test.each([
  ['a@b.c', 'a@b.c'], ['  First.Last+tag@Example.COM\n', 'First.Last+tag@Example.COM'], ['root@localhost', 'root@localhost'],
  ["o'neil@example.com", "o'neil@example.com"], ['zoë@bücher.example', 'zoë@bücher.example'], ['ｆｕｌｌ＠ｗｉｄｔｈ.com', 'full@width.com'],
  ['用户@例子.公司', '用户@例子.公司'], [`${'a'.repeat(64)}@b.c`, `${'a'.repeat(64)}@b.c`], [`a@${'b'.repeat(63)}.c`, `a@${'b'.repeat(63)}.c`],
  [`a@${'bcd.'.repeat(62)}efgh`, `a@${'bcd.'.repeat(62)}efgh`], // 254 characters
])('%j is an address', (text, email) => expect(parseEmail(text)).toBe(email));

test.each([
  '', '@', 'a', 'a@', '@b', 'a b@c.d', 'a@b c', 'a@b@c', '.a@b.c', 'a.@b.c', 'a..b@c.d', 'a@-b.c', 'a@b-.c', 'a@b..c', 'a@.b', 'a@b.',
  'a,b@c.d', 'a@b.c,d@e.f', '<a@b.c>', 'A <a@b.c>', '"a"@b.c', 'a@b.c\r\nBcc: x@y.z', 'a\u0000@b.c', 'a\u202e@b.c', 'a@[127.0.0.1]',
  `${'a'.repeat(65)}@b.c`, `a@${'b'.repeat(64)}.c`, `a@${'bcd.'.repeat(62)}efghi`, 'a'.repeat(1_000_000),
])('%j is none', (text) => expect(parseEmail(text)).toBeUndefined());

test('two ways to write one address have one key', () => {
  const key = (text: string) => emailKeyOf(parseEmail(text)!);
  expect(key('OWNER@Example.com')).toBe('owner@example.com');
  expect(key('Zoe\u0308@example.com')).toBe(key('ZOË@EXAMPLE.COM'));
  expect(key('a@example.com')).not.toBe(key('b@example.com'));
});

test('nothing that is accepted can break out of a mail header, and accepting it again changes nothing', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ unit: 'binary', maxLength: 40 }), (local, domain) => {
    const email = parseEmail(`${local}@${domain}`);
    if (email === undefined) return;
    expect(email).not.toMatch(/[\s\p{C}<>,;:"]/u);
    expect(email.length).toBeLessThanOrEqual(254);
    expect(parseEmail(email)).toBe(email);
    expect(emailKeyOf(emailKeyOf(email) as string as EmailAddress)).toBe(emailKeyOf(email));
  }), { numRuns: 2000 });
});
