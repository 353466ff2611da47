/**
 * Help that fits a screen of 30 lines (that of `svc` 40) and 80 columns, laid out by commander: common options are
 * below, in two lines.
 */
import type { Command } from 'commander';
import { argumentsOf, type CommandRow, type GroupRow, type OptionRow } from './command-row.ts';

export type HelpText =
  | { readonly kind: 'root'; readonly groups: readonly GroupRow[] }
  | { readonly kind: 'group'; readonly summary: string; readonly rows: readonly CommandRow[] }
  | { readonly kind: 'command'; readonly row: CommandRow; readonly summary: string };

const WIDTH = 80;

const GLOBAL_OPTIONS =
  'Everywhere: --context <name>  --api-url <url>  --api-key <key>  --debug  --help\n  -o, --output json|yaml|wide|csv  --jq <filter>  --columns <a,b>  --no-headers';

export function withHelp(command: Command, text: HelpText): Command {
  const layout = {
    helpWidth: WIDTH,
    visibleOptions: ({ options }: Command) => (text.kind === 'command' ? [...options] : []),
    optionDescription: ({ description }: { readonly description: string }) => description,
    subcommandDescription: (sub: Command) => sub.summary(),
    // A heading for each would be a line too many.
    formatItemList: (_heading: string, lines: string[]) => (lines.length === 0 ? [] : [...lines, '']),
  };
  switch (text.kind) {
    case 'root':
      return command
        .usage('<command> [options]      Example: svc login && svc ops watch')
        .configureHelp({
          ...layout,
          visibleCommands: ({ commands }) =>
            text.groups.flatMap(({ name }) => commands.find((each) => each.name() === name) ?? []),
          subcommandTerm: (sub) => sub.name(),
        })
        .addHelpText(
          'after',
          `${GLOBAL_OPTIONS}
Environment: HTTPS_PROXY, NO_PROXY
Exit status: 0 success, 1 failure, 2 usage, 3 check denied, 130 interrupted`,
        );
    case 'group':
      return command
        .usage('<command> [options]')
        .summary(text.summary)
        .description(sentence(text.summary))
        .configureHelp({
          ...layout,
          subcommandTerm: (sub) => [sub.name(), sub.usage()].join(' ').replace(/ \[options\]$/, ''),
        })
        .addHelpText('after', `\n${GLOBAL_OPTIONS}\nExample: ${text.rows[0]?.example ?? ''}`);
    case 'command':
      return command
        .usage([...argumentsOf(text.row), '[options]'].join(' '))
        .summary(text.summary)
        .description(sentence(text.row.summary))
        .configureHelp(layout)
        .addHelpText('after', `\n${GLOBAL_OPTIONS}\nExample: ${text.row.example}`);
  }
}

/** Describes an option with its choices, and whether it is required. */
export const meaningOf = ({ meaning, choices, isRequired, flags }: OptionRow): string =>
  `${meaning}${choices === undefined ? '' : ` (${choices.join(', ')})`}${isRequired === true ? '; required' : ''}${flags.endsWith('...>') ? '; may be repeated' : ''}`;

const sentence = (summary: string): string => `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
