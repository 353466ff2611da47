/** `svc completion bash|zsh|fish`: made from the table of commands, so that it cannot lag behind. */
import { wordsOf, type CommandRow, type OptionRow } from '../command-row.ts';
import { COMMANDS } from '../commands.ts';
import { usageError } from '../errors.ts';
import { OUTPUT_FORMATS, type Invocation } from '../invocation.ts';
import { writeOut } from '../output.ts';

const GLOBAL_OPTIONS: readonly OptionRow[] = [
  { flags: '--context <name>', meaning: 'use this context' },
  { flags: '--api-url <url>', meaning: 'use this gateway' },
  { flags: '--api-key <key>', meaning: 'use this API key' },
  { flags: '--output <format>', meaning: 'print in this format', choices: OUTPUT_FORMATS },
  { flags: '--debug', meaning: 'show where an error came from' },
  { flags: '--help', meaning: 'show help' },
];

const SHELLS: Readonly<Record<string, () => string>> = { bash, zsh, fish };

export async function run({ args: [shell = ''] }: Invocation): Promise<void> {
  const script = SHELLS[shell];
  if (script === undefined) throw usageError('completion is there for bash, zsh and fish', 'For example: source <(svc completion bash)');
  writeOut(script());
}

type Entry = { readonly word: string; readonly meaning: string };

const flagOf = ({ flags }: OptionRow): string => flags.split(/[ ,]+/).find((part) => part.startsWith('--')) ?? '';
const optionEntries = (options: readonly OptionRow[]): readonly Entry[] => options.map((option) => ({ word: flagOf(option), meaning: option.meaning }));

/** What may follow each path of words: `''`, `ops`, `ops pause`. */
function levels(): readonly (readonly [path: string, entries: readonly Entry[]])[] {
  const found = new Map<string, Entry[]>([['', []]]);
  for (const row of COMMANDS) {
    const words = wordsOf(row);
    words.forEach((word, at) => {
      const above = words.slice(0, at).join(' ');
      const entries = found.get(above) ?? [];
      if (!entries.some((entry) => entry.word === word)) entries.push({ word, meaning: at === words.length - 1 ? row.summary : `commands for ${word}` });
      found.set(above, entries);
    });
    found.set(words.join(' '), [...argumentEntries(row), ...optionEntries(row.options ?? [])]);
  }
  return [...found].map(([path, entries]) => [path, path.includes(' ') || !COMMANDS.some((row) => wordsOf(row)[0] === path && wordsOf(row).length > 1) ? [...entries, ...optionEntries(GLOBAL_OPTIONS)] : entries]);
}

const argumentEntries = ({ argumentWords = [] }: CommandRow): readonly Entry[] => argumentWords.map((word) => ({ word, meaning: '' }));

/** The words that an option takes, one entry per option that has a closed set of them. */
function choices(): ReadonlyMap<string, readonly string[]> {
  const all = [...GLOBAL_OPTIONS, ...COMMANDS.flatMap(({ options = [] }) => options)];
  return new Map(all.flatMap((option) => (option.choices === undefined ? [] : [[flagOf(option), option.choices] as const])));
}

const takesValue = (): readonly string[] => [...new Set([...GLOBAL_OPTIONS, ...COMMANDS.flatMap(({ options = [] }) => options)].filter(({ flags }) => flags.includes('<')).map(flagOf))];

function bash(): string {
  return `# bash completion for svc: source <(svc completion bash)
_svc() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path= words= i skip=
  case "$previous" in
${[...choices()].map(([flag, words]) => `    ${flag}${flag === '--output' ? '|-o' : ''}) COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$current")); return ;;`).join('\n')}
    ${takesValue().filter((flag) => !choices().has(flag)).join('|')}) return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ -n $skip ]]; then skip=; continue; fi
    case "\${COMP_WORDS[i]}" in
      ${takesValue().join('|')}|-o) skip=1 ;;
      -*) ;;
      *) [[ $path == *' '* ]] || path="\${path:+$path }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path" in
${levels().map(([path, entries]) => `    '${path}') words='${entries.map(({ word }) => word).join(' ')}' ;;`).join('\n')}
    *) path=\${path%% *}
      case "$path" in
${levels().filter(([path, entries]) => path !== '' && !path.includes(' ') && entries.some(({ word }) => word.startsWith('-'))).map(([path, entries]) => `        '${path}') words='${entries.map(({ word }) => word).join(' ')}' ;;`).join('\n')}
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _svc svc
`;
}

const zshQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const zshEntry = ({ word, meaning }: Entry): string => zshQuoted(`${word.replaceAll(':', '\\:')}${meaning === '' ? '' : `:${meaning}`}`);

function zsh(): string {
  return `#compdef svc
# zsh completion for svc: svc completion zsh > "\${fpath[1]}/_svc"
_svc() {
  local -a entries
  local path_= word skip=
  case "\${words[CURRENT-1]}" in
${[...choices()].map(([flag, words]) => `    ${flag}${flag === '--output' ? '|-o' : ''}) compadd -- ${words.join(' ')}; return ;;`).join('\n')}
    ${takesValue().filter((flag) => !choices().has(flag)).join('|')}) _files; return ;;
  esac
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n $skip ]]; then skip=; continue; fi
    case "$word" in
      ${takesValue().join('|')}|-o) skip=1 ;;
      -*) ;;
      *) [[ $path_ == *' '* ]] || path_="\${path_:+$path_ }$word" ;;
    esac
  done
  case "$path_" in
${levels().map(([path, entries]) => `    ${zshQuoted(path)}) entries=(${entries.map(zshEntry).join(' ')}) ;;`).join('\n')}
    *) _files; return ;;
  esac
  _describe 'svc' entries || _files
}
if [[ \${funcstack[1]} == _svc ]]; then _svc "$@"; else compdef _svc svc; fi
`;
}

const fishQuoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function fish(): string {
  const lines = ['# fish completion for svc: svc completion fish > ~/.config/fish/completions/svc.fish', 'complete -c svc -f'];
  for (const [path, entries] of levels()) {
    const [first, second] = path.split(' ');
    const conditions = path === '' ? '__fish_use_subcommand' : second === undefined ? `__fish_seen_subcommand_from ${first}` : `__fish_seen_subcommand_from ${first}; and __fish_seen_subcommand_from ${second}`;
    for (const { word, meaning } of entries.filter((entry) => !GLOBAL_OPTIONS.some((option) => flagOf(option) === entry.word))) {
      const isOption = word.startsWith('--');
      const words = choices().get(word);
      lines.push(`complete -c svc -n ${fishQuoted(conditions)} ${isOption ? `-l ${word.slice(2)}` : `-a ${word}`} -d ${fishQuoted(meaning)}${isOption && takesValue().includes(word) ? ' -r' : ''}${words === undefined ? '' : ` -a ${fishQuoted(words.join(' '))}`}`);
    }
  }
  for (const option of GLOBAL_OPTIONS) lines.push(`complete -c svc -l ${flagOf(option).slice(2)} -d ${fishQuoted(option.meaning)}${option.flags.includes('<') ? ' -r' : ''}${option.choices === undefined ? '' : ` -a ${fishQuoted(option.choices.join(' '))}`}`);
  return `${lines.join('\n')}\n`;
}
