import { describe, expect, test } from 'vitest';
import { capToMicro, usdToMicro } from '../../../src/core/base/money.ts';
import { parseBudgetConfig } from '../../../src/core/budget/config.ts';

describe('budget config', () => {
  test('a budget section with every key is read to the micro-dollar', () => {
    expect(
      parseBudgetConfig({
        daily_limit_usd: 50,
        monthly_limit_usd: 1000.25,
        org_daily_limit_usd: 4.35,
        org_monthly_limit_usd: 0,
        team_daily_limit_usd: 0.000001,
        team_monthly_limit_usd: 3,
        agent_daily_limit_usd: 1.1,
        agent_monthly_limit_usd: 1_000_000_000,
        timezone: 'Europe/Berlin',
        action_on_exceed: 'deny',
      }),
    ).toEqual({
      ok: true,
      value: {
        limitsMicroUsd: {
          global: { daily: 50_000_000, monthly: 1_000_250_000 },
          org: { daily: 4_350_000, monthly: 0 },
          team: { daily: 1, monthly: 3_000_000 },
          agent: { daily: 1_100_000, monthly: 1_000_000_000_000_000 },
        },
        timezone: 'Europe/Berlin',
        actionOnExceed: 'deny',
        scoped: [],
      },
    });
  });

  test('a missing cap means no cap, and the default time zone is UTC', () => {
    const none = { daily: undefined, monthly: undefined };
    expect(parseBudgetConfig({})).toEqual({
      ok: true,
      value: {
        limitsMicroUsd: { global: none, org: none, team: none, agent: none },
        timezone: 'UTC',
        actionOnExceed: 'deny',
        scoped: [],
      },
    });
  });

  test('a cap finer than a micro-dollar is rounded down, never up', () => {
    expect(parseBudgetConfig({ daily_limit_usd: 0.0000019 })).toMatchObject({
      ok: true,
      value: { limitsMicroUsd: { global: { daily: 1 } } },
    });
  });

  const AMOUNT = 'must be an amount in US dollars from 0 to 1000000000';
  const ZONE = 'must be an IANA time zone name, such as Europe/Berlin';
  const MAPPING = 'must be a mapping with budget limits';
  test.each([
    [null, [], MAPPING],
    [[], [], MAPPING],
    ['50', [], MAPPING],
    [{ daily_limit_usd: -1 }, ['daily_limit_usd'], AMOUNT],
    [{ monthly_limit_usd: Number.NaN }, ['monthly_limit_usd'], AMOUNT],
    [{ org_daily_limit_usd: Number.POSITIVE_INFINITY }, ['org_daily_limit_usd'], AMOUNT],
    [{ org_monthly_limit_usd: '5' }, ['org_monthly_limit_usd'], AMOUNT],
    [{ team_daily_limit_usd: null }, ['team_daily_limit_usd'], AMOUNT],
    [{ team_monthly_limit_usd: 1_000_000_000.5 }, ['team_monthly_limit_usd'], AMOUNT],
    [{ timezone: 'Mars/Olympus' }, ['timezone'], ZONE],
    [{ timezone: '+02:00' }, ['timezone'], ZONE],
    [{ timezone: 2 }, ['timezone'], ZONE],
    [{ timezone: '' }, ['timezone'], ZONE],
    [{ action_on_exceed: 'warn' }, ['action_on_exceed'], 'must be deny, the only supported action'],
  ])('%j is refused at the place of the mistake', (raw, path, problem) => {
    expect(parseBudgetConfig(raw)).toEqual({ ok: false, fault: [{ path, problem }] });
  });

  test('names an unknown key when refusing it, even one that every object has', () => {
    expect(parseBudgetConfig({ dayly_limit_usd: 5 })).toMatchObject({
      ok: false,
      fault: [{ path: ['dayly_limit_usd'], problem: expect.stringContaining('unknown key') }],
    });
    expect(parseBudgetConfig(JSON.parse('{"__proto__": 5}'))).toMatchObject({
      ok: false,
      fault: [{ path: ['__proto__'] }],
    });
    expect(parseBudgetConfig({ constructor: 5 })).toMatchObject({ ok: false, fault: [{ path: ['constructor'] }] });
  });

  test.each([
    [0, 0],
    [0.000001, 1],
    [0.1, 100_000],
    [0.29, 290_000],
    [1.1, 1_100_000],
    [4.35, 4_350_000],
    [0.0000015, 2],
    [1e-7, 1],
    [5e-324, 1],
    [8.2, 8_200_000],
    [999_999.999999, 999_999_999_999],
    [1_000_000, 1_000_000_000_000],
  ])('%d USD are %d micro-dollars: no cost is too small to count', (usd, microUsd) => {
    expect(usdToMicro(usd)).toBe(microUsd);
  });

  test.each([-1, -0.000001, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1_000_000.000001, 1e300])(
    '%d USD is not a cost',
    (usd) => {
      expect(usdToMicro(usd)).toBeUndefined();
    },
  );

  test.each([
    [0.000123, 123],
    [0.000249, 249],
    [0.000251, 251],
    [2.01, 2_010_000],
    [4.02, 4_020_000],
    [4.35, 4_350_000],
  ])('%d USD is the same amount as a cost and as a cap, despite binary fractions', (usd, microUsd) => {
    expect({ cost: usdToMicro(usd), cap: capToMicro(usd, 100) }).toEqual({ cost: microUsd, cap: microUsd });
  });
});
