/**
 * `matches()` of conditions, in time that is linear in the text. The instructions of a pattern that hold at once are a
 * state, and which state follows a state on which character is found out when it is needed, and kept. To find it out
 * may take some steps for each instruction of the pattern, at each character of a text that was made for it; to look it
 * up takes one. Both are counted exactly.
 */
import { RE2JS, RE2JSException } from 're2js';
import { fail, ok, type Result } from '../base/result.ts';
import { cutText, messageOf } from '../base/text.ts';
import { compileParts, type Program } from './pattern-program.ts';
import { type Assertion, parsePattern, Unsupported } from './pattern-syntax.ts';
import { SPENT } from './steps.ts';
import { Failure, type Steps } from './values.ts';

const MAX_PATTERN_LENGTH = 512;
/** In instructions. */
const MAX_PATTERN_PROGRAM = 1000;
/** Longer texts are an error. */
const MAX_MATCHED_LENGTH = 8192;

/** Kinds of boundaries between two characters, which decide which assertions hold. */
const TEXT_START = 1;
const AFTER_WORD = 2;
const AFTER_LINE = 4;

type State = {
  /** Instructions, none of them a split. */
  readonly held: readonly number[];
  readonly before: number;
  /** By the class of the next character: what follows, or true where the pattern is found before it. */
  readonly next: (State | true | undefined)[];
};

/** The class of the end of a text. */
const END = 0;
const UNKNOWN = -1;

/**
 * All patterns together keep states of about this size, in numbers; then they forget all. Forgotten states are computed
 * again.
 */
const MAX_KEPT = 1_000_000;
const STATE_SIZE = 32;
const keepers = new Set<Pattern>();
let kept = 0;

export class Pattern {
  readonly #program: Program;
  readonly #states = new Map<string, State>();
  /** Characters that no test tells apart have the same class. */
  readonly #classes = new Map<string, number>();
  /** Classes of ASCII characters; UNKNOWN until first used. */
  readonly #asciiClassOf = new Int16Array(0x80).fill(UNKNOWN);
  readonly #classOf = new Map<number, number>();
  /** By class: which tests its characters pass, and what they are to assertions. */
  readonly #passed: boolean[][] = [[]];
  readonly #kinds: number[] = [0];

  private constructor(program: Program) {
    this.#program = program;
  }

  /** Fails with what is wrong with the text of a pattern. */
  static compile(text: string): Result<Pattern, string> {
    if (text.length > MAX_PATTERN_LENGTH) return fail(`a pattern may have at most ${MAX_PATTERN_LENGTH} characters`);
    try {
      // Knows all of the syntax, and says what is wrong with it.
      if (RE2JS.compile(text).programSize() > MAX_PATTERN_PROGRAM)
        return fail('this pattern is too large; use smaller repeat counts');
      return ok(new Pattern(compileParts(parsePattern(text))));
    } catch (error) {
      if (error instanceof RE2JSException) return fail(`not a valid RE2 pattern: ${cutText(messageOf(error), 300)}`);
      if (error instanceof Unsupported) return fail(`matches() does not know ${error.message}`);
      throw error;
    }
  }

  isFoundIn(text: string, steps: Steps): boolean | Failure {
    if (text.length > MAX_MATCHED_LENGTH)
      return new Failure(
        `matches() accepts strings of at most ${MAX_MATCHED_LENGTH} characters; this one has ${text.length}`,
      );
    steps.left -= text.length;
    let state = this.#stateOf(this.#closure([this.#program.start], steps), TEXT_START);
    for (let at = 0; at <= text.length; ) {
      if (steps.left < 0) return SPENT;
      const code = at === text.length ? undefined : text.codePointAt(at)!;
      const kind = code === undefined ? END : this.#kindOf(code, steps);
      const next = state.next[kind] ?? this.#follow(state, kind, steps);
      if (next === true) return true;
      state = next;
      at += code !== undefined && code > 0xffff ? 2 : 1;
    }
    return steps.left < 0 ? SPENT : false;
  }

  forget(): void {
    this.#states.clear();
    this.#classOf.clear();
  }

