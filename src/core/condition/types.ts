/** The types of conditions, as far as they are known when a policy is loaded. */
import {
  CelMap,
  entriesOf,
  isObject,
  KINDS,
  type Kind,
  kindOf,
  Optional,
  STEPS_OF_KEY,
  type Steps,
  sizeOfMap,
  type Value,
} from './values.ts';

/** `dyn` is only known when it is evaluated: what agents send. */
export type CelType = {
  readonly kind: Kind | 'dyn' | 'agent';
  /** The type of the elements of a list, the values of a mapping, or the content of an optional value. */
  readonly item?: CelType;
  readonly key?: CelType;
};

export const DYN: CelType = { kind: 'dyn' };
export const BOOL: CelType = { kind: 'bool' };
export const STRING: CelType = { kind: 'string' };
export const DOUBLE: CelType = { kind: 'double' };
export const INT: CelType = { kind: 'int' };
export const TYPE: CelType = { kind: 'type' };
export const AGENT: CelType = { kind: 'agent' };
export const listOf = (item: CelType): CelType => ({ kind: 'list', item });
export const mapOf = (key: CelType, item: CelType): CelType => ({ kind: 'map', key, item });
export const optionalOf = (item: CelType): CelType => ({ kind: 'optional', item });

const NAMES: Readonly<Partial<Record<CelType['kind'], string>>> = {
  timestamp: 'google.protobuf.Timestamp',
  duration: 'google.protobuf.Duration',
  agent: 'Agent',
};

export function typeName({ kind, key, item = DYN }: CelType): string {
  if (kind === 'list' || kind === 'optional') return `${kind}<${typeName(item)}>`;
  if (kind === 'map') return `map<${typeName(key ?? DYN)}, ${typeName(item)}>`;
  return NAMES[kind] ?? kind;
}

/** Returns the name of the type that `type(value)` yields. */
export function runtimeTypeName(value: Value): string {
  const kind = kindOf(value);
  return kind === 'null' ? 'null_type' : kind === 'optional' ? 'optional_type' : (NAMES[kind] ?? kind);
}

/** The names that stand for types. */
export const TYPE_NAMES: ReadonlySet<string> = new Set(
  KINDS.map((kind) => (kind === 'null' ? 'null_type' : kind === 'optional' ? 'optional_type' : (NAMES[kind] ?? kind))),
);

/** Whether a value of the one type may be one of the other. */
export function mayBe(a: CelType, b: CelType): boolean {
  if (a.kind === 'dyn' || b.kind === 'dyn') return true;
  if (a.kind !== b.kind) return false;
  return mayBe(a.item ?? DYN, b.item ?? DYN) && mayBe(a.key ?? DYN, b.key ?? DYN);
}

/** The type of what may be either; `dyn` where they have nothing in common. */
export function join(a: CelType, b: CelType): CelType {
  if (a.kind !== b.kind) return DYN;
  if (a.item === undefined && b.item === undefined) return a;
  const item = join(a.item ?? DYN, b.item ?? DYN);
  return a.kind === 'map' ? mapOf(join(a.key ?? DYN, b.key ?? DYN), item) : { kind: a.kind, item };
}

export const joinAll = (types: readonly CelType[]): CelType =>
  types.length === 0 ? DYN : types.reduce((joined, type) => join(joined, type));

const NUMBERS: readonly string[] = ['int', 'uint', 'double'];
export const isNumeric = ({ kind }: CelType): boolean => NUMBERS.includes(kind);

/** Below that, every list is one of anything: agents choose how deep they nest, and a message should be short. */
const MAX_NAMED_DEPTH = 2;

/** The type of a value, by its first elements. Takes the steps of listing all keys. */
export function typeOfValue(value: Value, steps: Steps, depth = MAX_NAMED_DEPTH): CelType {
  const kind = kindOf(value);
  if (value instanceof Optional) {
    return value.value === undefined || depth === 0 ? { kind } : optionalOf(typeOfValue(value.value, steps, depth - 1));
  }
  if (Array.isArray(value)) {
    const [first] = value;
    return first === undefined || depth === 0 ? listOf(DYN) : listOf(typeOfValue(first, steps, depth - 1));
  }
  if (!(value instanceof CelMap) && !isObject(value)) return { kind };
  if (depth === 0) return mapOf(DYN, DYN);
  steps.left -= STEPS_OF_KEY * sizeOfMap(value);
  const [first] = entriesOf(value);
  return first === undefined
    ? mapOf(DYN, DYN)
    : mapOf(typeOfValue(first[0], steps, depth - 1), typeOfValue(first[1], steps, depth - 1));
}

/** To write a message takes as long as so many other steps. */
const STEPS_OF_MESSAGE = 20;

export function nameOfValue(value: Value, steps: Steps): string {
  steps.left -= STEPS_OF_MESSAGE;
  return typeName(typeOfValue(value, steps));
}

/** The type of an operand in a message: `dyn<…>` says that only the value has it. */
export const operandName = (type: CelType, value: Value, steps: Steps): string =>
  type.kind === 'dyn' ? `dyn<${nameOfValue(value, steps)}>` : typeName(type);
