/** Settings files with our hooks put in or taken out. Pure: texts in, texts out. */
import { parse, stringify } from 'smol-toml';
import { isMapping } from '../core/base/mapping.ts';
import { messageOf } from '../core/base/text.ts';
import { type CodingAgent, type Fields, type Installation, isOurs } from './tools.ts';

/** Why a file is left as it is. */
export class UnusableFile extends Error {}

/** `undefined` stands for no file, of what is read as of what is to be written. */
export type Text = string | undefined;

export const withHooks = (agent: CodingAgent, text: Text, installation: Installation): string =>
  agent.format === 'toml' ? tomlWith(agent, text ?? '', installation) : jsonWith(agent, text, installation);

export const withoutHooks = (agent: CodingAgent, text: string): Text =>
  agent.format === 'toml' ? tomlWithout(text) : jsonWithout(agent, text);

/** The hooks in a file, by event; ours only. */
export function ownHooks(agent: CodingAgent, text: string): Readonly<Record<string, readonly unknown[]>> {
  const { hooks } = agent.format === 'toml' ? parsedToml(text) : parsedJson(text);
  if (!isMapping(hooks)) return {};
  const own = Object.entries(hooks).map(([event, groups]): [string, readonly unknown[]] => [
    event,
    Array.isArray(groups) ? groups.filter((group) => isOurs(agent.name, group)) : [],
  ]);
  return Object.fromEntries(own.filter(([, groups]) => groups.length > 0));
}

/** The settings beside our hooks. */
export const settingsIn = (agent: CodingAgent, text: string): Fields =>
  agent.format === 'toml' ? parsedToml(text) : parsedJson(text);

// JSON: our hooks are entries of lists that others may have entries in.

function parsedJson(text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UnusableFile(`it is not JSON: ${messageOf(error)}`);
  }
  if (!isMapping(value)) throw new UnusableFile('it is not a JSON object');
  if (value.hooks !== undefined && !isMapping(value.hooks)) throw new UnusableFile('its "hooks" are not an object');
  for (const [event, groups] of Object.entries(value.hooks ?? {}))
    if (!Array.isArray(groups) && event in NO_LISTS === false)
      throw new UnusableFile(`its "hooks.${event}" is not a list`);
  return value;
}

/** Members of Gemini CLI's hooks besides the events. */
const NO_LISTS: Fields = { enabled: true, disabled: true, notifications: true };

function jsonWith(agent: CodingAgent, text: Text, installation: Installation): string {
  const file = text === undefined || text.trim() === '' ? {} : parsedJson(text);
  const rest = othersIn(agent, file);
  const hooks: Record<string, unknown> = { ...rest };
  for (const [event, groups] of Object.entries(agent.hooks(installation)))
    hooks[event] = [...((rest[event] as readonly unknown[] | undefined) ?? []), ...groups];
  return written({ ...agent.frame, ...file, hooks }, text);
}

function jsonWithout(agent: CodingAgent, text: string): Text {
  const file = parsedJson(text);
  const { hooks: _, ...others } = file;
  const rest = othersIn(agent, file);
  const isBare = Object.entries(others).every(([name, value]) => agent.frame[name] === value);
  if (Object.keys(rest).length === 0 && isBare) return undefined;
  return written(Object.keys(rest).length === 0 ? others : { ...file, hooks: rest }, text);
}

/** The hooks of others; events that only had ours are left out. */
function othersIn(agent: CodingAgent, { hooks }: Fields): Fields {
  if (!isMapping(hooks)) return {};
  return Object.fromEntries(
    Object.entries(hooks).flatMap(([event, groups]): [string, unknown][] => {
      if (!Array.isArray(groups)) return [[event, groups]];
      const rest = groups.flatMap((group: unknown) => withoutOwn(agent, group));
      return rest.length === 0 && groups.length > 0 ? [] : [[event, rest]];
    }),
  );
}

/** Somebody may have added a hook to our group. */
function withoutOwn(agent: CodingAgent, group: unknown): readonly unknown[] {
  if (!isOurs(agent.name, group)) return [group];
  if (!isMapping(group) || !Array.isArray(group.hooks)) return [];
  const hooks = group.hooks.filter((hook: unknown) => !isOurs(agent.name, hook));
  return hooks.length === 0 ? [] : [{ ...group, hooks }];
}

const written = (value: Fields, like: Text): string =>
  `${JSON.stringify(value, undefined, /^[{[]\r?\n([ \t]+)/.exec(like ?? '')?.[1] ?? 2)}\n`;

// TOML: our hooks are a block at the end of the file, so that the rest keeps its comments.

const BEGIN = '# >>> svc-gateway hooks: `svc hooks uninstall codex` removes what is between these lines';
const END = '# <<< svc-gateway hooks';

function parsedToml(text: string): Fields {
  try {
    return parse(text);
  } catch (error) {
    throw new UnusableFile(`it is not TOML: ${messageOf(error).split('\n')[0]}`);
  }
}

function tomlWith(agent: CodingAgent, text: string, installation: Installation): string {
  const rest = outsideOf(text);
  parsedToml(rest);
  const block = `${BEGIN}\n${stringify({ hooks: agent.hooks(installation) }).trim()}\n${END}\n`;
  const whole = `${rest}${rest === '' || rest.endsWith('\n') ? '' : '\n'}${block}`;
  try {
    parse(whole);
  } catch {
    throw new UnusableFile('its own hooks are in a form that cannot be extended; write them as [[hooks.<event>]]');
  }
  return whole;
}

function tomlWithout(text: string): Text {
  parsedToml(text);
  const rest = outsideOf(text);
  return rest.trim() === '' ? undefined : rest;
}

function outsideOf(text: string): string {
  const lines = text.split(/(?<=\n)/);
  const at = (mark: string): number => lines.findIndex((line) => line.trim() === mark);
  const [begin, end] = [at(BEGIN), at(END)];
  if (begin === -1 && end === -1) return text;
  if (begin === -1 || end < begin) throw new UnusableFile('only one of the two lines around our hooks is there');
  return [...lines.slice(0, begin), ...lines.slice(end + 1)].join('');
}
