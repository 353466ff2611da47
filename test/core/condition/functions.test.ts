import { describe, expect, test } from 'vitest';
import { type ConditionOutcome, ConditionVariables, compileCondition } from '../../../src/core/condition/condition.ts';

function evaluate(source: string, attributes = {}): ConditionOutcome {
  const compiled = compileCondition(source);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  const agent = { orgId: 'acme', teamId: 'search', agentId: 'a1' };
  return compiled.value.evaluate(
    new ConditionVariables().fill({
      agent,
      action: 'tool.call',
      resource: '',
      attributes,
      caller: undefined,
      estimatedCostMicroUsd: 0,
    }),
  );
}

describe('policy condition functions', () => {
  test.each([
    'int("-9223372036854775808") < 0 && int("+5") == 5 && int("007") == 7 && int(5.9) == 5 && int(-5.9) == -5 && int(5) == 5',
    'uint("18446744073709551615") > uint(0) && uint(5) == 5u && uint(5.9) == uint(5u)',
    'double("1e3") == 1000.0 && double("-.5") == -0.5 && double("5.") == 5.0 && double(5) == 5.0 && double(5u) == 5.0 && double(0.5) == 0.5',
    'double("-Infinity") < 0.0 && double("inf") > 0.0 && double("nan") != double("nan")',
    'int(attributes.size) == 10 && double(attributes.half) == 0.5 && uint(attributes.count) == uint(3)',
    'bool("true") && bool("T" == "t" ? "0" : "1") && bool("t") && !bool("False") && !bool("false") && !bool("0") && bool(true)',
    '"ÄBC".lowerAscii() == "Äbc" && "straße".upperAscii() == "STRAßE"',
  ])('%s holds', (source) => {
    expect(evaluate(source, { size: 10, half: 0.5, count: '3' })).toBe(true);
  });

  const INT = 'int() requires a 64-bit integer in decimal digits';
  const UINT = 'uint() requires an unsigned 64-bit integer in decimal digits';
  const DOUBLE = 'double() requires a number in decimal digits';
  const BOOL = 'bool() requires a string such as "true" or "false"';

  describe.each([
    [
      'int',
      INT,
      [
        '',
        ' 5',
        '5 ',
        '-',
        '0x10',
        '0X10',
        '0b11',
        '0o17',
        '5.0',
        '1e3',
        '9223372036854775808',
        '-9223372036854775809',
        '٥',
      ],
    ],
    ['uint', UINT, ['', '-1', '+1', '0X10', '18446744073709551616']],
    ['double', DOUBLE, ['', ' 5', '0x10', '0b1', '.', 'e5', '1e', '1e400', '1_000', 'infinite']],
  ])('%s() of a text that is no such number', (name, error, texts) => {
    test.each(texts)('%j fails when an agent sends it, and is refused when an author writes it', (text) => {
      expect(evaluate(`${name}(attributes.text) < ${name}("10")`, { text })).toEqual({ error });
      expect(compileCondition(`${name}("${text}") < ${name}("10")`)).toEqual({
        ok: false,
        fault: [{ offset: name.length + 1, problem: error }],
      });
    });
  });

  test.each([
    ['int(attributes.n) > 10', { n: 1e300 }, INT],
    ['int(attributes.n) > 10', { n: 2 ** 63 }, INT],
    ['uint(attributes.n) < uint(10)', { n: -1 }, UINT],
    ['uint(attributes.n) < uint(10)', { n: 2 ** 64 }, UINT],
    ['uint(0 - 1) < uint(10)', {}, UINT],
  ])('%s fails for %j: it is too large, or negative', (source, attributes, error) => {
    expect(evaluate(source, attributes)).toEqual({ error });
  });

  test.each([
    ['bool(attributes.token)', BOOL],
    [
      'timestamp("2026-01-01T00:00:00Z").getHours(attributes.token) < 8',
      'a time zone must be an IANA name such as Europe/Berlin, or an offset such as +02:00',
    ],
    [
      'timestamp(attributes.token) < timestamp(0)',
      'timestamp() requires an RFC 3339 time such as 2026-01-31T12:00:00Z, or seconds since 1970',
    ],
    ['int(attributes.token) < 10', INT],
    ['{"small": 1, "large": 2}[attributes.token] < 2', 'No such key'],
    ['attributes.sizes[attributes.token] < 2', 'No such key'],
    ['attributes.sizes["small"] < 2', 'No such key: small'],
    ['attributes.sizes.large < 2', 'No such key: large'],
    ['attributes.list[3] < 2', 'No such key: index out of bounds, index 3 >= size 1'],
  ])('the logged reason for a failed %s shows nothing that the agent sent', (source, error) => {
    expect(evaluate(source, { token: 'hunter2', sizes: {}, list: [1] })).toEqual({ error });
  });

  test.each([
    ['attributes.name.lowerAscii() == "kitchen"', '\u212aitchen'],
    ['attributes.name.upperAscii() == "ADMIN"', 'adm\u0131n'],
  ])('%s does not hold for a name that only looks the same', (source, name) => {
    expect(evaluate(source, { name })).toBe(false);
  });

  test('lower-cases only ASCII letters, also in a long text', () => {
    expect(
      evaluate('attributes.text.lowerAscii() == attributes.lower && attributes.text.upperAscii() == attributes.upper', {
        text: '@aZ[`Àé😀K{'.repeat(5_000),
        lower: '@az[`Àé😀k{'.repeat(5_000),
        upper: '@AZ[`Àé😀K{'.repeat(5_000),
      }),
    ).toBe(true);
  });

  test('a long text that is no number is refused in a moment', () => {
    for (const text of ['1'.repeat(1_000_000), `${'1'.repeat(500_000)}x`, `${'A1'.repeat(250_000)}`]) {
      expect(evaluate('int(attributes.text) < 10', { text })).toEqual({ error: INT });
      expect(evaluate('double(attributes.text) < 10.0', { text })).toEqual({ error: DOUBLE });
    }
  });

  test.each([
    ['int(attributes.value) < 10', true, "found no matching overload for 'int(bool)'"],
    ['attributes.value.lowerAscii() == "a"', 5, "found no matching overload for 'double.lowerAscii()'"],
  ])('%s fails with the name that was written', (source, value, error) => {
    expect(evaluate(source, { value })).toEqual({ error });
  });
});
