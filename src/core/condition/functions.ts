/**
 * The functions that conditions may call, by their signatures. `string.size(): int` is called as `text.size()`,
 * `size(string): int` as `size(text)`. An impossible operation is a failure, and a condition that fails denies.
 */
import { boolOf, doubleOf, intOf, uintOf } from './numbers.ts';
import { take } from './steps.ts';
import {
  charAt,
  characterCount,
  indexOf,
  joined,
  lastIndexOf,
  lowerAscii,
  replace,
  reversed,
  split,
  substring,
  takeForCharacters,
  trimmed,
  upperAscii,
} from './texts.ts';
import {
  DURATION_PARTS,
  localTime,
  parseDuration,
  parseTimestamp,
  secondsOf,
  TIME_PARTS,
  timestampOfSeconds,
  writtenDuration,
  writtenTimestamp,
} from './times.ts';
import { type CelType, DYN, listOf, mapOf, optionalOf, runtimeTypeName } from './types.ts';
import { decodeUtf8, encodeUtf8 } from './utf8.ts';
import {
  CelMap,
  Duration,
  Failure,
  isObject,
  type Kind,
  NO_VALUE,
  Optional,
  STEPS_OF_KEY,
  type Steps,
  sizeOfMap,
  type Timestamp,
  TypeValue,
  Uint,
  type Value,
} from './values.ts';

type Run = (steps: Steps, ...args: never[]) => Value;

/** A signature of a function. The object that a method is called on is its first parameter. */
export type Overload = {
  readonly name: string;
  readonly isMethod: boolean;
  readonly params: readonly CelType[];
  readonly result: CelType;
  readonly run: (steps: Steps, ...args: Value[]) => Value;
  /** A text that is written out and does not suit is a mistake of the author. */
  readonly isForLiterals: boolean;
};

const TYPES: Readonly<Record<string, CelType>> = {
  list: listOf(DYN),
  'list<string>': listOf({ kind: 'string' }),
  map: mapOf(DYN, DYN),
  opt: optionalOf(DYN),
  dyn: DYN,
};
const typeNamed = (name: string): CelType => TYPES[name] ?? { kind: name as Kind };

function overload([signature, run]: readonly [string, Run]): Overload {
  const [, owner, name = '', params = '', result = ''] = /^(?:(\w+)\.)?([\w.]+)\((.*)\): (.+)$/.exec(signature) ?? [];
  const isMethod = owner !== undefined && !NAMESPACES.includes(owner);
  const named = params === '' ? [] : params.split(', ');
  return {
    name: owner !== undefined && !isMethod ? `${owner}.${name}` : name,
    isMethod,
    params: (isMethod ? [owner, ...named] : named).map(typeNamed),
    result: typeNamed(result),
    run: run as Overload['run'],
    isForLiterals: named.at(-1) === 'string' && /^(?:int|uint|double|bool|timestamp|duration|get\w+)$/.test(name),
  };
}

/** A function of a namespace is called as `optional.of(…)`. */
export const NAMESPACES: readonly string[] = ['optional'];

const BAD_UTF8 = new Failure('these bytes are not UTF-8');
const NO_OPTIONAL = new Failure('this optional value is none; use orValue(…)');

/** To read or write a time takes as long as so many other steps. */
const STEPS_OF_TIME = 100;

