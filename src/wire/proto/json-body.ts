/** From the bytes of a body to a JSON value. */
import { isUtf8 } from 'node:buffer';
import { hasMoreMarks, MAX_MARKS } from './json-size.ts';
import { Malformed } from './malformed.ts';

const LONE_SURROGATE = /\p{Cs}/u;

/**
 * Parses a body. Refuses what is not UTF-8, not JSON, holds half a character, or more values than a message at its
 * limits.
 */
export const parseJson = (body: Buffer): unknown => parseJsonText(textOf(body), 0);

/** The text of a body, which must be UTF-8. */
export function textOf(body: Buffer): string {
  const text = body.toString('utf8');
  // Decoding replaces invalid UTF-8 by U+FFFD; only a body that contains one, perhaps legitimately, needs the strict
  // check.
  if (text.includes('\ufffd') && !isUtf8(body)) throw new Malformed('body', 'is not valid UTF-8');
  return text;
}

/** Parses a text that begins at the character `from` of the body. `maxMarks`: as `hasMoreMarks` counts them. */
export function parseJsonText(text: string, from: number, maxMarks = MAX_MARKS): unknown {
  if (hasMoreMarks(text, maxMarks)) throw new Malformed('body', 'has more values than the limits on attributes allow');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // The engine's own message quotes the body, which may hold a credential.
    const position = /at position (\d+)/.exec(String(error))?.[1];
    throw new Malformed(
      'body',
      position === undefined ? 'is not valid JSON' : `is not valid JSON, at character ${from + Number(position)}`,
    );
  }
  // Only an escape can smuggle in half of a surrogate pair, which protobuf cannot carry.
  if (text.includes('\\u')) refuseLoneSurrogates(value);
  return value;
}

function refuseLoneSurrogates(root: unknown): void {
  // Without recursion: nothing has limited the depth yet.
  const waiting = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === 'string') {
      if (LONE_SURROGATE.test(value)) throw new Malformed('body', 'has a string with an unpaired surrogate');
    } else if (Array.isArray(value)) {
      for (const item of value) waiting.push(item);
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) waiting.push(key, item);
    }
  }
}
