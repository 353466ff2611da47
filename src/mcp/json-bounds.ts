/**
 * How many values a JSON text holds and how deep they are nested, found out before it is parsed: a few megabytes of
 * brackets take the parser seconds, in which nobody else is answered.
 */

export type Bounds = {
  /** Commas and opening brackets, of which each value takes at most one of each. */
  readonly marks: number;
  readonly depth: number;
};

/** Far beyond any honest schema or result, and within what can be written as JSON again. */
const MAX_DEPTH = 200;
/** Bounds for agents' messages: the arguments of a call may have 22,000 marks at the gateway. */
export const FROM_CLIENT: Bounds = { marks: 24_000, depth: MAX_DEPTH };
/** Bounds for servers' answers: a page with thousands of tools has some hundred thousand. */
export const FROM_UPSTREAM: Bounds = { marks: 250_000, depth: MAX_DEPTH };

const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d];
const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
/** Brackets of mappings; those of lists lack one bit. */
const [OPENING, CLOSING, BRACKET_BIT] = [0x7b, 0x7d, 0x20];

/** Reads a text piece by piece. */
export class JsonMeter {
  readonly #bounds: Bounds;
  #marks = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** Another text begins. */
  restart(): void {
    this.#marks = 0;
    this.#depth = 0;
    this.#isInString = false;
    this.#isEscaped = false;
  }

  /** False when the text so far is beyond the bounds. Invalid JSON may be counted wrongly. */
  take(bytes: Uint8Array): boolean {
    const { marks: maxMarks, depth: maxDepth } = this.#bounds;
    // In variables of its own: this runs once for every byte.
    let [marks, depth, isInString, isEscaped] = [this.#marks, this.#depth, this.#isInString, this.#isEscaped];
    for (let at = 0; at < bytes.length && marks <= maxMarks && depth <= maxDepth; at += 1) {
      const byte = bytes[at]!;
      // No string has one: an event of a stream may have other lines before its data.
      if (byte === LINE_FEED || byte === CARRIAGE_RETURN) isInString = isEscaped = false;
      else if (isEscaped) isEscaped = false;
      else if (byte === QUOTE) isInString = !isInString;
      else if (isInString) isEscaped = byte === BACKSLASH;
      else if (byte === COMMA) marks += 1;
      else if ((byte | BRACKET_BIT) === OPENING) {
        marks += 1;
        depth += 1;
      } else if ((byte | BRACKET_BIT) === CLOSING) depth -= 1;
    }
    [this.#marks, this.#depth, this.#isInString, this.#isEscaped] = [marks, depth, isInString, isEscaped];
    return marks <= maxMarks && depth <= maxDepth;
  }
}

export const isWithin = (bounds: Bounds, text: Uint8Array): boolean => new JsonMeter(bounds).take(text);
