import { mappingIn } from '../core/base/mapping.ts';

/** A line of the log for the person at a terminal; programs read it as JSON. */

const COLOUR: Readonly<Record<string, number>> = { debug: 2, info: 32, warn: 33, error: 31 };
/** Whatever moves a cursor, colours, renames a window or reorders letters. */
const UNSAFE = /[\p{C}\u2028\u2029]/gu;

const escaped = (text: string): string =>
  text.replace(UNSAFE, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`);

/** A word as it is, anything else as JSON, so that its end can be seen. */
function valueText(value: unknown): string {
  const text = typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  return escaped(text);
}

/** `12:00:00.000 WARN  the policies were not reloaded  file=policies.yaml`; what is no such line stays as it is. */
export function logText(line: string, isColoured: boolean): string {
  const entry = mappingIn(line);
  if (entry === undefined) return line;
  const { level, time, msg, ...fields } = entry;
  const word = String(level).toUpperCase().padEnd(5);
  const colour = isColoured ? COLOUR[String(level)] : undefined;
  return `${[
    `${String(time).slice(11, 23)} ${colour === undefined ? word : `\u001b[${colour}m${word}\u001b[0m`} ${escaped(String(msg))}`,
    ...Object.entries(fields).map(([name, value]) => `${name}=${valueText(value)}`),
  ].join('  ')}\n`;
}
