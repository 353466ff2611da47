/**
 * Whatever comes from the gateway becomes a text node or an attribute, never markup, and nothing in it hides or moves
 * its neighbours: an agent may call itself `<img onerror=…>` or `\u202efdp.exe`, and is shown under that name.
 */

// C0 and C1 controls but for the line break, marks of writing direction, zero-width characters and invisible tags, line
// and paragraph separators, half surrogates: the same that the command line escapes.
const UNSEEN =
  /(?!\n)[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

const escaped = (unseen: string): string =>
  Array.from({ length: unseen.length }, (_, at) => `\\u${unseen.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
    '',
  );

export const visible = (text: string): string => text.replace(UNSEEN, escaped);
