/** The type of a row in the table of settings, and its constructors. */
import { type Parse, wholeNumber } from './parse.ts';

/**
 * A variable: `expects` completes the sentence "must be …". `fallback` is the text of an unset variable, and
 * `fallbackRule` explains it if it depends on the machine.
 */
export type Variable<T> = {
  readonly parse: Parse<T>;
  readonly expects: string;
  readonly fallback: string | undefined;
  readonly fallbackRule?: string;
  readonly meaning: string;
  readonly isSecret?: boolean;
};

export function variable<T>(parse: Parse<T>, expects: string, fallback: string, meaning: string): Variable<T>;
export function variable<T>(
  parse: Parse<T>,
  expects: string,
  fallback: undefined,
  meaning: string,
): Variable<T | undefined>;
export function variable<T>(
  parse: Parse<T>,
  expects: string,
  fallback: string | undefined,
  meaning: string,
): Variable<T> {
  return { parse, expects, fallback, meaning };
}

export const secret = <T>(row: Variable<T>): Variable<T> => ({ ...row, isSecret: true });

export const count = (least: number, most: number, initial: string, meaning: string): Variable<number> =>
  variable(wholeNumber(least, most), `a whole number from ${least} to ${most}`, initial, meaning);

export const countOf = (
  unit: string,
  least: number,
  most: number,
  initial: string,
  meaning: string,
): Variable<number> => ({
  ...count(least, most, initial, meaning),
  expects: `a whole number of ${unit} from ${least} to ${most}`,
});