const CONVERSIONS: readonly (readonly [string, Run])[] = [
  ['bool(bool): bool', (_, value: boolean) => value],
  ['bool(string): bool', (_, text: string) => boolOf(text)],
  ['int(int): int', (_, value: bigint) => value],
  ['int(uint): int', (_, { value }: Uint) => intOf(value)],
  ['int(double): int', (_, value: number) => intOf(value)],
  ['int(string): int', (_, text: string) => intOf(text)],
  ['int(timestamp): int', (_, time: Timestamp) => secondsOf(time)],
  ['uint(uint): uint', (_, value: Uint) => value],
  ['uint(int): uint', (_, value: bigint) => uintOf(value)],
  ['uint(double): uint', (_, value: number) => uintOf(value)],
  ['uint(string): uint', (_, text: string) => uintOf(text)],
  ['double(double): double', (_, value: number) => value],
  ['double(int): double', (_, value: bigint) => Number(value)],
  ['double(uint): double', (_, { value }: Uint) => Number(value)],
  ['double(string): double', (_, text: string) => doubleOf(text)],
  ['string(string): string', (_, text: string) => text],
  ['string(bool): string', (_, value: boolean) => String(value)],
  ['string(int): string', (_, value: bigint) => String(value)],
  ['string(uint): string', (_, { value }: Uint) => String(value)],
  ['string(double): string', (_, value: number) => String(value)],
  [
    'string(bytes): string',
    (steps, bytes: Uint8Array) => take(steps, 4 * bytes.length) ?? decodeUtf8(bytes) ?? BAD_UTF8,
  ],
  ['string(timestamp): string', (steps, time: Timestamp) => take(steps, STEPS_OF_TIME) ?? writtenTimestamp(time)],
  ['string(duration): string', (_, duration: Duration) => writtenDuration(duration)],
  ['bytes(bytes): bytes', (_, bytes: Uint8Array) => bytes],
  ['bytes(string): bytes', (steps, text: string) => take(steps, 4 * text.length) ?? encodeUtf8(text)],
  ['timestamp(timestamp): timestamp', (_, time: Timestamp) => time],
  ['timestamp(string): timestamp', (steps, text: string) => take(steps, STEPS_OF_TIME) ?? parseTimestamp(text)],
  ['timestamp(int): timestamp', (_, seconds: bigint) => timestampOfSeconds(seconds)],
  ['duration(duration): duration', (_, duration: Duration) => duration],
  ['duration(string): duration', (steps, text: string) => take(steps, STEPS_OF_TIME) ?? parseDuration(text)],
  ['dyn(dyn): dyn', (_, value: Value) => value],
  ['type(dyn): type', (_, value: Value) => new TypeValue(runtimeTypeName(value))],
];

function sizeOfKeys(steps: Steps, map: CelMap): bigint {
  const size = sizeOfMap(map);
  steps.left -= STEPS_OF_KEY * size;
  return BigInt(size);
}

const SIZES: readonly (readonly [string, Run])[] = [
  ['string', (steps: Steps, text: string) => takeForCharacters(steps, text) ?? BigInt(characterCount(text))] as const,
  ['bytes', (_: Steps, bytes: Uint8Array) => BigInt(bytes.length)] as const,
  ['list', (_: Steps, list: readonly Value[]) => BigInt(list.length)] as const,
  ['map', (steps: Steps, map: CelMap) => sizeOfKeys(steps, map)] as const,
].flatMap(([type, run]) => [
  [`size(${type}): int`, run as Run],
  [`${type}.size(): int`, run as Run],
]);

const TEXTS: readonly (readonly [string, Run])[] = [
  ['string.startsWith(string): bool', (_, text: string, part: string) => text.startsWith(part)],
  ['string.endsWith(string): bool', (_, text: string, part: string) => text.endsWith(part)],
  ['string.contains(string): bool', (_, text: string, part: string) => text.includes(part)],
  [
    'string.charAt(int): string',
    (steps, text: string, nth: bigint) => takeForCharacters(steps, text) ?? charAt(text, nth),
  ],
  [
    'string.indexOf(string): int',
    (steps, text: string, part: string) => takeForCharacters(steps, text) ?? indexOf(text, part),
  ],
  [
    'string.indexOf(string, int): int',
    (steps, text: string, part: string, at: bigint) => takeForCharacters(steps, text) ?? indexOf(text, part, at),
  ],
  [
    'string.lastIndexOf(string): int',
    (steps, text: string, part: string) => takeForCharacters(steps, text) ?? lastIndexOf(text, part),
  ],
  [
    'string.lastIndexOf(string, int): int',
    (steps, text: string, part: string, at: bigint) => takeForCharacters(steps, text) ?? lastIndexOf(text, part, at),
  ],
  [
    'string.substring(int): string',
    (steps, text: string, from: bigint) => takeForCharacters(steps, text) ?? substring(text, from),
  ],
  [
    'string.substring(int, int): string',
    (steps, text: string, from: bigint, to: bigint) => takeForCharacters(steps, text) ?? substring(text, from, to),
  ],
  ['string.split(string): list<string>', (steps, text: string, at: string) => split(text, at, undefined, steps)],
  [
    'string.split(string, int): list<string>',
    (steps, text: string, at: string, most: bigint) => split(text, at, most, steps),
  ],
  [
    'string.replace(string, string): string',
    (steps, text: string, part: string, by: string) => replace(text, part, by, undefined, steps),
  ],
  [
    'string.replace(string, string, int): string',
    (steps, text: string, part: string, by: string, most: bigint) => replace(text, part, by, most, steps),
  ],
  ['string.lowerAscii(): string', (steps, text: string) => lowerAscii(text, steps)],
  ['string.upperAscii(): string', (steps, text: string) => upperAscii(text, steps)],
  ['string.trim(): string', (steps, text: string) => trimmed(text, steps)],
  ['string.reverse(): string', (steps, text: string) => reversed(text, steps)],
  ['list.join(): string', (steps, parts: readonly Value[]) => joined(parts, '', steps)],
  ['list.join(string): string', (steps, parts: readonly Value[], by: string) => joined(parts, by, steps)],
];

