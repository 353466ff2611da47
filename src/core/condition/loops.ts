/** The loops of conditions: `all`, `exists`, `exists_one`, `filter`, `map`, and those with two variables. */
import { SPENT } from './steps.ts';
import type { Loop } from './typed.ts';
import { nameOfValue } from './types.ts';
import { CelMap, entriesOf, Failure, isObject, STEPS_OF_KEY, type Steps, sizeOfMap, type Value } from './values.ts';

type Frame = Steps & { readonly locals: Value[] };
type Body<F> = { readonly run: (frame: F) => Value; readonly steps: number } | undefined;

/** The state of a loop. */
type Collector = {
  /** With what the condition and the value of a round came to, and its first variable; true ends the loop. */
  add(test: Value, made: Value, first: Value): boolean;
  result(): Value;
};

/** Each round takes the steps of its body before it runs, and one for itself. */
export function compileLoop<F extends Frame>(
  { name, kind, slot, hasTwo }: Loop,
  over: (frame: F) => Value,
  predicate: Body<F>,
  transform: Body<F>,
): (frame: F) => Value {
  const steps = 1 + (predicate?.steps ?? 0) + (transform?.steps ?? 0);
  const makeCollector = COLLECTORS[kind];
  return (frame) => {
    const within = over(frame);
    if (within instanceof Failure) return within;
    const isList = Array.isArray(within);
    if (!isList && !(within instanceof CelMap) && !isObject(within))
      return new Failure(`${name}() requires a list or a map, not ${nameOfValue(within, frame)}`);
    const collector = makeCollector();
    const round = (key: Value, element: Value): boolean => {
      frame.locals[slot] = hasTwo || !isList ? key : element;
      if (hasTwo) frame.locals[slot + 1] = element;
      const test = predicate === undefined ? true : predicate.run(frame);
      const isWanted = test === true && transform !== undefined;
      return collector.add(test, isWanted ? transform.run(frame) : null, frame.locals[slot] as Value);
    };
    if (isList) {
      for (let nth = 0; nth < within.length; nth += 1) {
        frame.left -= steps;
        if (frame.left < 0) return SPENT;
        if (round(hasTwo ? BigInt(nth) : null, within[nth] as Value)) break;
      }
    } else {
      frame.left -= STEPS_OF_KEY * sizeOfMap(within); // all keys are listed, even where the first decides
      for (const [key, element] of entriesOf(within)) {
        frame.left -= steps;
        if (frame.left < 0) return SPENT;
        if (round(key, element)) break;
      }
    }
    return frame.left < 0 ? SPENT : collector.result();
  };
}

const NOT_BOOL = new Failure('the condition in a loop must be true or false');
const notBool = (test: Value): Failure => (test instanceof Failure ? test : NOT_BOOL);

const COLLECTORS: Readonly<Record<Loop['kind'], () => Collector>> = {
  all: () => deciding(false),
  exists: () => deciding(true),
  exists_one: () => {
    let count = 0;
    let failure: Failure | undefined;
    return {
      add(test) {
        if (test === true) count += 1;
        else if (test !== false) failure ??= notBool(test);
        return failure !== undefined;
      },
      result: () => failure ?? count === 1,
    };
  },
  filter: () => collecting((list, _, first) => list.push(first)),
  map: () => collecting((list, made) => list.push(made)),
  transformMap: () => {
    const map = new CelMap();
    let failure: Failure | undefined;
    return {
      add(test, made, key) {
        if (typeof test !== 'boolean') failure = notBool(test);
        else if (made instanceof Failure) failure = made;
        else if (test) map.add(key, made);
        return failure !== undefined;
      },
      result: () => failure ?? map,
    };
  },
};

/** As `&&` and `||` between all rounds: what decides does so even where another round has failed. */
function deciding(decisive: boolean): Collector {
  let failure: Failure | undefined;
  let isDecided = false;
  return {
    add(test) {
      isDecided = test === decisive;
      if (typeof test !== 'boolean') failure ??= notBool(test);
      return isDecided;
    },
    result: () => (isDecided ? decisive : (failure ?? !decisive)),
  };
}

function collecting(collect: (list: Value[], made: Value, first: Value) => void): Collector {
  const list: Value[] = [];
  let failure: Failure | undefined;
  return {
    add(test, made, first) {
      if (typeof test !== 'boolean') failure = notBool(test);
      else if (made instanceof Failure) failure = made;
      else if (test) collect(list, made, first);
      return failure !== undefined;
    },
    result: () => failure ?? list,
  };
}
