/**
 * Pins: the definition of a tool as it was when it was first offered, so that a later change does not reach the agent.
 */
import { createHash } from 'node:crypto';
import { isMapping, mappingIn } from '../core/base/mapping.ts';
import type { Fields } from './json-rpc.ts';

/** `seen` is the digest of a definition that was offered since, and is not accepted. */
export type Pin = { readonly digest: string; readonly pinnedAt: string; readonly seen?: string };
/** By tool. */
export type ServerPins = ReadonlyMap<string, Pin>;
/** By server. */
export type Pins = ReadonlyMap<string, ServerPins>;

/** Members of a tool that a model reads, or a client acts on. */
const PINNED = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const;

/** The SHA-256 of a definition, whatever the order of its members. */
export const digestOf = (tool: Fields): string =>
  createHash('sha256')
    .update(PINNED.map((name) => canonical(tool[name])).join('\n'))
    .digest('hex');

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isMapping(value)) return JSON.stringify(value) ?? 'undefined';
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join(',')}}`;
}

/** Under this name a server's instructions are pinned: a tool has no such name, or both are withheld. */
export const INSTRUCTIONS = '@instructions';

export type Compared = {
  /** The tools whose definition is not the pinned one. */
  readonly changed: ReadonlySet<string>;
  /** The pins with what was new in them; the same object when nothing was. */
  readonly pins: Pins;
};

/** Tools that are new are pinned; two definitions of one name cannot both be. */
export function compare(pins: Pins, server: string, tools: readonly Fields[], now: Date): Compared {
  const known = pins.get(server) ?? new Map<string, Pin>();
  const next = new Map(known);
  const changed = new Set<string>();
  for (const tool of tools) {
    if (typeof tool.name !== 'string') continue;
    const digest = digestOf(tool);
    const pin = next.get(tool.name);
    if (pin === undefined) next.set(tool.name, { digest, pinnedAt: now.toISOString() });
    else if (pin.digest !== digest) {
      changed.add(tool.name);
      if (pin.seen !== digest) next.set(tool.name, { ...pin, seen: digest });
    }
  }
  const isSame = next.size === known.size && [...next].every(([name, pin]) => known.get(name) === pin);
  return { changed, pins: isSame ? pins : new Map([...pins, [server, next]]) };
}

/** The definitions that were offered last are the pinned ones now. With `tool`, only that of this tool. */
export function accept(pins: Pins, server: string, tool: string | undefined, now: Date): Pins {
  const known = pins.get(server) ?? new Map<string, Pin>();
  const next = new Map(
    [...known].map(([name, pin]): [string, Pin] =>
      pin.seen === undefined || (tool !== undefined && tool !== name)
        ? [name, pin]
        : [name, { digest: pin.seen, pinnedAt: now.toISOString() }],
    ),
  );
  return new Map([...pins, [server, next]]);
}

/** Forgets pins, so that the next definition is pinned whatever it is. */
export function reset(pins: Pins, server: string, tool: string | undefined): Pins {
  const next = new Map(pins);
  const known = pins.get(server);
  if (tool === undefined || known === undefined) next.delete(server);
  else next.set(server, new Map([...known].filter(([name]) => name !== tool)));
  return next;
}

export const pinsText = (pins: Pins): string =>
  `${JSON.stringify(
    {
      version: 1,
      servers: Object.fromEntries([...pins].map(([server, tools]) => [server, Object.fromEntries(tools)])),
    },
    null,
    2,
  )}\n`;

/** Undefined when the text is no file of pins: nothing may be pinned anew in its place. */
export function pinsIn(text: string): Pins | undefined {
  const read = mappingIn(text);
  if (read?.version !== 1 || !isMapping(read.servers)) return undefined;
  const pins = new Map<string, ServerPins>();
  for (const [server, tools] of Object.entries(read.servers)) {
    if (!isMapping(tools)) return undefined;
    const entries = Object.entries(tools);
    if (!entries.every((entry): entry is [string, Pin] => isPin(entry[1]))) return undefined;
    pins.set(server, new Map(entries));
  }
  return pins;
}

const isPin = (value: unknown): value is Pin =>
  isMapping(value) &&
  typeof value.digest === 'string' &&
  typeof value.pinnedAt === 'string' &&
  (value.seen === undefined || typeof value.seen === 'string');