  #kindOf(code: number, steps: Steps): number {
    if (code >= 0x80) return this.#classOf.get(code) ?? this.#classify(code, steps);
    const known = this.#asciiClassOf[code]!;
    return known === UNKNOWN ? this.#classify(code, steps) : known;
  }

  #classify(code: number, steps: Steps): number {
    const { tests } = this.#program;
    const character = String.fromCodePoint(code);
    steps.left -= 4 * tests.length + 4;
    const passed = tests.map((test) => test(character));
    const kind = (isWord(code) ? AFTER_WORD : 0) | (code === 0xa ? AFTER_LINE : 0);
    const key = `${kind}${passed.map(Number).join('')}`;
    let known = this.#classes.get(key);
    if (known === undefined) {
      known = this.#passed.push(passed) - 1;
      this.#kinds.push(kind);
      this.#classes.set(key, known);
    }
    if (code < 0x80) this.#asciiClassOf[code] = known;
    else {
      this.#keep(2);
      this.#classOf.set(code, known);
    }
    return known;
  }

  /** Returns the state that follows before a character of this class. */
  #follow(state: State, kind: number, steps: Steps): State | true {
    const { instructions } = this.#program;
    const passed = this.#passed[kind]!;
    const holds = (assertion: Assertion): boolean => isHeld(assertion, state.before, kind === END, this.#kinds[kind]!);
    const here = this.#closure(state.held, steps, holds);
    const next = [this.#program.start];
    for (const at of here) {
      const instruction = instructions[at]!;
      if (instruction.op === 'found') return (state.next[kind] = true);
      if (instruction.op === 'char' && passed[instruction.test] === true) next.push(instruction.next);
    }
    const following = this.#stateOf(kind === END ? [] : this.#closure(next, steps), this.#kinds[kind]!);
    state.next[kind] = following;
    return following;
  }

  /**
   * All instructions that hold where these do, without splits, and each once. With `holds`, those behind assertions
   * too, where they hold.
   */
  #closure(from: readonly number[], steps: Steps, holds?: (assertion: Assertion) => boolean): number[] {
    const { instructions } = this.#program;
    const visited = new Set<number>();
    const found: number[] = [];
    const open = [...from];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      steps.left -= STEPS_PER_VISIT;
      if (visited.has(at)) continue;
      visited.add(at);
      const instruction = instructions[at]!;
      if (instruction.op === 'split') open.push(instruction.other, instruction.next);
      else {
        found.push(at);
        if (instruction.op === 'assert' && holds?.(instruction.assertion) === true) open.push(instruction.next);
      }
    }
    return found;
  }

  #stateOf(held: number[], before: number): State {
    held.sort((a, b) => a - b);
    const key = `${before} ${held.join()}`;
    let state = this.#states.get(key);
    if (state === undefined) {
      state = { held, before, next: [] };
      this.#keep(STATE_SIZE + 2 * held.length);
      this.#states.set(key, state);
    }
    return state;
  }

  #keep(size: number): void {
    kept += size;
    if (kept > MAX_KEPT) {
      for (const keeper of keepers) keeper.forget();
      keepers.clear();
      kept = size;
    }
    keepers.add(this);
  }
}

/** A visit, with its share of sorting and naming the state that it leads to, takes as long as some other steps. */
const STEPS_PER_VISIT = 8;

const isWord = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || (code >= 0x61 && code <= 0x7a);

function isHeld(assertion: Assertion, before: number, isEnd: boolean, after: number): boolean {
  const isEdge = ((before & AFTER_WORD) !== 0) !== ((after & AFTER_WORD) !== 0);
  switch (assertion) {
    case 'text-start':
      return (before & TEXT_START) !== 0;
    case 'text-end':
      return isEnd;
    case 'line-start':
      return (before & (TEXT_START | AFTER_LINE)) !== 0;
    case 'line-end':
      return isEnd || (after & AFTER_LINE) !== 0;
    case 'word-edge':
      return isEdge;
    case 'no-word-edge':
      return !isEdge;
  }
}
