/** `svc completion bash|zsh|fish`: made from the table of commands, so that it cannot lag behind. */
import { argumentsOf, type CommandRow, type GroupRow, type OptionRow, wordsOf } from '../command-row.ts';
import { usageError } from '../errors.ts';
import { type Invocation, LIST_FORMATS, OUTPUT_FORMATS } from '../invocation.ts';
import { writeOut } from '../terminal/output.ts';
import { SOURCES } from './complete.ts';

const GLOBAL_OPTIONS: readonly OptionRow[] = [
  { flags: '--context <name>', meaning: 'use this context' },
  { flags: '--api-url <url>', meaning: 'use this gateway' },
  { flags: '--api-key <key>', meaning: 'use this API key' },
  { flags: '-o, --output <format>', meaning: 'print in this format', choices: [...OUTPUT_FORMATS, ...LIST_FORMATS] },
  { flags: '--jq <filter>', meaning: 'print what this filter of jq makes of the JSON' },
  { flags: '--columns <titles>', meaning: 'only these columns of a list' },
  { flags: '--no-headers', meaning: 'a list without its heading' },
  { flags: '--debug', meaning: 'show the stack of an error' },
  { flags: '--help', meaning: 'show help' },
];

const SHELLS: ReadonlyMap<string, (vocabulary: Vocabulary) => string> = new Map([
  ['bash', bash],
  ['zsh', zsh],
  ['fish', fish],
]);

/** The commands of `svc`: passed in, since the table of commands loads this file. */
export type CommandTable = { readonly commands: readonly CommandRow[]; readonly groups: readonly GroupRow[] };

export const completionOf =
  (table: CommandTable) =>
  async ({ args: [shell = ''] }: Invocation): Promise<void> => {
    const script = SHELLS.get(shell);
    if (script === undefined)
      throw usageError('completion is available for bash, zsh and fish', 'For example: source <(svc completion bash)');
    writeOut(script(vocabularyOf(table)));
  };

type Entry = { readonly word: string; readonly meaning: string };

/** A function of the script that asks `svc` when a value is wanted, and its argument. */
type Asked = 'contexts' | `values ${string}`;

/** Possible words after a command. */
type Level = {
  readonly path: string;
  readonly words: readonly Entry[];
  readonly options: readonly OptionRow[];
  readonly takesFiles: boolean;
  readonly asked: Asked | undefined;
};

/** The first column below the heading. */
const CONTEXTS = "svc context ls 2> /dev/null | sed -n '2,$s/ .*//p'";
/** Commands whose argument is a context there is. */
const OF_CONTEXTS: readonly string[] = ['context use', 'context rm'];
const CONTEXT_OPTION = '--context';

