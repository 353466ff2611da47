/** Mappings as an author writes them in YAML. */
import { nearest } from './nearest.ts';

export type Mapping = Readonly<Record<string, unknown>>;

export const isMapping = (raw: unknown): raw is Mapping => typeof raw === 'object' && raw !== null && !Array.isArray(raw);

/** The problem of a key that is not among the known ones, with what was most likely meant. */
export function unknownKey(key: string, known: readonly string[]): string {
  const guess = nearest(key, known);
  return `unknown key; ${guess === undefined ? `the keys here are ${known.join(', ')}` : `did you mean ${guess}?`}`;
}
