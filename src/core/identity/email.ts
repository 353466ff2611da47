/** E-mail addresses: parsed once, kept as written, compared without regard to case (docs/spec.md, Registration). */
import type { Brand } from '../base/ids.ts';

/** Trimmed and NFKC-normalised; free of anything that could end a mail header or start another address. */
export type EmailAddress = Brand<string, 'EmailAddress'>;

/** The form in which addresses are compared: two addresses with the same key count as one. */
export type EmailKey = Brand<string, 'EmailKey'>;

/** RFC 5321's limit on a path, in characters. Checked after normalisation, because NFKC may lengthen a text. */
const MAX_EMAIL_LENGTH = 254;
const MAX_LOCAL_LENGTH = 64;

// Any letters of any script, but none of the characters that mean something in a header or on a terminal.
const LOCAL_PART = /^[^\s\p{C}@"(),:;<>[\]\\.]+(\.[^\s\p{C}@"(),:;<>[\]\\.]+)*$/u;
const DOMAIN_LABEL = /^[\p{L}\p{N}]([\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u;

/** Undefined when the text is not an address. A host without a dot is accepted: private networks have such hosts. */
export function parseEmail(text: string): EmailAddress | undefined {
  // Checked before the normalisation, which is expensive: no real address is this long, but an attacker's may be.
  if (text.length > 4 * MAX_EMAIL_LENGTH) return undefined;
  const email = text.trim().normalize('NFKC');
  if (email.length > MAX_EMAIL_LENGTH) return undefined;
  const at = email.lastIndexOf('@');
  const local = email.slice(0, Math.max(at, 0));
  const labels = email.slice(at + 1).split('.');
  const wellFormed =
    local.length <= MAX_LOCAL_LENGTH && LOCAL_PART.test(local) && labels.every((label) => DOMAIN_LABEL.test(label));
  return wellFormed ? (email as EmailAddress) : undefined;
}

/**
 * Mail goes only to the address on record, never to the one a request named: two addresses may share a key without
 * reaching the same mailbox.
 */
export const emailKeyOf = (email: EmailAddress): EmailKey => email.toLowerCase().normalize('NFKC') as EmailKey;