const isFile = (placeholder: string): boolean => /[<[](?:file|path|dir)\b/.test(placeholder);

/** `['-o', '--output']` */
const spellingsOf = ({ flags }: OptionRow): readonly string[] =>
  flags.split(/[ ,]+/).filter((part) => part.startsWith('-'));
/** `<agent>`, `[op_id...]` and `--org <org>` are at the gateway, by their names. */
function askedFor(placeholders: string): Asked | undefined {
  const name = /[<[](\w+)/.exec(placeholders)?.[1] ?? '';
  return SOURCES.has(name) ? `values ${name}` : undefined;
}
const askedByOption = (option: OptionRow): Asked | undefined =>
  spellingsOf(option).includes(CONTEXT_OPTION) ? 'contexts' : askedFor(option.flags);
const entryOf = (option: OptionRow): Entry => ({ word: spellingsOf(option).at(-1) ?? '', meaning: option.meaning });

/** `''`, `ops`, `ops pause`, each with what follows it. */
function levelsOf({ commands, groups: summaries }: CommandTable): readonly Level[] {
  const groups = new Set(
    commands
      .map(wordsOf)
      .filter(({ length }) => length > 1)
      .map(([first = '']) => first),
  );
  return [
    {
      path: '',
      words: summaries.map(({ name, summary }) => ({ word: name, meaning: summary })),
      options: GLOBAL_OPTIONS,
      takesFiles: false,
      asked: undefined,
    },
    ...[...groups].map((path) => ({
      path,
      words: commands
        .filter((row) => wordsOf(row)[0] === path)
        .map((row) => ({
          word: wordsOf(row)[1] ?? '',
          meaning: row.summary,
        })),
      options: GLOBAL_OPTIONS,
      takesFiles: false,
      asked: undefined,
    })),
    ...commands.map(levelOf),
  ];
}

const levelOf = (row: CommandRow): Level => ({
  path: wordsOf(row).join(' '),
  words: (row.argumentWords ?? []).map((word) => ({ word, meaning: '' })),
  options: [...(row.options ?? []), ...GLOBAL_OPTIONS],
  takesFiles: argumentsOf(row).some(isFile),
  asked: OF_CONTEXTS.includes(wordsOf(row).join(' ')) ? 'contexts' : askedFor(argumentsOf(row)[0] ?? ''),
});

/** The words of the command line, by what may follow them. */
type Vocabulary = {
  readonly levels: readonly Level[];
  /** Options that take a value: all of them, those of free text, those of a file, and those asked for. */
  readonly valued: readonly string[];
  readonly freeValued: readonly string[];
  readonly fileValued: readonly string[];
  readonly askedValued: ReadonlyMap<Asked, readonly string[]>;
  /** By an option's spellings, `-o|--output`: the words that it takes, where they are a closed set. */
  readonly choices: ReadonlyMap<string, readonly string[]>;
  readonly withoutArguments: (path: string) => boolean;
};

const spellings = (options: readonly OptionRow[]): readonly string[] => [...new Set(options.flatMap(spellingsOf))];

function vocabularyOf(table: CommandTable): Vocabulary {
  const options = [...GLOBAL_OPTIONS, ...table.commands.flatMap((row) => row.options ?? [])];
  const valued = options.filter(({ flags }) => flags.includes('<'));
  return {
    levels: levelsOf(table),
    valued: spellings(valued),
    freeValued: spellings(
      valued.filter(
        (option) => option.choices === undefined && !isFile(option.flags) && askedByOption(option) === undefined,
      ),
    ),
    fileValued: spellings(valued.filter(({ flags }) => isFile(flags))),
    askedValued: askedValuedOf(valued),
    choices: choicesOf(valued),
    withoutArguments: (path) =>
      path !== '' && !path.includes(' ') && table.commands.some((row) => wordsOf(row).join(' ') === path),
  };
}

function askedValuedOf(valued: readonly OptionRow[]): ReadonlyMap<Asked, readonly string[]> {
  const kinds = new Set(valued.map(askedByOption).filter((asked) => asked !== undefined));
  return new Map(
    [...kinds].map((kind) => [kind, spellings(valued.filter((option) => askedByOption(option) === kind))]),
  );
}

/** Commands may have an option of the same name with other words: then it takes those of all. */
function choicesOf(valued: readonly OptionRow[]): ReadonlyMap<string, readonly string[]> {
  const choices = new Map<string, readonly string[]>();
  for (const option of valued) {
    if (option.choices === undefined) continue;
    const flags = spellingsOf(option).join('|');
    choices.set(flags, [...new Set([...(choices.get(flags) ?? []), ...option.choices])]);
  }
  return choices;
}

const textOf = (entries: readonly Entry[]): string => entries.map(({ word }) => word).join(' ');

function bash({ levels, valued, freeValued, fileValued, askedValued, choices, withoutArguments }: Vocabulary): string {
  return `# bash completion for svc: source <(svc completion bash)
_svc() {
  local current=\${COMP_WORDS[COMP_CWORD]} path= words= options= i=$COMP_CWORD skip= typed previous
  COMPREPLY=()
  # Bash takes an operation's id for three words, and completes the last of them.
  typed=$current
  while ((i > 1)) && [[ $typed == ':'* || \${COMP_WORDS[i-1]} == ':' ]]; do typed=\${COMP_WORDS[--i]}$typed; done
  previous=\${COMP_WORDS[i-1]}
  if [[ $current == '=' ]]; then current= typed=; elif [[ $previous == '=' ]]; then previous=\${COMP_WORDS[i-2]}; fi
  case "$previous" in
${[...choices].map(([flags, words]) => `    ${flags}) COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$current")); return ;;`).join('\n')}
    ${fileValued.join('|')}) _svc_files; return ;;
${[...askedValued].map(([asked, flags]) => `    ${flags.join('|')}) _svc_${asked}; return ;;`).join('\n')}
    ${freeValued.join('|')}) return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    # Bash takes --output=json, and http://host:port, for several words.
    if [[ \${COMP_WORDS[i]} == [=:] ]]; then skip=1; continue; fi
    if [[ -n $skip ]]; then skip=; continue; fi
    case "\${COMP_WORDS[i]}" in
      ${valued.join('|')}) skip=1 ;;
      -*) ;;
      *) [[ $path == *' '* ]] || path="\${path:+$path }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "\${path%% *}" in
    ${levels
      .map(({ path }) => path)
      .filter(withoutArguments)
      .join('|')}) path=\${path%% *} ;;
  esac
  case "$path" in
