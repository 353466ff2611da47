/** What a tool call does, as policies name it: the words from which each coding agent's table is made. */
import { isDeepStrictEqual } from 'node:util';
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { subjectsOfPatch } from './patch.ts';
import { absolutePath } from './paths.ts';
import { type Fields, type Read, readText, type Subject } from './tool.ts';

export type Use = { readonly tool: string; readonly input: Fields; readonly cwd: string | undefined };
/** One row of a table: what a tool does when it is called so. */
export type Mapping = (use: Use) => Read<readonly Subject[]>;
export type ToolTable = ReadonlyMap<string, Mapping>;

const one = (action: string, resource: string, attributes: Fields): Read<readonly Subject[]> =>
  ok([{ action, resource, attributes }]);

/**
 * The one of the names that the arguments have, since agents have renamed theirs. Where several are given, nobody knows
 * which of them the agent takes.
 */
function givenName(input: Fields, names: readonly string[]): Read<string | undefined> {
  const [given, ...others] = namesIn(input, names);
  const other = others.find((name) => !isDeepStrictEqual(input[name], input[given!]));
  return other === undefined ? ok(given) : invalid(other, `must not differ from ${given}`);
}

const namesIn = (input: Fields, names: readonly string[]): readonly string[] =>
  names.filter((name) => input[name] !== undefined && input[name] !== null);

/** `process.exec` on the whole command line. */
export const shell =
  (...names: readonly string[]): Mapping =>
  ({ input }) => {
    const given = givenName(input, names);
    if (!given.ok) return given;
    const { value: name = names[0]! } = given;
    const words = input[name];
    if (Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === 'string'))
      return one('process.exec', words.join(' '), input);
    const command = readText(input, name);
    return command.ok ? one('process.exec', command.value, input) : command;
  };

export type FileAction = 'file.read' | 'file.write' | 'file.edit';
type FileRow = {
  /** The arguments that may hold the path. */
  readonly path: readonly string[];
  /** Arguments that hold contents of files: they are no business of policies and of the log. */
  readonly contents?: readonly string[];
  /** Whether the working directory is meant where there is no path, as in a search. */
  readonly isOptional?: boolean;
  /** The arguments that may hold a pattern of files below the path. */
  readonly patterns?: readonly string[];
};

export const file =
  (action: FileAction, { path: names, contents = [], isOptional = false, patterns = [] }: FileRow): Mapping =>
  ({ input, cwd }) => {
    const stray = namesIn(input, patterns).find((name) => !staysBelow(input[name]));
    if (stray !== undefined) return invalid(stray, 'must be a pattern below the path; name other folders as the path');
    const given = givenName(input, names);
    if (!given.ok) return given;
    const { value: name } = given;
    const text = name === undefined && isOptional ? ok('.') : readText(input, name ?? names[0]!);
    if (!text.ok) return text;
    const path = absolutePath(text.value, cwd);
    return path.ok ? one(action, path.value, without(input, contents)) : path;
  };

/** False for a pattern that may match files elsewhere: it goes up, or one of its alternatives does or is absolute. */
const staysBelow = (pattern: unknown): boolean => typeof pattern === 'string' && !LEADS_OUT.test(pattern);
const LEADS_OUT = /\.\.|\[\.\]|(?:^|[{,(|!])\s*(?:[/\\~]|[a-z]:|\.(?:[},)|]|$))/i;

/** One check for each path of the lists. */
export const files =
  (action: FileAction, ...names: readonly string[]): Mapping =>
  ({ input, cwd }) => {
    const given = namesIn(input, names);
    const [name = names[0]!] = given;
    const paths = given.flatMap((each) => input[each]);
    if (paths.length === 0) return invalid(name, 'must be a list of paths');
    if (paths.length > MAX_PATHS) return invalid(name, `must not have more than ${MAX_PATHS} paths`);
    const subjects = new Map<string, Subject>();
    for (const path of paths) {
      const resolved = typeof path === 'string' ? absolutePath(path, cwd) : invalid(name, 'must be a list of paths');
      if (!resolved.ok) return resolved;
      subjects.set(resolved.value, { action, resource: resolved.value, attributes: input });
    }
    return ok([...subjects.values()]);
  };

const MAX_PATHS = 100;

const without = (input: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(input).filter(([name]) => !names.includes(name)));

/** A patch of many files: one check for each. */
export const patch =
  (...names: readonly string[]): Mapping =>
  ({ input, cwd }) => {
    const given = givenName(input, names);
    if (!given.ok) return given;
    const text = readText(input, given.value ?? names[0]!);
    return text.ok ? subjectsOfPatch(text.value, cwd) : text;
  };

/** `net.connect` on `<scheme>://<host><path>`, as at the door of Envoy: a query may hold secrets. */
export const web: Mapping = ({ input }) => {
  const given = readText(input, 'url');
  if (!given.ok) return given;
  const address = addressOf(given.value);
  return address === undefined
    ? invalid('url', 'must be the URL of a page')
    : one('net.connect', address, { ...input, url: address });
};

/**
 * A prompt that names the pages to read: one check for each. A URL goes as far as the agent reads it, to the next white
 * space: `http://a"@b` is a page of b.
 */
export const webPrompt =
  (name: string): Mapping =>
  (use) => {
    if (use.input[name] === undefined) return web(use);
    if (use.input.url !== undefined) return invalid('url', `must not be given beside ${name}`);
    const prompt = readText(use.input, name);
    if (!prompt.ok) return prompt;
    const addresses = new Set<string>();
    for (const [url] of prompt.value.matchAll(/https?:\/\/\S+/gi)) {
      const address = addressOf(url);
      if (address === undefined) return invalid(name, 'must name pages by valid URLs');
      addresses.add(address);
    }
    if (addresses.size === 0) return search(use);
    if (addresses.size > MAX_PATHS) return invalid(name, `must not name more than ${MAX_PATHS} pages`);
    return ok(
      [...addresses].map((resource) => ({ action: 'net.connect', resource, attributes: without(use.input, [name]) })),
    );
  };

/** `net.connect` on the tool: it reaches a search engine, and no address is known. */
export const search: Mapping = ({ tool, input }) => one('net.connect', tool, input);

function addressOf(text: string): string | undefined {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`;
  if (!URL.canParse(url)) return undefined;
  const { protocol, host, pathname } = new URL(url);
  return host === '' ? undefined : `${protocol}//${host}${pathname}`;
}

export const mcp = (server: string, tool: string, input: Fields): Read<readonly Subject[]> =>
  one('mcp.call', `${server}/${tool}`, input);

const MCP = /^mcp__(.+?)__(.+)$/s;

/** By the table; else `mcp__<server>__<tool>`, else any other tool by its name. */
export function subjectsOf(table: ToolTable, use: Use): Read<readonly Subject[]> {
  const mapping = table.get(use.tool);
  if (mapping !== undefined) return mapping(use);
  const [, server, tool] = MCP.exec(use.tool) ?? [];
  return server !== undefined && tool !== undefined
    ? mcp(server, tool, use.input)
    : one('tool.call', use.tool, use.input);
}
