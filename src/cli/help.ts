/** Help that fits a screen of 30 lines and 80 columns. */
import { argumentsOf, type CommandRow, type GroupRow, wordsOf } from './command-row.ts';

export type HelpText =
  | { readonly kind: 'root'; readonly groups: readonly GroupRow[] }
  | { readonly kind: 'group'; readonly name: string; readonly summary: string; readonly rows: readonly CommandRow[] }
  | { readonly kind: 'command'; readonly row: CommandRow };

const WIDTH = 80;

const GLOBAL_OPTIONS =
  'Everywhere: --context <name>  --api-url <url>  --api-key <key>  --debug  --help\n            -o, --output table|json|yaml';

export function helpOf(text: HelpText): string {
  switch (text.kind) {
    case 'root':
      return [
        'Usage: svc <command> [options]         the gateway for agents, and its client',
        ...columns(text.groups.map(({ name, summary }) => [name, summary])),
        `${GLOBAL_OPTIONS}     Environment: HTTPS_PROXY, NO_PROXY`,
        'Exit status: 0 success, 1 failure, 2 usage, 3 check denied, 130 interrupted',
        'Example: svc login && svc ops watch      (svc <command> --help shows more)',
        '',
      ].join('\n');
    case 'group':
      return [
        `Usage: svc ${text.name} <command> [options]`,
        '',
        ...wrapped(sentence(text.summary), WIDTH),
        '',
        ...columns(text.rows.map((row) => [[...wordsOf(row).slice(1), ...argumentsOf(row)].join(' '), row.summary])),
        '',
        GLOBAL_OPTIONS,
        `Example: ${text.rows[0]?.example ?? ''}`,
        '',
      ].join('\n');
    case 'command':
      return [
        `Usage: svc ${text.row.synopsis}${(text.row.options ?? []).length > 0 ? ' [options]' : ''}`,
        '',
        ...wrapped(sentence(text.row.summary), WIDTH),
        '',
        ...columns(
          (text.row.options ?? []).map(({ flags, meaning, choices, isRequired }) => [
            flags.replace('...>', '>'),
            `${meaning}${choices === undefined ? '' : ` (${choices.join(', ')})`}${isRequired === true ? '; required' : ''}${flags.endsWith('...>') ? '; may be repeated' : ''}`,
          ]),
        ),
        ...((text.row.options ?? []).length > 0 ? [''] : []),
        GLOBAL_OPTIONS,
        `Example: ${text.row.example}`,
        '',
      ].join('\n');
  }
}

const sentence = (summary: string): string => `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;

/** Two columns, the second wrapped to the width of the screen. */
function columns(rows: readonly (readonly [string, string])[]): readonly string[] {
  const indent =
    Math.min(
      30,
      rows.reduce((widest, [left]) => Math.max(widest, left.length), 0),
    ) + 4;
  return rows.flatMap(([left, right]) => {
    const [first = '', ...rest] = wrapped(right, WIDTH - indent);
    const own =
      left.length > indent - 4 ? [`  ${left}`, ' '.repeat(indent) + first] : [`  ${left.padEnd(indent - 2)}${first}`];
    return [...own, ...rest.map((line) => ' '.repeat(indent) + line)];
  });
}

function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}
