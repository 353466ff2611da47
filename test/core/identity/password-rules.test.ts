import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadCommonPasswords } from '../../../src/accounts/common-passwords.ts';
import { acceptPassword, readPassword } from '../../../src/core/identity/password-rules.ts';

const common = loadCommonPasswords();
const problemOf = (password: string): string | undefined => {
  const result = acceptPassword(password, common, 'owner@example.com');
  return result.ok ? undefined : result.fault.problem;
};

describe('password rules', () => {
  test.each([
    'correct horse battery',
    'aB3$xY9!kL2#',
    `${'\u{1f600}'.repeat(3)}neun Zeichen`,
    'пароль из двенадцати слов',
    'supernatural chess',
    ' twelve blank ',
    `${'long '.repeat(51)}!`,
    'x'.repeat(12),
    'é'.repeat(256),
    'dragon123456',
  ])('%j is accepted', (password) => expect(problemOf(password)).toBeUndefined());

  test.each([
    ['', 'the password must be at least 12 characters long'],
    ['elevenchars', 'the password must be at least 12 characters long'],
    ['\u{1f600}'.repeat(11), 'the password must be at least 12 characters long'],
    ['x'.repeat(200) + 'y'.repeat(57), 'the password must be at most 256 characters long'],
    ['a'.repeat(1_000_000), 'the password must be at most 256 characters long'],
    ['not unicode \ud800', 'the password is not valid Unicode'],
    ['Owner@Example.com', 'the password must not be the e-mail address'],
  ])('%.40j is refused with its reason', (password, problem) => expect(problemOf(password)).toBe(problem));

  test.each([
    '1qaz2wsx3edc',
    'Administrator',
    'password1234',
    'passwordpassword',
    '123456789012',
    'QwertyUiop123',
    'ｐａｓｓｗｏｒｄ1234',
  ])('%s is among the most common ones', (password) =>
    expect(problemOf(password)).toBe(
      'the password is too common and among the first that attackers try; choose another',
    ),
  );

  test("refuses the e-mail address as a password in either's spelling", () => {
    expect(acceptPassword('owner@example.com', common, 'Owner@Example.com')).toEqual({
      ok: false,
      fault: { kind: 'weak_password', problem: 'the password must not be the e-mail address' },
    });
  });

  test('text that is not Unicode matches no password', () =>
    expect(readPassword('not unicode \ud800')).toBeUndefined());

  test('length is counted in characters after normalisation', () => {
    expect(problemOf('e\u0301'.repeat(8))).toBe('the password must be at least 12 characters long');
    expect(
      problemOf(
        '\u{1f600}\u{1f601}\u{1f602}\u{1f603}\u{1f604}\u{1f605}\u{1f606}\u{1f607}\u{1f608}\u{1f609}\u{1f60a}\u{1f60b}',
      ),
    ).toBeUndefined();
  });

  test('an accepted password reads back as the same one in every normalisation', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 8, maxLength: 300, size: 'max' }), (text) => {
        const accepted = acceptPassword(text, new Set(), 'owner@example.com');
        if (!accepted.ok) return;
        for (const form of ['NFC', 'NFD', 'NFKC', 'NFKD'])
          expect(readPassword(text.normalize(form))).toBe(accepted.value);
      }),
    );
  });
});
