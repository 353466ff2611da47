/** The official conformance tests of CEL, as far as a condition can put them: their variables become attributes. */
import { tests as suite } from '@bufbuild/cel-spec/testdata/conformance.js';

type Json = Readonly<Record<string, unknown>>;

/** A test of the suite. `problem`: why no condition can put it. */
export type ConformanceCase = {
  readonly name: string;
  readonly expression: string;
  readonly wantsError: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** True where the suite is met; where it wants an error, anything but an error is true. */
  readonly condition: string | undefined;
  readonly problem: string | undefined;
};

class NotPut extends Error {}

/** A value of the suite as an expression. */
function written(value: Json): string {
  const [kind = '', content] = Object.entries(value)[0] ?? [];
  switch (kind) {
    case 'boolValue':
    case 'int64Value':
      return String(content);
    case 'uint64Value':
      return `${String(content)}u`;
    case 'doubleValue':
      return `double("${String(content)}")`;
    case 'stringValue':
      return JSON.stringify(content);
    case 'bytesValue':
      return `b"${[...Buffer.from(content as string, 'base64')].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}"`;
    case 'nullValue':
      return 'null';
    case 'typeValue':
      return String(content);
    case 'listValue':
      return `[${((content as { values?: readonly Json[] }).values ?? []).map((item) => `dyn(${written(item)})`).join(', ')}]`;
    case 'mapValue':
      return `{${((content as { entries?: readonly { key: Json; value: Json }[] }).entries ?? [])
        .map(({ key, value: item }) => `dyn(${written(key)}): dyn(${written(item)})`)
        .join(', ')}}`;
    case 'objectValue':
      return writtenTime(content as Json);
    default:
      throw new NotPut(`results of the kind ${kind}`);
  }
}

function writtenTime(message: Json): string {
  const type = String(message['@type']).replace('type.googleapis.com/', '');
  if (type === 'google.protobuf.Timestamp') return `timestamp("${String(message['value'])}")`;
  if (type === 'google.protobuf.Duration') return `duration("${String(message['value'])}")`;
  throw new NotPut('protobuf messages as results');
}

/** A bound value as an agent would send it. */
function sent(value: Json): unknown {
  const [kind = '', content] = Object.entries(value)[0] ?? [];
  switch (kind) {
    case 'boolValue':
    case 'stringValue':
      return content;
    case 'nullValue':
      return null;
    case 'int64Value':
    case 'doubleValue':
      if (!Number.isSafeInteger(Number(content)) && kind === 'int64Value') throw new NotPut('variables of 64 bits');
      return Number(content);
    case 'listValue':
      return ((content as { values?: readonly Json[] }).values ?? []).map(sent);
    case 'mapValue':
      return Object.fromEntries(
        ((content as { entries?: readonly { key: Json; value: Json }[] }).entries ?? []).map(({ key, value: item }) => {
          if (typeof key['stringValue'] !== 'string') throw new NotPut('variables with keys that are not text');
          return [key['stringValue'], sent(item)];
        }),
      );
    default:
      throw new NotPut(
        kind === 'objectValue' ? 'variables that are protobuf messages' : `variables of the kind ${kind}`,
      );
  }
}

/** Puts `a.b` bound to a value where the expression `attributes.a.b` finds it. */
function put(attributes: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [first = '', ...rest] = path;
  if (rest.length === 0) attributes[first] = value;
  else put((attributes[first] ??= {}) as Record<string, unknown>, rest, value);
}

const BINDING = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?<![\w.])\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*/g;

function bound(original: Json): { expression: string; attributes: Record<string, unknown> } {
  const attributes: Record<string, unknown> = {};
  const bindings = (original['bindings'] ?? {}) as Record<string, { value?: Json }>;
  const container = original['container'];
  for (const [name, { value }] of Object.entries(bindings)) {
    if (value === undefined) throw new NotPut('variables that are unknown');
    put(attributes, name.split('.'), sent(value));
  }
  const names = Object.keys(bindings);
  const expression = String(original['expr']).replace(BINDING, (found) => {
    if (/^["']|^(?:true|false|null)$/.test(found)) return found;
    const path = found.replace(/^\./, '');
    const isIn = (candidate: string): boolean =>
      names.some((name) => candidate === name || candidate.startsWith(`${name}.`));
    if (typeof container === 'string' && isIn(`${container}.${path}`)) return `attributes.${container}.${path}`;
    return isIn(path) ? `attributes.${path}` : found;
  });
  return { expression, attributes };
}

const TYPES: Readonly<Record<string, string>> = {
  boolValue: 'bool',
  int64Value: 'int',
  uint64Value: 'uint',
  doubleValue: 'double',
  stringValue: 'string',
  bytesValue: 'bytes',
  listValue: 'list',
  mapValue: 'map',
};

function conditionOf(original: Json, expression: string, hasBindings: boolean): string {
  const { value, evalError, anyEvalErrors, typedResult } = original;
  if (original['disableMacros'] !== undefined) throw new NotPut('macros that are switched off');
  if (original['unknown'] !== undefined || original['anyUnknowns'] !== undefined)
    throw new NotPut('results that are unknown');
  if (evalError !== undefined || anyEvalErrors !== undefined) return `[dyn(${expression})].size() == 1`;
  const result = (typedResult === undefined ? value : (typedResult as { result?: Json }).result) as Json | undefined;
  if (result === undefined && typedResult !== undefined) throw new NotPut('a type without a value');
  if (result === undefined) return `(${expression}) == true`;
  const [kind = ''] = Object.keys(result);
  if (result['doubleValue'] === 'NaN') return `dyn(${expression}) != dyn(${expression})`;
  const equal = `dyn(${expression}) == dyn(${written(result)})`;
  // An integer that an agent sends is a double, so a variable does not keep its type.
  return hasBindings || TYPES[kind] === undefined ? equal : `${equal} && type(${expression}) == ${TYPES[kind]}`;
}

function caseOf(original: Json, path: string): ConformanceCase {
  const wantsError = original['evalError'] !== undefined || original['anyEvalErrors'] !== undefined;
  const base = { name: `${path}/${String(original['name'])}`, expression: String(original['expr']), wantsError };
  try {
    const { expression, attributes } = bound(original);
    const condition = conditionOf(original, expression, Object.keys(attributes).length > 0);
    return { ...base, attributes, condition, problem: undefined };
  } catch (error) {
    if (!(error instanceof NotPut)) throw error;
    return { ...base, attributes: {}, condition: undefined, problem: error.message };
  }
}

type Suite = {
  readonly name?: string;
  readonly suites?: readonly Suite[];
  readonly tests?: readonly { original: unknown }[];
};

const casesOf = ({ name, suites = [], tests = [] }: Suite, path: readonly string[]): readonly ConformanceCase[] => {
  const here = [...path, name ?? ''];
  return [
    ...tests.map(({ original }) => caseOf(original as Json, here.slice(1).join('/'))),
    ...suites.flatMap((each) => casesOf(each, here)),
  ];
};

export const CONFORMANCE_CASES: readonly ConformanceCase[] = casesOf(suite as unknown as Suite, []);
