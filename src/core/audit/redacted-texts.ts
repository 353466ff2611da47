import { copyOf, cutText } from '../base/text.ts';
import { redactText } from './redact-text.ts';

/** A power of two. */
const PLACES = 1024;
/** In characters: longer texts hardly come again. */
const MAX_KEPT = 256;

/**
 * Redacts actions and resources. The same few come with nearly all checks: they are redacted once, and whoever keeps
 * what this returns keeps one string for all of them. A text takes the place of another whose place is the same.
 */
export class RedactedTexts {
  readonly #texts: string[] = new Array<string>(PLACES).fill('');
  readonly #redacted: string[] = new Array<string>(PLACES).fill('');

  of(text: string): string {
    if (text.length > MAX_KEPT) return redactText(text);
    const at = placeOf(text);
    if (this.#texts[at] === text) return this.#redacted[at]!;
    const own = copyOf(text);
    const redacted = redactText(own);
    this.#texts[at] = own;
    this.#redacted[at] = redacted;
    return redacted;
  }

  /** At most so many characters of it. Redacted before it is cut: of a credential cut in two, a part would be left. */
  cut(text: string, length: number): string {
    const redacted = this.of(text);
    return redacted.length <= length ? redacted : copyOf(cutText(redacted, length));
  }
}

/** The ends of names differ most. */
function placeOf(text: string): number {
  const { length } = text;
  if (length < 4) return length;
  const at = length - 1;
  const last = Math.imul(text.charCodeAt(at), 31) + text.charCodeAt(at - 1);
  const before = Math.imul(text.charCodeAt(at - 2), 31) + text.charCodeAt(length >> 1);
  return (Math.imul(last, 961) + before + Math.imul(length, 37)) & (PLACES - 1);
}