${levels
  .map(
    (level) =>
      `    '${level.path}') ${level.takesFiles ? '[[ $current == -* ]] || { _svc_files; return; }; ' : ''}${level.asked === undefined ? '' : `[[ $current != -* ]] && _svc_${level.asked} && return; `}words='${textOf(level.words)}' options='${textOf(level.options.map(entryOf))}' ;;`,
  )
  .join('\n')}
  esac
  # Options only where one is begun, or where there is nothing else.
  [[ $current != -* && -n $words ]] || words=$options
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
_svc_contexts() { COMPREPLY=($(compgen -W "$(${CONTEXTS})" -- "$current")); [[ -n \${COMPREPLY[*]} ]]; }
_svc_values() {
  local where= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${COMP_WORDS[i]}" in
      # Another gateway, or key, has other values.
      --api-url|--api-key) return 1 ;;
      --context) where=\${COMP_WORDS[i+1]}; [[ $where != '=' ]] || where=\${COMP_WORDS[i+2]} ;;
    esac
  done
  COMPREPLY=($(svc \${where:+"--context=$where"} complete "$1" -- "$typed" 2> /dev/null < /dev/null))
  COMPREPLY=("\${COMPREPLY[@]#"\${typed%"\${current#:}"}"}")
  [[ -n \${COMPREPLY[*]} ]]
}
_svc_files() { compopt -o default 2> /dev/null || COMPREPLY=($(compgen -f -- "$current")); }
complete -F _svc svc
`;
}

const zshAsked = (asked: Asked): string => `\${(f)"$(_svc_${asked})"}`;
const zshQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const zshEntry = ({ word, meaning }: Entry): string =>
  zshQuoted(`${word.replaceAll(':', '\\:')}${meaning === '' ? '' : `:${meaning}`}`);

function zsh({ levels, valued, freeValued, fileValued, askedValued, choices, withoutArguments }: Vocabulary): string {
  return `#compdef svc
# zsh completion for svc: svc completion zsh > "\${fpath[1]}/_svc"
_svc() {
  local -a entries
  local typed= word skip=
  case "\${words[CURRENT-1]}" in
${[...choices].map(([flags, words]) => `    ${flags}) compadd -- ${words.join(' ')}; return ;;`).join('\n')}
    ${fileValued.join('|')}) _files; return ;;
${[...askedValued].map(([asked, flags]) => `    ${flags.join('|')}) compadd -- ${zshAsked(asked)}; return ;;`).join('\n')}
    ${freeValued.join('|')}) return 1 ;;
  esac
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n $skip ]]; then skip=; continue; fi
    case "$word" in
      ${valued.join('|')}) skip=1 ;;
      -*) ;;
      *) [[ $typed == *' '* ]] || typed="\${typed:+$typed }$word" ;;
    esac
  done
  case "\${typed%% *}" in
    ${levels
      .map(({ path }) => path)
      .filter(withoutArguments)
      .join('|')}) typed=\${typed%% *} ;;
  esac
  case "$typed" in
