import { copyOf, cutText } from '../base/text.ts';
import { redactText } from './redact-text.ts';

/** A power of two. */
const PLACES = 1024;
/** In characters: longer texts hardly come again. */
const MAX_KEPT = 256;

/**
 * Redacts actions and resources. The same few come with nearly all checks: they are redacted once, and callers that
 * keep the result keep one string for all of them. A text is remembered when it comes for the second time, because most
 * that come once never come again; it takes the place of another whose place is the same.
 */
export class RedactedTexts {
  readonly #texts: string[] = new Array<string>(PLACES).fill('');
  readonly #redacted: string[] = new Array<string>(PLACES).fill('');
  /** The marks of the texts that came last and were not remembered. */
  readonly #marks = new Int32Array(PLACES);
  // A check asks for the same text more than once.
  #last = '';
  #lastRedacted = '';

  of(text: string): string {
    if (text !== this.#last) {
      this.#lastRedacted = this.#find(text);
      this.#last = text;
    }
    return this.#lastRedacted;
  }

  #find(text: string): string {
    if (text.length > MAX_KEPT) return redactText(text);
    const mark = markOf(text);
    const at = mark & (PLACES - 1);
    if (this.#texts[at] === text) return this.#redacted[at]!;
    const own = copyOf(text);
    const redacted = redactText(own);
    if (this.#marks[at] === mark) {
      this.#texts[at] = own;
      this.#redacted[at] = redacted;
    } else {
      this.#marks[at] = mark;
    }
    return redacted;
  }

  /** At most so many characters of it. Redacted before it is cut: of a credential cut in two, a part would be left. */
  cut(text: string, length: number): string {
    const redacted = this.of(text);
    return redacted.length <= length ? redacted : copyOf(cutText(redacted, length));
  }
}

/** The ends of names differ most. */
function markOf(text: string): number {
  const { length } = text;
  if (length < 4) return length;
  const at = length - 1;
  const last = Math.imul(text.charCodeAt(at), 31) + text.charCodeAt(at - 1);
  const before = Math.imul(text.charCodeAt(at - 2), 31) + text.charCodeAt(length >> 1);
  return (Math.imul(last, 961) + before + Math.imul(length, 37)) | 0;
}
