/** Whether what an agent has sent is small enough for the loops of a condition. */
import { type ConditionCost, MAX_STEPS } from './cost.ts';

type Sent = { readonly weights: SentWeights; readonly resource: string };

/** Returns why this input is too large for a condition of this cost; undefined if it is not. */
export function sizeCheck(cost: ConditionCost): (sent: Sent) => string | undefined {
  if (cost.degree === 0) return () => undefined;
  const limit = Math.floor((MAX_STEPS / cost.factor) ** (1 / cost.degree));
  const isByCharacter = cost.countsCharacters || cost.resourceSeparators.includes('');
  const most = `${limit} values${isByCharacter ? '; each character counts as one where strings are split or matched in a loop' : ''}`;
  return ({ weights, resource }) => {
    const weight = weights.attributesUpTo(limit, cost);
    if (weight > limit) return `the attributes are too large to loop over (more than ${most})`;
    if (isTooMuch(weight, weightOfResource(resource, cost), limit, cost))
      return `the resource and the attributes are too large to loop over together (more than ${most})`;
    return undefined;
  };
}

/** Where only one of two nested loops goes over the resource, their steps are the product of the two sizes. */
const isTooMuch = (
  weight: number,
  ofResource: number,
  limit: number,
  { degree, resourceDegree }: ConditionCost,
): boolean =>
  degree === 1 || resourceDegree > 1 ? weight + ofResource > limit : weight * ofResource > limit ** degree;

/**
 * The size of what one check has sent. All its conditions share one, because hundreds of them would take as long to
 * count as to run.
 */
export class SentWeights {
  #attributes: unknown;
  #plain: Weighing | undefined;
  #byCharacter: Weighing | undefined;

  reset(attributes: unknown): void {
    this.#attributes = attributes;
    this.#plain = undefined;
    this.#byCharacter = undefined;
  }

  /**
   * The size of the attributes as far as `cost` depends on it, counted no further than `limit`. Each value counts one.
   * Text counts one per 64 characters, because scanning is that much faster than a step, and one per character where it
   * is split up or matched over and over.
   */
  attributesUpTo(limit: number, { countsCharacters }: ConditionCost): number {
    const weighing = countsCharacters
      ? (this.#byCharacter ??= new Weighing(this.#attributes, 1))
      : (this.#plain ??= new Weighing(this.#attributes, 64));
    return weighing.upTo(limit);
  }
}

/** Goes on where it has stopped when a higher limit is asked for. */
class Weighing {
  readonly #pending: unknown[];
  readonly #charactersPerUnit: number;
  #weight = 0;

  constructor(value: unknown, charactersPerUnit: number) {
    this.#pending = [value];
    this.#charactersPerUnit = charactersPerUnit;
  }

  upTo(limit: number): number {
    const pending = this.#pending;
    while (pending.length > 0 && this.#weight <= limit) this.#weigh(pending.pop());
    return Math.ceil(this.#weight);
  }

  #weigh(value: unknown): void {
    this.#weight += 1;
    if (typeof value === 'string') this.#weight += value.length / this.#charactersPerUnit;
    else if (Array.isArray(value)) for (const item of value) this.#pending.push(item);
    else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        this.#weight += key.length / this.#charactersPerUnit;
        this.#pending.push(item);
      }
    }
  }
}

/**
 * The size of the resource in the same measure. It is short, so what it is split into is counted exactly: a path of
 * long names may be looped over, one of two thousand slashes may not be looped over twice.
 */
const weightOfResource = (resource: string, { resourceSeparators }: ConditionCost): number =>
  resourceSeparators.reduce(
    (most, separator) => Math.max(most, partsOf(resource, separator)),
    Math.ceil(resource.length / 64),
  );

function partsOf(text: string, separator: string): number {
  if (separator === '') return text.length;
  let parts = 1;
  for (let at = text.indexOf(separator); at !== -1; at = text.indexOf(separator, at + separator.length)) parts += 1;
  return parts;
}
