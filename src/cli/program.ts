/** The parser of the command line, made from the table of commands. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { packageVersion } from '../system/package-files.ts';
import { argumentsOf, type CommandRow, type GroupRow, type OptionRow, wordsOf } from './command-row.ts';
import { EXIT } from './errors.ts';
import { meaningOf, withHelp } from './help.ts';
import {
  type Filtered,
  type Globals,
  type Invocation,
  LIST_FORMATS,
  Options,
  OUTPUT_FORMATS,
  type Run,
} from './invocation.ts';
import { printableLines } from './terminal/printable.ts';

type Chosen = { readonly kind: 'command'; readonly run: Run; readonly invocation: Omit<Invocation, 'env'> };

/** The chosen command, or the exit status of a parse that ended in help or in a reported mistake. */
export type Parsed = Chosen | { readonly kind: 'over'; readonly status: number };

export async function parseCommandLine(
  rows: readonly CommandRow[],
  groups: readonly GroupRow[],
  argv: readonly string[],
): Promise<Parsed> {
  let chosen: Chosen | undefined;
  const root = withHelp(styled(new Command('svc'), ''), { kind: 'root', groups });
  root.version(packageVersion(), '-V, --version', 'show the version').helpCommand(false);
  for (const option of globalOptions()) root.addOption(option);
  const parents = new Map<string, Command>();
  for (const row of rows) {
    const words = wordsOf(row);
    const parent = parentOf(root, parents, words, rows, groups);
    const command = parent.command(words.at(-1) ?? '', { isDefault: row.isDefault === true });
    describe(command, row, words.length === 1 ? summaryOf(groups, words[0]) : row.summary).action(async () => {
      requireOptions(command, row);
      chosen = {
        kind: 'command',
        run: await row.load(),
        invocation: {
          args: command.args,
          options: new Options(command.opts()),
          globals: globalsOf(root.opts<Given>(), command, row),
        },
      };
    });
  }
  const [first, ...rest] = argv;
  // People try these first. The nearest command to `help` would be `halt`, of all things.
  const words = first === 'help' ? [...rest, '--help'] : first === 'version' ? [...rest, '--version'] : argv;
  try {
    await root.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return { kind: 'over', status: error.exitCode === 0 ? EXIT.done : EXIT.usage };
    throw error;
  }
  return chosen ?? { kind: 'over', status: EXIT.usage };
}

/** The global options as they were given. */
type Given = Omit<Globals, 'output' | 'layout'> & {
  readonly output?: Exclude<Globals['output'], Filtered> | (typeof LIST_FORMATS)[number];
  readonly jq?: string;
  readonly columns?: string;
  readonly headers: boolean;
};

/** How a list is laid out is nothing to commands that show none, and no filter of JSON to those without any. */
function globalsOf({ output, jq, columns, headers, ...rest }: Given, command: Command, row: CommandRow): Globals {
  const isOfList = output === 'wide' || output === 'csv';
  const [asked] = [
    ...(isOfList ? [`--output ${output}`] : []),
    ...(columns === undefined ? [] : ['--columns']),
    ...(headers ? [] : ['--no-headers']),
  ];
  if (asked !== undefined && row.prints !== 'list')
    command.error(`error: ${asked} is for lists, such as svc ops ls, and this command prints none`);
  if (jq !== undefined && row.prints === 'text')
    command.error('error: --jq filters JSON, and this command prints none');
  if (jq !== undefined && (asked ?? output ?? 'json') !== 'json')
    command.error(`error: --jq filters JSON; leave out ${asked ?? `--output ${output}`}`);
  return {
    ...rest,
    output: jq === undefined ? (isOfList ? 'table' : (output ?? 'table')) : { jq },
    layout: {
      kind: isOfList ? output : 'fitted',
      columns: columns?.split(',').map((title) => title.trim()),
      hasHeading: headers,
    },
  };
}

/** The parent of commands with two words, created with the first of them. */
function parentOf(
  root: Command,
  parents: Map<string, Command>,
  words: readonly string[],
  rows: readonly CommandRow[],
  groups: readonly GroupRow[],
): Command {
  const [first = ''] = words;
  if (words.length === 1) return root;
  const known = parents.get(first);
  if (known !== undefined) return known;
  const parent = withHelp(styled(root.command(first), first), {
    kind: 'group',
    summary: summaryOf(groups, first),
    rows: rows.filter((row) => wordsOf(row)[0] === first && wordsOf(row).length > 1),
  });
  parent.helpCommand(false);
  parents.set(first, parent);
  return parent;
}

const summaryOf = (groups: readonly GroupRow[], first: string | undefined): string =>
  groups.find(({ name }) => name === first)?.summary ?? '';

/** `summary` is what the help of its parent says of it. */
function describe(command: Command, row: CommandRow, summary: string): Command {
  for (const argument of argumentsOf(row)) command.argument(argument);
  for (const option of row.options ?? []) command.addOption(optionOf(option));
  return withHelp(styled(command, wordsOf(row).join(' ')), { kind: 'command', row, summary });
}

/**
 * Here, and not by the parser, which would report that `--action` is missing to somebody who has mistyped it as
 * `--actoin`.
 */
function requireOptions(command: Command, { options = [] }: CommandRow): void {
  const missing = options.find(
    (row) => row.isRequired === true && command.getOptionValue(optionOf(row).attributeName()) === undefined,
  );
  if (missing !== undefined) command.error(`error: required option '${optionOf(missing).flags}' not specified`);
}

function optionOf(row: OptionRow): Option {
  const { flags, choices } = row;
  const isRepeated = flags.endsWith('...>');
  const option = new Option(isRepeated ? flags.replace('...>', '>') : flags, meaningOf(row));
  if (isRepeated)
    return option.argParser((value: string, before: readonly string[] = []) => [...before, chosenFrom(choices, value)]);
  return choices === undefined ? option : option.choices(choices);
}

function chosenFrom(choices: readonly string[] | undefined, value: string): string {
  if (choices !== undefined && !choices.includes(value))
    throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`);
  return value;
}

const globalOptions = (): readonly Option[] => [
  new Option('--context <name>'),
  new Option('--api-url <url>'),
  new Option('--api-key <key>'),
  new Option('-o, --output <format>').choices([...OUTPUT_FORMATS, ...LIST_FORMATS]),
  new Option('--jq <filter>'),
  new Option('--columns <titles>'),
  new Option('--no-headers'),
  new Option('--debug'),
];

function styled(command: Command, words: string): Command {
  return command
    .exitOverride()
    .helpOption('-h, --help', 'show this help')
    .showHelpAfterError(`Run \`${['svc', words].join(' ').trimEnd()} --help\` for help.`)
    .configureOutput({ outputError: (message, write) => write(withoutValues(message)) });
}

/**
 * A key that was put behind a mistyped option, or where no argument belongs, is not shown again; nor is what drives a
 * terminal.
 */
const withoutValues = (message: string): string =>
  printableLines(message)
    .replace(/^(error: unknown option '[^=']*)=[^']*'/, "$1'")
    .replace(/svc_[0-9A-Za-z_]+/g, 'svc_…');