${levels
  .map(
    (level) =>
      `    ${zshQuoted(level.path)}) ${level.takesFiles ? '[[ $PREFIX == -* ]] || { _files; return }; ' : ''}${level.asked === undefined ? '' : `[[ $PREFIX != -* ]] && compadd -- ${zshAsked(level.asked)} && return; `}entries=(${[...level.words, ...level.options.map(entryOf)].map(zshEntry).join(' ')}) ;;`,
  )
  .join('\n')}
  esac
  # Options only where one is begun, or where there is nothing else.
  [[ $PREFIX == -* || \${entries[1]} == -* ]] || entries=(\${entries:#-*})
  _describe 'svc' entries
}
_svc_contexts() { ${CONTEXTS} }
_svc_values() {
  local word where= before=
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$word" in
      --api-url|--api-key|--api-url=*|--api-key=*) return ;;
      --context=*) where=\${word#*=} ;;
      *) [[ $before != --context ]] || where=$word ;;
    esac
    before=$word
  done
  svc \${where:+"--context=$where"} complete "$1" -- "$PREFIX" 2> /dev/null < /dev/null
}
if [[ \${funcstack[1]} == _svc ]]; then _svc "$@"; else compdef _svc svc; fi
`;
}

const fishQuoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** `-s o -l output`, and what may follow it. */
function fishOption(option: OptionRow): string {
  const names = spellingsOf(option)
    .map((spelling) => (spelling.startsWith('--') ? `-l ${spelling.slice(2)}` : `-s ${spelling.slice(1)}`))
    .join(' ');
  const { flags, meaning, choices } = option;
  const asked = askedByOption(option);
  const value =
    choices !== undefined
      ? ` -x -a ${fishQuoted(choices.join(' '))}`
      : isFile(flags)
        ? ' -r -F'
        : asked !== undefined
          ? ` -x -a '(__svc_${asked})'`
          : flags.includes('<')
            ? ' -x'
            : '';
  return `${names} -d ${fishQuoted(meaning)}${value}`;
}

function fish({ levels, valued }: Vocabulary): string {
  const lines = levels.flatMap(({ path, words, options, takesFiles, asked }) => [
    ...words.map(
      ({ word, meaning }) =>
        `complete -c svc -n ${fishQuoted(`__svc_at ${path}`)} -a ${word} -d ${fishQuoted(meaning)}`,
    ),
    ...(takesFiles ? [`complete -c svc -n ${fishQuoted(`__svc_in ${path}`)} -F`] : []),
    ...(asked === undefined ? [] : [`complete -c svc -n ${fishQuoted(`__svc_in ${path}`)} -a '(__svc_${asked})'`]),
    ...options
      .filter((option) => !GLOBAL_OPTIONS.includes(option))
      .map((option) => `complete -c svc -n ${fishQuoted(`__svc_in ${path}`)} ${fishOption(option)}`),
  ]);
  return `# fish completion for svc: svc completion fish > ~/.config/fish/completions/svc.fish
function __svc_typed
  set -l skip no
  for word in (commandline -opc)[2..-1]
    if test $skip = yes
      set skip no
    else if contains -- $word ${valued.join(' ')}
      set skip yes
    else if not string match -q -- '-*' $word
      echo $word
    end
  end
end
function __svc_at
  set -l typed (__svc_typed)
  test "$typed" = "$argv"
end
function __svc_in
  set -l typed (__svc_typed)
  set -l depth (count $argv)
  test (count $typed) -ge $depth; and test "$typed[1..$depth]" = "$argv"
end
function __svc_contexts
  ${CONTEXTS}
end
function __svc_values
  set -l where
  set -l before
  set -l typed (commandline -ct)
  for word in (commandline -opc)[2..-1]
    switch $word
      case --api-url --api-key '--api-url=*' '--api-key=*'
        return
      case '--context=*'
        set where $word
      case '*'
        test "$before" = --context; and set where --context=$word
    end
    set before $word
  end
  svc $where complete $argv -- (string replace -r -- '^--[a-z-]+=' '' "$typed") 2> /dev/null < /dev/null
end
complete -c svc -f
${lines.join('\n')}
${GLOBAL_OPTIONS.map((option) => `complete -c svc ${fishOption(option)}`).join('\n')}
`;
}
