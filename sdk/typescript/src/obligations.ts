/**
 * Applies an allow's obligations: `redact`, `set` and `cap` edit attributes and results by dotted paths, and `notify`
 * has a message. Values come back edited, never changed in place. A value that cannot be edited throws a TypeError:
 * leaving an obligation out would not be meeting it.
 */
import type { JsonObject, Obligation, ObligationType } from './types.ts';

export const OBLIGATION_TYPES = ['redact', 'set', 'cap', 'notify'] as const satisfies readonly ObligationType[];

const REDACTED = '[redacted]';
const RESULT = 'result';

/** Edits the attributes of an action. The same object if no obligation concerns it. */
export function editedAttributes(attributes: JsonObject | undefined, obligations: readonly Obligation[]) {
  const edited = edit(attributes ?? {}, obligations, (path) => path[0] !== RESULT || path.length === 1);
  return edited === attributes || (attributes === undefined && Object.keys(edited as object).length === 0)
    ? attributes
    : (edited as JsonObject);
}

/** Edits the result of a run's body. */
export function editedResult<T>(result: T, obligations: readonly Obligation[]): T {
  const edited = edit({ [RESULT]: result }, obligations, (path) => path[0] === RESULT && path.length > 1);
  return (edited as { readonly [RESULT]: T })[RESULT];
}

export const noticesIn = (obligations: readonly Obligation[]): readonly string[] =>
  obligations.filter(({ type }) => type === 'notify').map(({ properties }) => String(properties.message ?? ''));

function edit(
  value: object,
  obligations: readonly Obligation[],
  isHere: (path: readonly string[]) => boolean,
): unknown {
  let edited: unknown = value;
  for (const obligation of obligations) {
    const change = changeOf(obligation);
    for (const text of pathsOf(obligation)) {
      const path = text.split('.');
      if (isHere(path)) edited = changedAt(edited, path, { ...change, what: `obligation ${obligation.id}` });
    }
  }
  return edited;
}

type Change = {
  /** Whether a member is made where there is none. */
  readonly creates: boolean;
  readonly apply: (value: unknown) => unknown;
};
type NamedChange = Change & { readonly what: string };

function changeOf({ id, type, properties }: Obligation): Change {
  switch (type) {
    case 'redact':
      return { creates: false, apply: () => REDACTED };
    case 'set':
      return { creates: true, apply: () => properties.value ?? null };
    case 'cap': {
      const { max } = properties;
      if (typeof max !== 'number') throw new TypeError(`obligation ${id} has no number as its max`);
      return { creates: false, apply: (value) => capped(value, max) };
    }
    case 'notify':
      return { creates: false, apply: (value) => value };
    default:
      throw new TypeError(`obligation ${id} has the type ${type}, which this client does not support`);
  }
}

function pathsOf({ id, type, properties: { path, paths } }: Obligation): readonly string[] {
  if (type === 'notify') return [];
  const named = type === 'redact' ? paths : [path];
  if (!Array.isArray(named) || named.length === 0 || !named.every((each) => typeof each === 'string'))
    throw new TypeError(`obligation ${id} names no path`);
  return named as readonly string[];
}

/** A number, or one written as text, is at most `max`; any other value there is replaced by it. */
function capped(value: unknown, max: number): unknown {
  if (typeof value === 'number') return Math.min(value, max);
  if (typeof value === 'string' && value.trim() !== '' && Number(value) <= max) return value;
  return max;
}

/** A number counts in a list, another name goes into each of its items; `*` stands for every name. */
function changedAt(value: unknown, path: readonly string[], change: NamedChange): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return change.apply(value);
  if (typeof value === 'string') return changedInText(value, path, change);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const isIndex = /^\d+$/.test(name);
    const inside = isIndex || name === '*' ? rest : path;
    const changed = value.map((item: unknown, at) =>
      isIndex && at !== Number(name) ? item : changedAt(item, inside, change),
    );
    return changed.every((item, at) => item === value[at]) ? value : changed;
  }
  requirePlain(value, change);
  const fields = value as Readonly<Record<string, unknown>>;
  if (name === '*')
    return Object.keys(fields).reduce((all, key) => withMember(all, key, changedAt(fields[key], rest, change)), fields);
  if (Object.hasOwn(fields, name)) return withMember(fields, name, changedAt(fields[name], rest, change));
  if (!change.creates) return value;
  return withMember(fields, name, rest.length === 0 ? change.apply(undefined) : changedAt({}, rest, change));
}

/** Tools often answer with JSON as text. Other text has no names. */
function changedInText(text: string, path: readonly string[], change: NamedChange): string {
  if (!/^\s*[[{]/.test(text)) return text;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return text;
  }
  const edited = changedAt(parsed, path, change);
  return edited === parsed ? text : JSON.stringify(edited);
}

/** The content of a class or a stream is not in its properties, and would be passed on as it is. */
function requirePlain(value: object, { what }: NamedChange): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return;
  const { name } = (value.constructor ?? {}) as { readonly name?: unknown };
  throw new TypeError(
    `${what} is about a ${typeof name === 'string' && name !== '' ? name : 'value'}, which cannot be edited: return plain JSON`,
  );
}

/** `__proto__` is a name like any other. */
function withMember(fields: Readonly<Record<string, unknown>>, name: string, member: unknown) {
  if (Object.hasOwn(fields, name) && fields[name] === member) return fields;
  const copy = Object.fromEntries(Object.entries(fields));
  Object.defineProperty(copy, name, { value: member, enumerable: true, configurable: true, writable: true });
  return copy;
}
