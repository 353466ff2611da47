/** The rows of the tables of tools: what a call does as policies name it, and which of its arguments say so. */
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { givenName, namesIn } from './arguments.ts';
import { readText } from './event-fields.ts';
import { MCP_NAME, readingsOf } from './mcp-names.ts';
import type { Fields, Read, Subject } from './tool.ts';

export type Use = { readonly tool: string; readonly input: Fields; readonly cwd: string | undefined };
export type Mapping = (use: Use) => Read<readonly Subject[]>;

/** Maps one tool to the effect of its call. */
export type Row = {
  /** The action and its resource, in the words of docs/hooks.md. */
  readonly becomes: string;
  /** The arguments that name the resource, or decide the action. */
  readonly reads: readonly string[];
  /** The arguments of which policies and the log get the digest and the size. */
  readonly digests: readonly string[];
  /** All others that the agent declares: attributes, as they are. */
  readonly others: readonly string[];
  /** Which calls are refused, beside those that are for every tool. */
  readonly refuses: string;
  readonly subjects: Mapping;
};
export type ToolTable = ReadonlyMap<string, Row>;

export const one = (action: string, resource: string, attributes: Fields): Read<readonly Subject[]> =>
  ok([{ action, resource, attributes }]);

/** More arguments that a tool has, and that say nothing about what it reaches. */
export const passing = (row: Row, ...names: readonly string[]): Row => ({ ...row, others: [...row.others, ...names] });

/** `tool.call` on its name. */
export const tool = (...others: readonly string[]): Row => ({
  becomes: '`tool.call` on its name',
  reads: [],
  digests: [],
  others,
  refuses: '',
  subjects: ({ tool: name, input }) => one('tool.call', name, input),
});

/** The call of a tool that also does what these rows say, wherever the arguments of theirs are given. */
export function toolAnd(...rows: readonly Row[]): Row {
  const itself = tool();
  return {
    becomes: [itself.becomes, ...rows.map(({ becomes, reads }) => `${becomes}, if \`${reads[0]}\` is given`)].join(
      '; ',
    ),
    reads: rows.flatMap(({ reads }) => reads),
    digests: rows.flatMap(({ digests }) => digests),
    others: [],
    refuses: '',
    subjects: (use) =>
      joined(
        [itself, ...rows.filter(({ reads }) => namesIn(use.input, reads).length > 0)].map((row) => row.subjects(use)),
      ),
  };
}

/** Exactly one of the rows: the one whose arguments are given. */
export const either = (...rows: readonly Row[]): Row => ({
  becomes: rows.map(({ becomes, reads }) => `${becomes}, if \`${reads[0]}\` is given`).join('; '),
  reads: rows.flatMap(({ reads }) => reads),
  digests: rows.flatMap(({ digests }) => digests),
  others: [],
  refuses: 'with none of these',
  subjects: (use) => {
    const given = rows.filter(({ reads }) => namesIn(use.input, reads).length > 0);
    return joined((given.length === 0 ? rows.slice(0, 1) : given).map((row) => row.subjects(use)));
  },
});

export function joined(parts: readonly Read<readonly Subject[]>[]): Read<readonly Subject[]> {
  const subjects: Subject[] = [];
  for (const part of parts) {
    if (!part.ok) return part;
    subjects.push(...part.value);
  }
  return ok(subjects);
}

/** `process.exec` on the whole command line. */
export const shell = (...names: readonly string[]): Row => ({
  becomes: '`process.exec` on the command line',
  reads: names,
  digests: [],
  others: [],
  refuses: 'without a command',
  subjects: ({ input }) => {
    const given = givenName(input, names);
    if (!given.ok) return given;
    const { value: name = names[0]! } = given;
    const words = input[name];
    if (Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === 'string'))
      return one('process.exec', words.join(' '), input);
    const command = readText(input, name);
    return command.ok ? one('process.exec', command.value, input) : command;
  },
});

const USUAL_SHELL = /^(?:\/(?:usr\/(?:local\/)?)?bin\/)?(?:ba|z|da)?sh$/;

/** A command for a shell that the call names: another program in its place would do what it likes with the command. */
export function shellOf(name: string, ...names: readonly string[]): Row {
  const row = shell(...names);
  return {
    ...row,
    reads: [...row.reads, name],
    refuses: `without a command; \`${name}\` other than sh, bash, dash or zsh`,
    subjects: (use) => {
      const given = use.input[name];
      if (given !== undefined && given !== null && !(typeof given === 'string' && USUAL_SHELL.test(given)))
        return invalid(name, 'must be sh, bash, dash or zsh; run another program by the command');
      return row.subjects(use);
    },
  };
}

/** Text typed into a running program, which may be a shell. Nothing, Ctrl-C and Ctrl-D are no command. */
export const keystrokes = (name: string): Row => {
  const row = shell(name);
  return {
    ...row,
    becomes: '`process.exec` on what is typed; `tool.call` if that is nothing, Ctrl-C or Ctrl-D',
    refuses: 'with other control characters than tabs and line feeds',
    subjects: (use) =>
      /^[\u0003\u0004]*$/.test(String(use.input[name] ?? '')) ? tool().subjects(use) : row.subjects(use),
  };
};

/** `mcp.call` on `<server>/<tool>`. */
export const mcp = (server: string, name: string, input: Fields): Read<readonly Subject[]> =>
  one('mcp.call', `${server}/${name}`, input);

/** `mcp.read` on `<server>/<uri>`, as at the guard of MCP servers. */
export const mcpResource = (server: string, uri: string): Row => ({
  becomes: '`mcp.read` on `<server>/<uri>`',
  reads: [server, uri],
  digests: [],
  others: [],
  refuses: 'without a server or a URI',
  subjects: ({ input }) => {
    const from = readText(input, server);
    if (!from.ok) return from;
    const what = readText(input, uri);
    return what.ok ? one('mcp.read', `${from.value}/${what.value}`, input) : what;
  },
});

/** Arguments by which a tool that no table has may run a command. */
const COMMANDS = ['command', 'cmd', 'code'];

/** By the table; else the tool of an MCP server; else any other tool by its name, and by the command that it gets. */
export function subjectsOf(table: ToolTable, use: Use): Read<readonly Subject[]> {
  const row = table.get(use.tool);
  if (row !== undefined) return row.subjects(use);
  if (MCP_NAME.test(use.tool)) {
    const readings = readingsOf(use.tool);
    return readings.ok ? joined(readings.value.map(([server, name]) => mcp(server, name, use.input))) : readings;
  }
  const commands = namesIn(use.input, COMMANDS).map((name) => shell(name).subjects(use));
  return joined([tool().subjects(use), ...commands]);
}
