import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
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

const RULE = 'timestamp() requires an RFC 3339 time such as 2026-01-31T12:00:00Z, or seconds since 1970';

describe.each([
  ['UTC', 0],
  ['Europe/Berlin', -120],
  ['America/New_York', 240],
])('on a machine whose clock shows the time of %s', (zone, offset) => {
  const before = process.env.TZ;
  afterEach(() => {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  });

  test.each([
    'timestamp("2026-01-01T00:00:00Z").getDayOfYear() == 0 && timestamp("2026-07-01T00:00:00Z").getDayOfYear() == 181 && timestamp("2026-12-31T23:59:59Z").getDayOfYear() == 364',
    'timestamp("2028-02-29T12:00:00Z").getDayOfYear() == 59 && timestamp("2028-12-31T12:00:00Z").getDayOfYear() == 365',
    'timestamp("2026-06-30T22:30:00Z").getDayOfYear("Europe/Berlin") == 181 && timestamp("2026-01-01T04:59:59Z").getDayOfYear("America/New_York") == 364',
    // Half past two: on the 29th of March it does not exist in Berlin, on the 8th not in New York.
    'timestamp("2026-03-29T02:30:00Z").getHours("UTC") == 2 && timestamp("2026-03-08T02:30:00Z").getHours("UTC") == 2',
    'timestamp("2026-03-28T23:59:58Z").getDate("Europe/Berlin") == 29 && timestamp("2026-03-28T23:59:58Z").getDayOfMonth("Europe/Berlin") == 28',
    'timestamp("2026-12-31T23:00:00Z").getFullYear("Europe/Berlin") == 2027 && timestamp("2026-12-31T23:00:00Z").getMonth("Europe/Berlin") == 0',
    'timestamp("2026-11-22T23:00:00Z").getDayOfWeek("Europe/Berlin") == 1',
    'timestamp("2026-11-22T23:14:15Z").getMinutes("Asia/Kathmandu") == 59 && timestamp("2026-11-22T23:14:15Z").getSeconds("Asia/Kathmandu") == 15',
    'timestamp("2026-02-28T23:30:00-01:00") == timestamp("2026-03-01T00:30:00Z") && timestamp("2026-03-01t00:30:00.5z") > timestamp(1772325000)',
    'timestamp("2009-02-13T23:31:30Z").getDayOfMonth("+11:00") == 13 && timestamp("2009-02-13T02:00:00Z").getDayOfMonth("-02:30") == 11',
    'timestamp("2009-02-13T23:31:30Z").getHours("02:00") == 1 && timestamp("2009-02-13T23:31:30Z").getMinutes("-09:30") == 1 && timestamp("2009-02-13T23:31:30Z").getSeconds("-00:00") == 30',
    'attributes.times.all(time, timestamp(time).getDayOfYear() == 181)',
  ])('%s holds', (source) => {
    process.env.TZ = zone;
    expect(new Date(2026, 6, 1).getTimezoneOffset()).toBe(offset);
    expect(evaluate(source, { times: ['2026-07-01T00:30:00Z', '2026-07-01T23:30:00Z'] })).toBe(true);
  });

  test.each([
    '2026-02-30T00:00:00Z',
    '2027-02-29T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:00.000',
    'January 1, 2026 00:00:00',
    'Jan 1 2026 00:00:00 GMT+0',
    '0000-12-31T23:59:59Z',
    '2026-01-01',
    '',
  ])('the text %j is no time: it fails in a check and is refused in a policy', (text) => {
    process.env.TZ = zone;
    expect(evaluate('timestamp(attributes.at) < timestamp("2030-01-01T00:00:00Z")', { at: text })).toEqual({
      error: RULE,
    });
    expect(compileCondition(`timestamp("${text}") < timestamp("2030-01-01T00:00:00Z")`)).toEqual({
      ok: false,
      fault: [{ offset: 10, problem: RULE }],
    });
  });
});

describe('policy condition times', () => {
  test.each([
    [
      'timestamp(attributes.at).getHours(attributes.zone) < 8',
      { at: '2026-01-01T00:00:00Z', zone: 'Nowhere' },
      'a time zone must be an IANA name such as Europe/Berlin, or an offset such as +02:00',
    ],
    ['timestamp(attributes.at).getHours("UTC") < 8', { at: 5 }, "found no matching overload for 'timestamp(double)'"],
    [
      'attributes.at.getHours("UTC") < 8',
      { at: '2026-01-01T00:00:00Z' },
      "found no matching overload for 'string.getHours(string)'",
    ],
    ['timestamp(253402300800) > timestamp(0)', {}, RULE],
  ])('%s fails with the text as written, not as converted', (source, attributes, error) => {
    expect(evaluate(source, attributes)).toEqual({ error });
  });

  test.each(['Nowhere', '+24:00', '+2:00', '+02:60', ''])(
    'a condition that names the time zone %j is refused',
    (zone) => {
      expect(compileCondition(`timestamp(attributes.at).getHours("${zone}") < 8`)).toEqual({
        ok: false,
        fault: [
          {
            offset: 34,
            problem: `a time zone must be an IANA name such as Europe/Berlin, or an offset such as +02:00`,
          },
        ],
      });
    },
  );

  test('UTC times are the same with and without the time zone', () => {
    const parts = [
      'getDate',
      'getDayOfMonth',
      'getDayOfWeek',
      'getDayOfYear',
      'getFullYear',
      'getHours',
      'getMinutes',
      'getMonth',
      'getSeconds',
    ];
    const same = parts
      .map((part) => `timestamp(attributes.at).${part}() == timestamp(attributes.at).${part}("UTC")`)
      .join(' && ');
    const compiled = compileCondition(same);
    expect(compiled.ok).toBe(true);
    fc.assert(
      fc.property(
        fc.date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }),
        (at) => {
          expect(evaluate(same, { at: at.toISOString() })).toBe(true);
        },
      ),
    );
  });
});
