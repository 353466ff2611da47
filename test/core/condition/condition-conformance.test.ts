// The package holds the official suite, of cel-spec, as data: what CEL means is not ours to write down.
import { tests as suite } from '@bufbuild/cel-spec/testdata/conformance.js';
import { describe, expect, test } from 'vitest';
import { ConditionVariables, compileCondition } from '../../../src/core/condition/condition.ts';

type Json = Readonly<Record<string, unknown>>;
type Suite = typeof suite;

/** Where conditions differ from CEL, and are meant to or may. */
const KNOWN_TO_DIFFER: readonly (readonly [why: string, expressions: readonly string[]])[] = [
  ['JSON has one kind of number, so that the remainder of fractions is one too', ['47.5 % 5.5']],
  [
    'times are to the millisecond',
    [
      "timestamp('0001-01-01T00:00:01.999999999Z') + duration('999999999ns') == timestamp('0001-01-01T00:00:02.999999998Z')",
    ],
  ],
  [
    'sums of times and durations have no bounds',
    [
      "timestamp('0001-01-01T00:00:00Z') + duration('-1s')",
      "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
      "timestamp('9999-12-31T23:59:59.999999999Z') + duration('1ns')",
      "timestamp('0001-01-01T00:00:00Z') + duration('-1ns')",
      "timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')",
      "timestamp('0001-01-01T00:00:00Z') - timestamp('9999-12-31T23:59:59Z')",
      "duration('-320000000000s')",
      "duration('320000000000s')",
      "duration('-200000000000s') + duration('-200000000000s')",
      "duration('200000000000s') + duration('200000000000s')",
      "duration('-200000000000s') - duration('200000000000s')",
      "duration('200000000000s') - duration('-200000000000s')",
    ],
  ],
  [
    'the ends of 64 bits, which nothing that agents send reaches',
    [
      'int(-9223372036854775808.0)',
      '-(-9223372036854775808)',
      '(-9223372036854775808)/-1',
      'dyn(9223372036854775807) < 9223372036854775808.0',
      'dyn(9223372036854775808.0) > 9223372036854775807',
      'dyn(9223372036854775808.0) <= 9223372036854775807',
      'dyn(9223372036854775807) >= 9223372036854775808.0',
    ],
  ],
  [
    'unsigned numbers, which agents cannot send',
    [
      '[7, 8, 9][dyn(0u)]',
      'dyn(3u) in [5, 4, 3, 2, 1]',
      'dyn(3u) in [5.0, 4.0, 3.0, 2.0, 1.0]',
      'dyn(3) in [5u, 4u, 3u, 2u, 1u]',
      'dyn(3.0) in [5u, 4u, 3u, 2u, 1u]',
    ],
  ],
  [
    'bytes, which agents cannot send',
    ["b'ÿ'", "b'ÿ' == b'\\303\\277'", "b'\\303\\277' != b'ÿ'", "string(b'\\000\\xff')"],
  ],
  [
    'maps that are written out with keys other than text, or with one twice',
    [
      '{3.3:15.15, 1.0: 5}[1.0]',
      '{null:false}[null]',
      '{true:1,false:2,true:3}[true]',
      "{6: 'six', 7: 'seven', 8: 'eight'}.exists_one(foo, foo % 5 == 2)",
    ],
  ],
  [
    'trim() takes for white space what JavaScript does',
    [
      "'\\u0085\\u00a0\\u1680text'.trim() == 'text'",
      "'\\u180etext\\u200b\\u200c\\u200d\\u2060\\ufeff'.trim() == '\\u180etext\\u200b\\u200c\\u200d\\u2060\\ufeff'",
    ],
  ],
];

/** A value of the suite as an expression; undefined for what conditions have no word for. */
function written(value: Json): string | undefined {
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
    case 'listValue':
      return together((content as { values?: readonly Json[] }).values ?? [], (item) => dynamic(written(item)), '[]');
    case 'mapValue':
      return together(
        (content as { entries?: readonly { key: Json; value: Json }[] }).entries ?? [],
        ({ key, value: item }) => pair(dynamic(written(key)), dynamic(written(item))),
        '{}',
      );
    case 'objectValue':
      return writtenTime(content as Json);
    default:
      return undefined;
  }
}
const dynamic = (text: string | undefined): string | undefined => (text === undefined ? undefined : `dyn(${text})`);
const pair = (key: string | undefined, value: string | undefined): string | undefined =>
  key === undefined || value === undefined ? undefined : `${key}: ${value}`;
function together<T>(
  items: readonly T[],
  write: (item: T) => string | undefined,
  [open, close]: string,
): string | undefined {
  const parts = items.map(write);
  return parts.includes(undefined) ? undefined : `${open}${parts.join(', ')}${close}`;
}
function writtenTime(message: Json): string | undefined {
  if (message['@type'] === 'type.googleapis.com/google.protobuf.Timestamp')
    return `timestamp("${String(message['value'])}")`;
  return message['@type'] === 'type.googleapis.com/google.protobuf.Duration'
    ? `duration("${String(message['value'])}")`
    : undefined;
}

const originalsOf = ({ suites = [], tests = [] }: Suite): readonly Json[] => [
  ...tests.map(({ original }) => original as Json),
  ...suites.flatMap(originalsOf),
];

/**
 * As a condition: true where the suite is met. Where it wants an error, anything but an error is true. Undefined: it
 * needs what conditions do not have.
 */
function conditionOf({
  expr,
  value,
  evalError,
  anyEvalErrors,
  bindings,
  container,
  typedResult,
  disableMacros,
}: Json): string | undefined {
  if (bindings !== undefined || container !== undefined || disableMacros !== undefined) return undefined;
  if (evalError !== undefined || anyEvalErrors !== undefined) return `[dyn(${String(expr)})].size() == 1`;
  if (value === undefined) return typedResult === undefined ? `(${String(expr)}) == true` : undefined;
  const expected = written(value as Json);
  return expected === undefined ? undefined : `dyn(${String(expr)}) == dyn(${expected})`;
}

describe('policy condition conformance', () => {
  test('an accepted condition evaluates as the CEL conformance suite says', () => {
    const variables = new ConditionVariables();
    const differing: string[] = [];
    let agreeing = 0;
    for (const original of originalsOf(suite)) {
      const source = conditionOf(original);
      const condition = source === undefined ? undefined : compileCondition(source);
      if (condition?.ok !== true) continue; // refused when the policy is loaded
      const outcome = condition.value.evaluate(variables);
      const hasFailed = typeof outcome === 'object';
      const isAsWanted =
        original['evalError'] !== undefined || original['anyEvalErrors'] !== undefined ? hasFailed : outcome === true;
      if (isAsWanted) agreeing += 1;
      else differing.push(String(original['expr']));
    }
    expect(differing.sort()).toEqual(KNOWN_TO_DIFFER.flatMap(([, expressions]) => expressions).sort());
    expect(agreeing).toBeGreaterThan(900);
  });
});
