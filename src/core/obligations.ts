/**
 * What an allow obliges its door to do to arguments and results: `redact`, `set` and `cap` edit them by dotted paths,
 * `notify` is shown to the operator. Pure: values come back edited, never changed in place.
 */

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const SUPPORTED_OBLIGATIONS = ['redact', 'set', 'cap', 'notify'] as const;

export type Obligation = {
  readonly id: string;
  readonly type: string;
  readonly properties: Fields;
};

/** The edited value, or why an obligation cannot be met: then the call must not go on. */
export type Enforced<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

const REDACTED = '[redacted]';
const RESULT = 'result.';

/** The obligations of an answer of the gateway, which may have none, or be too old to know any. */
export function obligationsIn(value: unknown): readonly Obligation[] {
  if (!Array.isArray(value)) return [];
  return value.map((item: unknown) => {
    const { id, type, properties } = isFields(item) ? item : {};
    return {
      id: typeof id === 'string' ? id : '',
      type: typeof type === 'string' ? type : '',
      properties: isFields(properties) ? properties : {},
    };
  });
}

/** The arguments of a call as they may be passed on. */
export const enforceOnArguments = (args: Fields, obligations: readonly Obligation[]): Enforced<Fields> =>
  enforce(args, obligations, (path) => (path.startsWith(RESULT) ? undefined : path));

/** A result as it may be returned. In tools' results, each text that is JSON is edited as JSON. */
export function enforceOnResult(result: Fields, obligations: readonly Obligation[]): Enforced<Fields> {
  const inResult = (path: string): string | undefined =>
    path.startsWith(RESULT) ? path.slice(RESULT.length) : undefined;
  if (!obligations.some((obligation) => pathsOf(obligation).some((path) => inResult(path) !== undefined)))
    return { ok: true, value: result };
  const edited = enforce(result, obligations, inResult);
  if (!edited.ok || !Array.isArray(edited.value.content)) return edited;
  const content: unknown[] = [];
  for (const item of edited.value.content as readonly unknown[]) {
    const block = enforceInText(item, obligations, inResult);
    if (!block.ok) return block;
    content.push(block.value);
  }
  return { ok: true, value: { ...edited.value, content } };
}

/** Servers repeat a structured result as text for older clients: what is hidden in one must not be in the other. */
function enforceInText(item: unknown, obligations: readonly Obligation[], toPath: ToPath): Enforced<unknown> {
  if (!isFields(item) || typeof item.text !== 'string') return { ok: true, value: item };
  const parsed = jsonIn(item.text);
  if (parsed === undefined) return { ok: true, value: item };
  // A path may name the structured result, or what it holds.
  const inText: ToPath = (path) => toPath(path)?.replace(/^structuredContent\./, '');
  const edited = enforce({ root: parsed }, obligations, (path) => {
    const inside = inText(path);
    return inside === undefined ? undefined : `root.${inside}`;
  });
  if (!edited.ok) return edited;
  const { root } = edited.value;
  return { ok: true, value: root === parsed ? item : { ...item, text: JSON.stringify(root) } };
}

function jsonIn(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The path within the value at hand; undefined when the path is not about it. */
type ToPath = (path: string) => string | undefined;

function pathsOf({ type, properties }: Obligation): readonly string[] {
  if (type === 'redact') return Array.isArray(properties.paths) ? properties.paths.filter(isText) : [];
  return isText(properties.path) ? [properties.path] : [];
}

const isText = (value: unknown): value is string => typeof value === 'string';

function enforce(value: Fields, obligations: readonly Obligation[], toPath: ToPath): Enforced<Fields> {
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
  return { ok: true, value: edited as Fields };
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

/** What becomes of the value at a path; `isThere` tells a missing member from one that is to be set. */
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

/** A number, or one written as text, is at most `max`; anything else that stands there is replaced by it. */
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
  if (!isFields(value)) return value;
  if (name === '*')
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, changedAt(item, rest, change)]));
  if (!Object.hasOwn(value, name)) {
    if (!change.creates) return value;
    return withMember(value, name, rest.length === 0 ? change.apply(undefined) : changedAt({}, rest, change));
  }
  return withMember(value, name, changedAt(value[name], rest, change));
}

/** `__proto__` is a name like any other. */
function withMember(value: Fields, name: string, member: unknown): Fields {
  const copy = Object.fromEntries(Object.entries(value));
  Object.defineProperty(copy, name, { value: member, enumerable: true, configurable: true, writable: true });
  return copy;
}
