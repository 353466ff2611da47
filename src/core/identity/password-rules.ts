/**
 * Which passwords are accepted (docs/spec.md, Passwords). There are no composition rules; the most common passwords are
 * refused.
 */
import type { Brand } from '../base/ids.ts';
import { fail, ok, type Result } from '../base/result.ts';

/** NFKC-normalised, so that the same password typed on another keyboard yields the same bytes. */
export type Password = Brand<string, 'Password'>;

export type WeakPassword = { readonly kind: 'weak_password'; readonly problem: string };

/** In code points after normalisation. The upper limit bounds the work a request can cause. */
const PASSWORD_LENGTH = { min: 12, max: 256 } as const;

/** Holds the most common passwords, in lower case. */
export type CommonPasswords = { has(password: string): boolean };

const LONE_SURROGATE = /\p{Surrogate}/u;
// A code point has at most two UTF-16 units, and NFKC shortens no text to less than an eighteenth of its length.
const MAX_RAW_LENGTH = PASSWORD_LENGTH.max * 2 * 18;

/** For a password that is only compared: undefined when no stored one can equal it. */
export function readPassword(text: string): Password | undefined {
  if (text.length > MAX_RAW_LENGTH || LONE_SURROGATE.test(text)) return undefined;
  const password = text.normalize('NFKC');
  return [...password].length <= PASSWORD_LENGTH.max ? (password as Password) : undefined;
}

/** For new passwords. The problem is one sentence for the person who chose it. */
export function acceptPassword(text: string, common: CommonPasswords, email: string): Result<Password, WeakPassword> {
  if (LONE_SURROGATE.test(text)) return weak('the password is not valid Unicode');
  const password = readPassword(text);
  if (password === undefined) return weak(`the password must be at most ${PASSWORD_LENGTH.max} characters long`);
  if ([...password].length < PASSWORD_LENGTH.min)
    return weak(`the password must be at least ${PASSWORD_LENGTH.min} characters long`);
  const folded = password.toLowerCase();
  if (folded === email.toLowerCase()) return weak('the password must not be the e-mail address');
  if (common.has(folded))
    return weak('the password is too common and among the first that attackers try; choose another');
  return ok(password);
}

const weak = (problem: string) => fail({ kind: 'weak_password', problem } as const);
