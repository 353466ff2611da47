/** Whether what an agent has sent is small enough for the loops of a condition. */
import { MAX_STEPS, type ConditionCost } from './policy-condition-cost.ts';

type Sent = { readonly attributes: Readonly<Record<string, unknown>>; readonly resource: string };

/** Tells of what was sent why a condition of this cost does not run on it, because of its size; undefined: it does. */
export function sizeCheck(cost: ConditionCost): (sent: Sent) => string | undefined {
  const limit = Math.floor((MAX_STEPS / cost.factor) ** (1 / cost.degree));
  const isByCharacter = cost.countsCharacters || cost.resourceSeparators.includes('');
  const most = `${limit} values${isByCharacter ? '; each character counts as one where texts are split or matched in a loop' : ''}`;
  return ({ attributes, resource }) => {
    const weight = weightOf(attributes, limit, cost);
    if (weight > limit) return `the attributes are too large to loop over (more than ${most})`;
    if (isTooMuch(weight, weightOfResource(resource, cost), limit, cost)) return `the resource and the attributes are too large to loop over together (more than ${most})`;
    return undefined;
  };
}

/** Where only one of two nested loops goes over the resource, their steps are the product of the two sizes. */
const isTooMuch = (weight: number, ofResource: number, limit: number, { degree, resourceDegree }: ConditionCost): boolean =>
  degree === 1 || resourceDegree > 1 ? weight + ofResource > limit : weight * ofResource > limit ** degree;

/**
 * The size of the attributes as far as `cost` depends on it, counted no further than `limit`. Each value counts one. Text
 * counts one per 64 characters, because scanning is that much faster than a step, and one per character where it is split
 * up or matched over and over.
 */
function weightOf(value: unknown, limit: number, cost: ConditionCost): number {
  const charactersPerUnit = cost.countsCharacters ? 1 : 64;
  let weight = 0;
  const pending: unknown[] = [value];
  while (pending.length > 0 && weight <= limit) {
    const next = pending.pop();
    weight += 1;
    if (typeof next === 'string') weight += next.length / charactersPerUnit;
    else if (Array.isArray(next)) for (const item of next) pending.push(item);
    else if (typeof next === 'object' && next !== null) {
      for (const [key, item] of Object.entries(next)) {
        weight += key.length / charactersPerUnit;
        pending.push(item);
      }
    }
  }
  return Math.ceil(weight);
}

/**
 * The size of the resource in the same measure. It is short, so what it is split into is counted exactly: a path of long names
 * may be looped over, one of two thousand slashes may not be looped over twice.
 */
const weightOfResource = (resource: string, { resourceSeparators }: ConditionCost): number =>
  resourceSeparators.reduce((most, separator) => Math.max(most, partsOf(resource, separator)), Math.ceil(resource.length / 64));

function partsOf(text: string, separator: string): number {
  if (separator === '') return text.length;
  let parts = 1;
  for (let at = text.indexOf(separator); at !== -1; at = text.indexOf(separator, at + separator.length)) parts += 1;
  return parts;
}