/** To compute in a time zone takes as long as many other steps. */
const STEPS_OF_ZONE = 2000;

const TIMES: readonly (readonly [string, Run])[] = [
  ...Object.entries(TIME_PARTS).flatMap(([name, partOf]): readonly (readonly [string, Run])[] => {
    const part = (local: Date | Failure): Value => (local instanceof Failure ? local : BigInt(partOf(local)));
    return [
      [`timestamp.${name}(): int`, (_, time: Timestamp) => part(localTime(time, undefined))],
      [
        `timestamp.${name}(string): int`,
        (steps, time: Timestamp, zone: string) => take(steps, STEPS_OF_ZONE) ?? part(localTime(time, zone)),
      ],
    ];
  }),
  ...Object.entries(DURATION_PARTS).map(([name, partOf]): readonly [string, Run] => [
    `duration.${name}(): int`,
    (_, { ns }: Duration) => partOf(ns),
  ]),
];

/** The value that a type has where nothing was set, which `optional.ofNonZeroValue` takes for none. */
function isZero(value: Value): boolean {
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0;
  if (value instanceof CelMap || isObject(value)) return sizeOfMap(value) === 0;
  if (value instanceof Duration) return value.ns === 0n;
  if (value instanceof Uint) return value.value === 0n;
  return value === null || value === '' || value === false || value === 0 || value === 0n;
}

const OPTIONALS: readonly (readonly [string, Run])[] = [
  ['optional.none(): opt', () => NO_VALUE],
  ['optional.of(dyn): opt', (_, value: Value) => new Optional(value)],
  ['optional.ofNonZeroValue(dyn): opt', (_, value: Value) => (isZero(value) ? NO_VALUE : new Optional(value))],
  ['opt.hasValue(): bool', (_, { value }: Optional) => value !== undefined],
  ['opt.value(): dyn', (_, { value }: Optional) => (value === undefined ? NO_OPTIONAL : value)],
  ['opt.or(opt): opt', (_, one: Optional, other: Optional) => (one.value === undefined ? other : one)],
  ['opt.orValue(dyn): dyn', (_, { value }: Optional, other: Value) => (value === undefined ? other : value)],
];

const OVERLOADS: readonly Overload[] = [...CONVERSIONS, ...SIZES, ...TEXTS, ...TIMES, ...OPTIONALS].map(overload);

const keyOf = (name: string, isMethod: boolean, argCount: number): string => `${isMethod}/${name}/${argCount}`;

const BY_CALL: ReadonlyMap<string, readonly Overload[]> = OVERLOADS.reduce((found, each) => {
  const key = keyOf(each.name, each.isMethod, each.params.length);
  return found.set(key, [...(found.get(key) ?? []), each]);
}, new Map<string, Overload[]>());

/** With as many arguments, that of a method included. */
export const overloadsOf = (name: string, isMethod: boolean, argCount: number): readonly Overload[] =>
  BY_CALL.get(keyOf(name, isMethod, argCount)) ?? [];

export const FUNCTION_NAMES: ReadonlySet<string> = new Set(OVERLOADS.map(({ name }) => name));
