/** The keys that a person presses, one by one, as they are pressed. */

export type Key =
  | { readonly name: 'text'; readonly text: string }
  | { readonly name: 'enter' | 'escape' | 'up' | 'down' | 'backspace' | 'clear' | 'interrupt' | 'suspend' };

const SEQUENCE = /\u001b\[([0-9;?]*)[ -/]*([@-~])|\u001bO(.)|[\s\S]/gu;
const PASTE = /^20[01]$/;

const NAMES: Readonly<Record<string, Exclude<Key['name'], 'text'>>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\u001b': 'escape',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0015': 'clear',
  '\u0003': 'interrupt',
  '\u0004': 'interrupt',
  '\u001a': 'suspend',
};
const ARROWS: Readonly<Record<string, 'up' | 'down'>> = { A: 'up', B: 'down' };

/** The keys of one reading. Pasted characters are text, line breaks and all: it presses no keys. */
export function keysIn(chunk: string): readonly Key[] {
  const keys: Key[] = [];
  let isPasted = false;
  for (const [sequence, parameters, last, ofKeypad] of chunk.matchAll(SEQUENCE)) {
    if (last === '~' && PASTE.test(parameters ?? '')) isPasted = parameters === '200';
    else if (isPasted) keys.push({ name: 'text', text: sequence < ' ' ? ' ' : sequence });
    else if (last !== undefined || ofKeypad !== undefined) {
      const arrow = ARROWS[last ?? ofKeypad ?? ''];
      if (arrow !== undefined) keys.push({ name: arrow });
    } else {
      const name = NAMES[sequence];
      if (name !== undefined) keys.push({ name });
      else if (sequence >= ' ') keys.push({ name: 'text', text: sequence });
    }
  }
  return keys;
}

const PASTE_MARKED = '\u001b[?2004h';
const PASTE_UNMARKED = '\u001b[?2004l';

/** Until the function that it returns is called, for the first time. */
export function readKeys(onKey: (key: Key) => void): () => void {
  const { stdin, stdout } = process;
  const take = (chunk: string): void => {
    for (const key of keysIn(chunk)) onKey(key);
  };
  const gone = (): void => onKey({ name: 'interrupt' });
  stdin.setRawMode(true);
  stdin.setEncoding('utf8').on('data', take).on('end', gone).resume();
  stdout.write(PASTE_MARKED);
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    stdout.write(PASTE_UNMARKED);
    stdin.off('data', take).off('end', gone);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
