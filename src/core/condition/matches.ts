/**
 * `matches()` of conditions, in time that is linear in the text. Linear may still be long: a pattern of a few hundred
 * steps tries each of them at each character, and hundreds of rules may do so. So what the library really does is
 * counted with the loops of a check.
 */
import { RE2JS } from 're2js';
import { assert, fail, ok, type Result } from '../base/result.ts';
import { takeForMatching } from './steps.ts';

const MAX_PATTERN_LENGTH = 512;
/** In instructions. */
const MAX_PATTERN_PROGRAM = 1000;
/** Longer texts are an error. */
const MAX_MATCHED_LENGTH = 8192;

/** What can be read in the time of one step of a loop: characters, where the library knows what each leads to, */
const CHARACTERS_PER_STEP = 16;
/** and instructions of a pattern, where it has to find that out. */
const INSTRUCTIONS_PER_STEP = 2;
/**
 * What the library keeps for a pattern of what it has found out, in bytes as it counts them. Its own limit is 8 MiB,
 * and patterns may be thousands.
 */
const MAX_KEPT_BYTES = 128 * 1024;
/**
 * Where that is not enough, the library tries each instruction at each character once, as long as these are no more
 * than so many.
 */
const MAX_TRIED = 262_144;

/**
 * A pattern that is compiled. No author can write one, so it is found in the tree of a condition only where it was put.
 */
export class Pattern {
  readonly #compiled: RE2JS;

  private constructor(compiled: RE2JS) {
    this.#compiled = compiled;
  }

  /** Fails with what is wrong with the text of a pattern; throws what the library says against its syntax. */
  static compile(text: string): Result<Pattern, string> {
    if (text.length > MAX_PATTERN_LENGTH) return fail(`a pattern may have at most ${MAX_PATTERN_LENGTH} characters`);
    const compiled = RE2JS.compile(text);
    if (compiled.programSize() > MAX_PATTERN_PROGRAM)
      return fail('this pattern is too large; use smaller repeat counts');
    const { re2Input } = compiled as unknown as Inside;
    re2Input.lazyDFA = new Automaton(re2Input.prog, MAX_KEPT_BYTES);
    return ok(new Pattern(compiled));
  }

  isFoundIn(text: string): boolean {
    if (text.length > MAX_MATCHED_LENGTH)
      throw new Error(
        `matches() accepts strings of at most ${MAX_MATCHED_LENGTH} characters; this one has ${text.length}`,
      );
    takeForMatching(Math.ceil(text.length / CHARACTERS_PER_STEP));
    return this.#compiled.test(text);
  }
}

/**
 * The parts of the library that matter here. It asks the automaton first, which learns as it reads; the machine knows
 * nothing beforehand.
 */
type Automaton = {
  match(input: { endPos(): number }, pos: number, anchor: number): boolean | null;
  closure(instructions: readonly number[], flag: number): { readonly pcs: readonly number[] };
  readonly prog: Program;
};
type Machine = { step(running: { readonly size: number }, ...rest: unknown[]): void };
type Program = { numInst(): number };
type Inside = {
  readonly re2Input: {
    readonly prog: Program;
    lazyDFA: Automaton | null;
    readonly dfa: Automaton;
    readonly machinePool: readonly Machine[];
  };
};

const Automaton = meteredAutomaton();
meterMachine();

function meteredAutomaton(): new (prog: Program, keptBytes: number) => Automaton {
  const { dfa } = (RE2JS.compile('a*b') as unknown as Inside).re2Input;
  const { constructor: automaton, match, closure } = dfa;
  assert(
    typeof match === 'function' &&
      typeof closure === 'function' &&
      'lazyDFA' in (RE2JS.compile('a*b') as unknown as Inside).re2Input,
    'the RE2 library has an automaton in its field lazyDFA',
  );
  const metered: Pick<Automaton, 'match' | 'closure'> & ThisType<Automaton> = {
    match(input, pos, anchor) {
      const found = match.call(this, input, pos, anchor);
      // Given up. A short text is then tried in all ways by a part of the library that cannot be counted, else it is
      // the machine's.
      const tried = found === null ? this.prog.numInst() * (input.endPos() + 1) : 0;
      if (tried > 0 && tried <= MAX_TRIED) takeForMatching(Math.ceil(tried / INSTRUCTIONS_PER_STEP));
      return found;
    },
    closure(instructions, flag) {
      const reached = closure.call(this, instructions, flag);
      takeForMatching(Math.ceil(reached.pcs.length / INSTRUCTIONS_PER_STEP));
      return reached;
    },
  };
  Object.assign(Object.getPrototypeOf(dfa) as object, metered);
  return automaton as new (
    prog: Program,
    keptBytes: number,
  ) => Automaton;
}

function meterMachine(): void {
  const large = RE2JS.compile('[ab]{600}'); // so that no other part of the library takes it
  large.matcher('ab').find();
  const machine = Object.getPrototypeOf((large as unknown as Inside).re2Input.machinePool[0] ?? {}) as Partial<Machine>;
  const { step } = machine;
  assert(step !== undefined, 'the RE2 library keeps the machines that have run in its field machinePool');
  machine.step = function metered(running, ...rest) {
    takeForMatching(Math.ceil(running.size / INSTRUCTIONS_PER_STEP));
    step.call(this, running, ...rest);
  };
}
