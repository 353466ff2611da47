/**
 * Reads the subject of an agent's request to a server, in the words of policies; and keeps the names of several servers
 * apart.
 */
import { isMapping } from '../core/base/mapping.ts';
import { type Asked, askedIn, MCP_ACTION } from '../core/mcp/asked.ts';
import type { Fields, Request } from './json-rpc.ts';

/** The subject of a policy's decision. */
export type Subject = {
  readonly action: (typeof MCP_ACTION)[Asked['kind']];
  /** `<server>/<tool>`, `<server>/<uri>` or `<server>/<prompt>`. */
  readonly resource: string;
  readonly attributes: Fields;
};

export const subjectOf = (server: string, { kind, name, args }: Asked): Subject => ({
  action: MCP_ACTION[kind],
  resource: `${server}/${name}`,
  attributes: args,
});

/** Returns the request's subject; a text if it is malformed; undefined if it needs no check. */
export function askedBy({ method, params = {} }: Request): Asked | string | undefined {
  const asked = askedIn(method, params);
  return asked?.ok === false ? `${asked.fault.field} ${asked.fault.problem}` : asked?.value;
}

/** Returns the legible parts of a request that cannot be checked as it is; undefined if it needs no check. */
export function legibleIn(
  method: string,
  params: Fields = {},
): { readonly action: Subject['action']; readonly name: string } | undefined {
  const { ref } = params;
  const about = isMapping(ref) ? ref : params;
  const name = [about.name, about.uri].find((text) => typeof text === 'string') as string | undefined;
  const kind = method === 'completion/complete' && about.type === 'ref/resource' ? 'resource' : KIND[method];
  return kind === undefined ? undefined : { action: MCP_ACTION[kind], name: name ?? '' };
}

const KIND: Readonly<Record<string, Asked['kind']>> = {
  'tools/call': 'tool',
  'prompts/get': 'prompt',
  'resources/read': 'resource',
  'resources/subscribe': 'resource',
  'subscriptions/listen': 'resource',
  'completion/complete': 'prompt',
};

/** The same request, with another name and other arguments in it. */
export function renamed({ method, params = {} }: Request, name: string, args: Fields): Fields {
  if (method === 'tools/call') {
    const { task: _, ...rest } = params;
    return { ...rest, name, ...(params.arguments === undefined && isEmpty(args) ? {} : { arguments: args }) };
  }
  if (method === 'prompts/get')
    return { ...params, name, ...(params.arguments === undefined && isEmpty(args) ? {} : { arguments: args }) };
  if (method === 'completion/complete' && isMapping(params.ref) && params.ref.type === 'ref/prompt')
    return { ...params, ref: { ...params.ref, name } };
  return params;
}

const isEmpty = (fields: Fields): boolean => Object.keys(fields).length === 0;

const SEPARATOR = '__';

/** A server's name is part of tools' names and of resources in policies, so it has a plain spelling. */
export const isServerName = (text: string): boolean => /^[A-Za-z0-9_.-]{1,64}$/.test(text) && !text.includes(SEPARATOR);
export const SERVER_NAME_RULE = 'a server name has 1 to 64 letters, digits, `.`, `-` and single `_`';

/** The tool names that clients accept. */
const CLIENT_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** The name under which one of several servers offers a thing; undefined when clients would refuse it. */
export function prefixed(server: string, name: string): string | undefined {
  const whole = `${server}${SEPARATOR}${name}`;
  return CLIENT_NAME.test(whole) ? whole : undefined;
}

/** The server and its own name for the thing; undefined when the name is not of this form. */
export function unprefixed(name: string): { readonly server: string; readonly name: string } | undefined {
  const at = name.indexOf(SEPARATOR);
  return at < 1 ? undefined : { server: name.slice(0, at), name: name.slice(at + SEPARATOR.length) };
}
