/**
 * Applies an allow's obligations to arguments and results: `redact`, `set` and `cap` edit them by dotted paths,
 * `notify` is shown to the operator. Pure: values come back edited, never changed in place.
 */
import { isMapping, jsonIn, type Mapping } from '../base/mapping.ts';

export const SUPPORTED_OBLIGATIONS = ['redact', 'set', 'cap', 'notify'] as const;

export type Obligation = {
  readonly id: string;
  readonly type: string;
  readonly properties: Mapping;
};

/** The edited value, or why an obligation cannot be met: then the call must not go on. */
export type Enforced<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

const REDACTED = '[redacted]';
const RESULT = 'result.';

/** The obligations of an answer of the gateway, which may have none, or be too old to know any. */
export function obligationsIn(value: unknown): readonly Obligation[] {
  if (!Array.isArray(value)) return [];
  return value.map((item: unknown) => {
    const { id, type, properties } = isMapping(item) ? item : {};
    return {
      id: typeof id === 'string' ? id : '',
      type: typeof type === 'string' ? type : '',
      properties: isMapping(properties) ? properties : {},
    };
  });
}

/** For doors that see no results. */
export const firstAboutResult = (obligations: readonly Obligation[]): Obligation | undefined =>
  obligations.find((obligation) => pathsOf(obligation).some((path) => path.startsWith(RESULT)));

/** The arguments of a call as they may be passed on. */
export const enforceOnArguments = (args: Mapping, obligations: readonly Obligation[]): Enforced<Mapping> =>
  enforce(args, obligations, (path) => (path.startsWith(RESULT) ? undefined : path));

/**
 * A result as it may be returned. In what tools, resources and prompts of MCP answer, a path names a member of the
 * answer, or what the answer is about: of the structured result, and of each text that is JSON.
 */
export function enforceOnResult(result: Mapping, obligations: readonly Obligation[]): Enforced<Mapping> {
  const inResult = (path: string): string | undefined =>
    path.startsWith(RESULT) ? path.slice(RESULT.length) : undefined;
  if (!obligations.some((obligation) => pathsOf(obligation).some((path) => inResult(path) !== undefined)))
    return { ok: true, value: result };
  const edited = enforce(result, obligations, inResult);
  if (!edited.ok) return edited;
  const inContent: ToPath = (path) => {
    const inside = inResult(path)?.replace(/^structuredContent\./, '');
    return inside === undefined || ENVELOPE.test(inside) ? undefined : inside;
  };
  const { structuredContent } = edited.value;
  const structured = isMapping(structuredContent) ? enforce(structuredContent, obligations, inContent) : undefined;
  if (structured?.ok === false) return structured;
  const whole = structured === undefined ? edited.value : { ...edited.value, structuredContent: structured.value };
  return enforceInTexts(whole, obligations, inContent) as Enforced<Mapping>;
}

/** Members of the answer itself. */
const ENVELOPE = /^(content|contents|messages|isError|_meta)(\.|$)/;
/** Keys that hold texts in answers: of tools, of resources, of prompts, and resources within. */
const HOLDERS = ['content', 'contents', 'messages', 'resource'];

