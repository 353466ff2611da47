/** A call of the command line, after its arguments have been read. */
import { type ExitStatus, usageError } from './errors.ts';

export const OUTPUT_FORMATS = ['table', 'json', 'yaml'] as const;
/** JSON that a filter of jq makes something else of. */
export type Filtered = { readonly jq: string };
export type OutputFormat = (typeof OUTPUT_FORMATS)[number] | Filtered;

/** How lists may be shown besides. */
export const LIST_FORMATS = ['wide', 'csv'] as const;

/** How rows are laid out for people, or as CSV. */
export type Layout = {
  readonly kind: 'fitted' | (typeof LIST_FORMATS)[number];
  /** Titles of columns, in the order asked for; undefined: all of them. */
  readonly columns: readonly string[] | undefined;
  readonly hasHeading: boolean;
};

/** Options that every command takes. */
export type Globals = {
  readonly context?: string;
  readonly apiUrl?: string;
  readonly apiKey?: string;
  readonly output: OutputFormat;
  readonly layout: Layout;
  readonly debug?: boolean;
};

/** The options and arguments of one command, under the names its row gives them. */
export class Options {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  isSet(name: string): boolean {
    return this.#values[name] === true;
  }

  list(name: string): readonly string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? value : [];
  }

  /** A whole number of at least `least`. */
  count(name: string, flag: string, least: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const number = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(number) || number < least)
      throw usageError(`${flag} must be a whole number of at least ${least}`);
    return number;
  }
}

export type Invocation = {
  readonly args: readonly string[];
  readonly options: Options;
  readonly globals: Globals;
  readonly env: NodeJS.ProcessEnv;
};

/** Runs a command; nothing returned means done. */
export type Run = (invocation: Invocation) => Promise<ExitStatus | void>;
