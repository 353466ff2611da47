/**
 * `matches()` of conditions, in time that is linear in the text. Linear may still be long: a pattern of a few hundred
 * instructions may try each of them at each character, and hundreds of rules may do so. So that much is taken from the
 * steps of the check before a pattern runs.
 */
import { RE2JS, RE2JSException } from 're2js';
import { fail, ok, type Result } from '../base/result.ts';
import { cutText, messageOf } from '../base/text.ts';
import { take } from './steps.ts';
import { Failure, type Steps } from './values.ts';

const MAX_PATTERN_LENGTH = 512;
/** In instructions. */
const MAX_PATTERN_PROGRAM = 1000;
/** Longer texts are an error. */
const MAX_MATCHED_LENGTH = 8192;
/** So many instructions at one character each are tried in one step. */
const TRIED_PER_STEP = 4;

export class Pattern {
  readonly #compiled: RE2JS;
  readonly #size: number;

  private constructor(compiled: RE2JS) {
    this.#compiled = compiled;
    this.#size = compiled.programSize();
  }

  /** Fails with what is wrong with the text of a pattern. */
  static compile(text: string): Result<Pattern, string> {
    if (text.length > MAX_PATTERN_LENGTH) return fail(`a pattern may have at most ${MAX_PATTERN_LENGTH} characters`);
    try {
      const compiled = RE2JS.compile(text);
      return compiled.programSize() > MAX_PATTERN_PROGRAM
        ? fail('this pattern is too large; use smaller repeat counts')
        : ok(new Pattern(compiled));
    } catch (error) {
      if (error instanceof RE2JSException) return fail(`not a valid RE2 pattern: ${cutText(messageOf(error), 300)}`);
      throw error;
    }
  }

  isFoundIn(text: string, steps: Steps): boolean | Failure {
    if (text.length > MAX_MATCHED_LENGTH)
      return new Failure(
        `matches() accepts strings of at most ${MAX_MATCHED_LENGTH} characters; this one has ${text.length}`,
      );
    const spent = take(steps, Math.ceil((text.length * this.#size) / TRIED_PER_STEP));
    return spent ?? this.#compiled.test(text);
  }
}
