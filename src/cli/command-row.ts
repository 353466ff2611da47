/** A command of `svc`: a row of the table that its parser, its help and its completion are made from. */
import type { Run } from './invocation.ts';

export type OptionRow = {
  /** `--scope <scope>` takes a value, `--explain` is a switch, `--attr <pair...>` may be given again. */
  readonly flags: string;
  readonly meaning: string;
  readonly choices?: readonly string[];
  readonly isRequired?: boolean;
};

export type CommandRow = {
  /** `ops pause <op_id>`: the words of the command, then its arguments. */
  readonly synopsis: string;
  /** The first word alone means it, too. */
  readonly isDefault?: boolean;
  readonly summary: string;
  readonly options?: readonly OptionRow[];
  /** Default: an answer, as text, JSON or YAML. A list may also be CSV; text is nothing else. */
  readonly prints?: 'list' | 'text';
  /** The words that its argument may be, for completion. */
  readonly argumentWords?: readonly string[];
  readonly example: string;
  /** Loads the code of this command alone, which keeps the others from slowing its start. */
  readonly load: () => Promise<Run>;
};

const isArgument = (word: string): boolean => word.startsWith('<') || word.startsWith('[');

/** `['ops', 'pause']` */
export const wordsOf = ({ synopsis }: CommandRow): readonly string[] =>
  synopsis.split(' ').filter((word) => !isArgument(word));

/** `['<op_id>']` */
export const argumentsOf = ({ synopsis }: CommandRow): readonly string[] => synopsis.split(' ').filter(isArgument);

/** The help of `svc` on each first word, in its order. */
export type GroupRow = { readonly name: string; readonly summary: string };
