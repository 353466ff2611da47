/** Inputs that are almost right: valid examples, changed by random numbers in ways that parsers get wrong. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const MARKS = [...'{}[]()<>"\'`,:;.?!&|=+-*/%\\@#$^~_ \t\n\r\0'];
const TEXTS = [
  '',
  ' ',
  '\0',
  '\u200b',
  '\u202e',
  '\ud800',
  '\udfff',
  'é',
  'e\u0301',
  '𐍈',
  '__proto__',
  'constructor',
  'toString',
  '../..',
  '%00',
  '%ff',
  '%',
  '\r\n\r\n',
  '-',
  '*',
  '**?*',
  'a'.repeat(300),
  'null',
  'true',
  'NaN',
  'Infinity',
  '-0',
  '1e309',
  '9007199254740993',
  '-9223372036854775808',
  '18446744073709551616',
  '0x10',
  '2026-02-30T25:61:61Z',
  '9999-12-31T23:59:59.999999999Z',
  '0000-01-01T00:00:00+24:00',
  'P1Y',
  '99999999999h',
  '!!js/function',
  '&a [*a]',
  '<<: *a',
  '# ',
  '--- ',
  'Bearer ',
  'eyJ',
];
const NUMBERS = [0, -0, 1, -1, 0.1, 1e-7, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 53, 2 ** 53 + 2, 1e21, 1e308, -1e308];

export class Mutator {
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  isOdds(odds: number): boolean {
    return this.#random() < odds;
  }

  /** How many are changed: mostly one, or all would be nonsense. */
  #places(): number {
    return this.isOdds(0.7) ? 1 : this.below(5);
  }

  /** Returns an example, or the beginning of one with the end of another, changed in a few places. */
  text(examples: readonly string[], words: readonly string[] = []): string {
    let text = this.of(examples);
    if (this.isOdds(0.2)) text = spliced(text, this.of(examples), this.#random);
    for (let left = this.#places(); left > 0; left -= 1) text = this.#changed(text, words);
    return text;
  }

  #changed(text: string, words: readonly string[]): string {
    const from = this.below(text.length + 1);
    const to = Math.min(text.length, from + this.below(8));
    switch (this.below(7)) {
      case 0:
        return text.slice(0, from) + this.of(MARKS) + text.slice(from);
      case 1:
        return text.slice(0, from) + text.slice(to);
      case 2:
        return text.slice(0, from) + this.of(words.length > 0 && this.isOdds(0.6) ? words : TEXTS) + text.slice(to);
      case 3:
        return (
          text.slice(0, from) + String.fromCharCode(this.below(this.isOdds(0.8) ? 0x100 : 0x10000)) + text.slice(to)
        );
      case 4:
        return (
          text.slice(0, from) + text.slice(from, from + this.below(40)).repeat(1 + this.below(8)) + text.slice(from)
        );
      case 5:
        return text.slice(0, from) + String(this.of(NUMBERS)) + text.slice(to);
      default:
        return text.slice(0, from);
    }
  }

  bytes(examples: readonly Buffer[]): Buffer {
    let bytes = Buffer.from(this.of(examples));
    if (this.isOdds(0.2)) {
      const other = this.of(examples);
      bytes = Buffer.concat([
        bytes.subarray(0, this.below(bytes.length + 1)),
        other.subarray(this.below(other.length + 1)),
      ]);
    }
    for (let left = this.#places(); left > 0; left -= 1) bytes = this.#changedBytes(bytes);
    return bytes;
  }

  #changedBytes(bytes: Buffer<ArrayBuffer>): Buffer<ArrayBuffer> {
    const at = this.below(bytes.length + 1);
    const rest = bytes.subarray(at);
    switch (this.below(5)) {
      case 0: {
        const copy = Buffer.from(bytes);
        if (at < copy.length) copy[at] = this.below(256);
        return copy;
      }
      case 1: // a number or a length that is too large
        return Buffer.concat([
          bytes.subarray(0, at),
          Buffer.alloc(1 + this.below(10), 0xff),
          Buffer.from([this.below(128)]),
          rest,
        ]);
      case 2:
        return Buffer.from(bytes.subarray(0, at));
      case 3:
        return Buffer.concat([bytes.subarray(0, at), rest.subarray(0, this.below(20)), rest]);
      default: {
        const copy = Buffer.from(bytes);
        if (at < copy.length) copy[at] = copy[at]! ^ (1 << this.below(8));
        return copy;
      }
    }
  }

  /** A value with a few of its parts replaced, left out, renamed or added to. */
  tree(examples: readonly Json[]): Json {
    let value = this.of(examples);
    for (let left = 1 + this.below(3); left > 0; left -= 1) value = this.#changedTree(value, examples);
    return value;
  }

  #changedTree(value: Json, examples: readonly Json[]): Json {
    if (value === null || typeof value !== 'object' || this.isOdds(0.1)) return this.#leaf(value, examples);
    if (Array.isArray(value)) return this.#changedList(value as readonly Json[], examples);
    const entries = Object.entries(value as { readonly [key: string]: Json });
    const at = this.below(entries.length + 1);
    const [key, item] = entries[at] ?? [this.of(TEXTS), this.#leaf(null, examples)];
    const rest = entries.filter((_, index) => index !== at);
    switch (this.below(5)) {
      case 0:
        return objectOf(rest);
      case 1:
        return objectOf([...entries, [this.of(TEXTS), item]]);
      case 2:
        return objectOf([...rest, [this.text([key]), item]]);
      default:
        return objectOf([...rest, [key, this.#changedTree(item, examples)]]);
    }
  }

  #changedList(list: readonly Json[], examples: readonly Json[]): Json {
    const at = this.below(list.length + 1);
    if (this.isOdds(0.2)) return [...list, ...list, ...list].slice(0, 200);
    if (this.isOdds(0.2)) return list.filter((_, index) => index !== at);
    return [...list.slice(0, at), this.#changedTree(list[at] ?? null, examples), ...list.slice(at + 1)];
  }

  #leaf(value: Json, examples: readonly Json[]): Json {
    switch (this.below(8)) {
      case 0:
        return this.of(TEXTS);
      case 1:
        return this.of(NUMBERS);
      case 2:
        return this.of([null, true, false, [], {}]);
      case 3:
        return this.of(examples);
      case 4: {
        let nested: Json = value;
        for (let depth = this.below(70); depth > 0; depth -= 1) nested = this.isOdds(0.5) ? [nested] : { a: nested };
        return nested;
      }
      case 5:
        return Array.from({ length: this.below(value === null || typeof value !== 'object' ? 150 : 8) }, () => value);
      default:
        return typeof value === 'string' ? this.text([value]) : typeof value === 'number' ? -value : this.of(TEXTS);
    }
  }
}

function spliced(one: string, other: string, random: () => number): string {
  return one.slice(0, Math.floor(random() * (one.length + 1))) + other.slice(Math.floor(random() * (other.length + 1)));
}

/** Also with a key that would be the prototype. */
const objectOf = (entries: readonly (readonly [string, Json])[]): Json => Object.fromEntries(entries);