/** Servers repeat a structured result as text for older clients: what is hidden in one must not be in the other. */
function enforceInTexts(value: unknown, obligations: readonly Obligation[], toPath: ToPath): Enforced<unknown> {
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const item of value as readonly unknown[]) {
      const edited = enforceInTexts(item, obligations, toPath);
      if (!edited.ok) return edited;
      items.push(edited.value);
    }
    return { ok: true, value: items };
  }
  if (!isMapping(value)) return { ok: true, value };
  let changed = value;
  const parsed = typeof value.text === 'string' && /^\s*[[{]/.test(value.text) ? jsonIn(value.text) : undefined;
  if (parsed !== undefined) {
    const edited = enforce({ root: parsed }, obligations, (path) => {
      const inside = toPath(path);
      return inside === undefined ? undefined : `root.${inside}`;
    });
    if (!edited.ok) return edited;
    if (edited.value.root !== parsed) changed = { ...changed, text: JSON.stringify(edited.value.root) };
  }
  for (const name of HOLDERS) {
    if (!Object.hasOwn(changed, name)) continue;
    const edited = enforceInTexts(changed[name], obligations, toPath);
    if (!edited.ok) return edited;
    changed = { ...changed, [name]: edited.value };
  }
  return { ok: true, value: changed };
}

/** The path within the value at hand; undefined when the path is not about it. */
type ToPath = (path: string) => string | undefined;

function pathsOf({ type, properties }: Obligation): readonly string[] {
  if (type === 'redact') return Array.isArray(properties.paths) ? properties.paths.filter(isText) : [];
  return isText(properties.path) ? [properties.path] : [];
}

const isText = (value: unknown): value is string => typeof value === 'string';

function enforce(value: Mapping, obligations: readonly Obligation[], toPath: ToPath): Enforced<Mapping> {
  let edited: unknown = value;
  for (const obligation of obligations) {
    const problem = problemOf(obligation);
    if (problem !== undefined) return { ok: false, problem };
    for (const path of pathsOf(obligation)) {
      const inside = toPath(path);
      if (inside === undefined) continue;
      const change = changeOf(obligation);
      if (change !== undefined) edited = changedAt(edited, inside.split('.'), change);
    }
  }
  return { ok: true, value: edited as Mapping };
}

/** An obligation that cannot be read is not met by leaving it out. */
function problemOf(obligation: Obligation): string | undefined {
  const { id, type, properties } = obligation;
  if (!(SUPPORTED_OBLIGATIONS as readonly string[]).includes(type))
    return `obligation ${id} has the type ${type}, which is not supported here`;
  if (type !== 'notify' && pathsOf(obligation).length === 0) return `obligation ${id} names no path`;
  if (type === 'cap' && typeof properties.max !== 'number') return `obligation ${id} has no number as its max`;
  return undefined;
}

/** Changes the value at a path; `isThere` tells a missing member from one that is to be set. */
type Change = { readonly creates: boolean; readonly apply: (value: unknown) => unknown };

function changeOf({ type, properties }: Obligation): Change | undefined {
  switch (type) {
    case 'redact':
      return { creates: false, apply: () => REDACTED };
    case 'set':
      return { creates: true, apply: () => properties.value ?? null };
    case 'cap':
      return { creates: false, apply: (value) => capped(value, properties.max as number) };
    default:
      return undefined;
  }
}

/** A number, or one written as text, is at most `max`; any other value there is replaced by it. */
function capped(value: unknown, max: number): unknown {
  if (typeof value === 'number') return Math.min(value, max);
  if (typeof value === 'string' && value.trim() !== '' && Number(value) <= max) return value;
  return max;
}

/** Lists are entered as a whole: `rows.email` means that member of each row. `*` means every member. */
function changedAt(value: unknown, path: readonly string[], change: Change): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return change.apply(value);
  if (Array.isArray(value)) {
    const inside = name === '*' ? rest : path;
    if (/^\d+$/.test(name)) {
      const at = Number(name);
      return at < value.length ? value.map((item, n) => (n === at ? changedAt(item, rest, change) : item)) : value;
    }
    return value.map((item: unknown) => changedAt(item, inside, change));
  }
  if (!isMapping(value)) return value;
  if (name === '*')
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, changedAt(item, rest, change)]));
  if (!Object.hasOwn(value, name)) {
    if (!change.creates) return value;
    return withMember(value, name, rest.length === 0 ? change.apply(undefined) : changedAt({}, rest, change));
  }
  return withMember(value, name, changedAt(value[name], rest, change));
}

/** `__proto__` is a name like any other. */
function withMember(value: Mapping, name: string, member: unknown): Mapping {
  const copy = Object.fromEntries(Object.entries(value));
  Object.defineProperty(copy, name, { value: member, enumerable: true, configurable: true, writable: true });
  return copy;
}

/**
 * Describes obligations for an audit entry. The messages for the operator are logged whether or not the caller shows
 * them.
 */
export function obligationsPayload(obligations: readonly Obligation[]) {
  const notices = obligations.filter(({ type }) => type === 'notify').map(({ properties }) => properties.message);
  return { obligations: obligations.map(({ id }) => id), ...(notices.length > 0 && { notices }) };
}
