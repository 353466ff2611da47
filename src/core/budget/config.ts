import { type DocumentProblem, isMapping } from '../base/mapping.ts';
import { capToMicro } from '../base/money.ts';
import { fail, ok, type Result } from '../base/result.ts';

/** The order of enforcement (docs/spec.md, Budgets). */
export const TIERS = ['global', 'org', 'team', 'agent'] as const;
/** Monthly is checked first within each tier. */
export const PERIODS = ['monthly', 'daily'] as const;
export type Tier = (typeof TIERS)[number];
export type Period = (typeof PERIODS)[number];

/** The caps of one tier, in whole micro-dollars; undefined: no cap. Every org, team and agent gets the same ones. */
export type TierLimits = Readonly<Record<Period, number | undefined>>;

/** The caps that one org, team or agent has in place of those of all, by tier: its own, and of those within it. */
export type ScopedLimits = {
  /** The names from the org down. */
  readonly path: readonly string[];
  readonly limitsMicroUsd: Readonly<Partial<Record<Tier, TierLimits>>>;
};

/** The `budget:` section of a document of global scope (docs/spec.md, Budgets). */
export type BudgetConfig = {
  readonly limitsMicroUsd: Readonly<Record<Tier, TierLimits>>;
  /** IANA name of the zone at whose midnight a period ends. */
  readonly timezone: string;
  readonly actionOnExceed: 'deny';
  /** Limits of documents of narrower scopes. */
  readonly scoped: readonly ScopedLimits[];
};

/** No caps at all: spend is still counted, by the days and months of UTC. */
export const UNLIMITED: BudgetConfig = {
  limitsMicroUsd: {
    global: { monthly: undefined, daily: undefined },
    org: { monthly: undefined, daily: undefined },
    team: { monthly: undefined, daily: undefined },
    agent: { monthly: undefined, daily: undefined },
  },
  timezone: 'UTC',
  actionOnExceed: 'deny',
  scoped: [],
};

/** Larger caps would leave too little room to count exactly in whole micro-dollars. */
export const MAX_LIMIT_USD = 1_000_000_000;

export const LIMIT_KEYS: Readonly<Record<Tier, Readonly<Record<Period, string>>>> = {
  global: { monthly: 'monthly_limit_usd', daily: 'daily_limit_usd' },
  org: { monthly: 'org_monthly_limit_usd', daily: 'org_daily_limit_usd' },
  team: { monthly: 'team_monthly_limit_usd', daily: 'team_daily_limit_usd' },
  agent: { monthly: 'agent_monthly_limit_usd', daily: 'agent_daily_limit_usd' },
};

/** Every key the mapping may hold. */
const BUDGET_KEYS: readonly string[] = [
  ...TIERS.flatMap((tier) => PERIODS.map((period) => LIMIT_KEYS[tier][period])),
  'timezone',
  'action_on_exceed',
];

/** Reads the already parsed mapping. An absent key means no cap, UTC, deny. */
export function parseBudgetConfig(mapping: unknown): Result<BudgetConfig, readonly DocumentProblem[]> {
  if (!isMapping(mapping)) return fail([{ path: [], problem: 'must be a mapping with budget limits' }]);
  const faults = Object.keys(mapping).flatMap((key) => faultsOf(key, mapping[key]));
  if (faults.length > 0) return fail(faults);
  const limitsOf = (tier: Tier): TierLimits => ({
    monthly: limitOf(mapping[LIMIT_KEYS[tier].monthly]),
    daily: limitOf(mapping[LIMIT_KEYS[tier].daily]),
  });
  return ok({
    limitsMicroUsd: {
      global: limitsOf('global'),
      org: limitsOf('org'),
      team: limitsOf('team'),
      agent: limitsOf('agent'),
    },
    timezone: typeof mapping.timezone === 'string' ? mapping.timezone : UNLIMITED.timezone,
    actionOnExceed: 'deny',
    scoped: [],
  });
}

/** The keys of a document of this scope, with the tier and period that each caps: its own, and those within it. */
export const scopedKeys = (scope: Exclude<Tier, 'global'>): readonly (readonly [string, Tier, Period])[] =>
  TIERS.slice(TIERS.indexOf(scope)).flatMap((tier) =>
    PERIODS.map((period) => [LIMIT_KEYS[tier === scope ? 'global' : tier][period], tier, period] as const),
  );

/** Reads the mapping of an org, team or agent document. */
export function parseScopedLimits(
  mapping: unknown,
  scope: Exclude<Tier, 'global'>,
  path: readonly string[],
): Result<ScopedLimits, readonly DocumentProblem[]> {
  if (!isMapping(mapping)) return fail([{ path: [], problem: 'must be a mapping with budget limits' }]);
  const rows = scopedKeys(scope);
  const known = rows.map(([key]) => key);
  const faults = Object.keys(mapping).flatMap((key): readonly DocumentProblem[] => {
    if (known.includes(key)) return faultsOf(key, mapping[key]);
    const problem = BUDGET_KEYS.includes(key)
      ? `is only for a wider scope; of scope ${scope}, valid keys are ${known.join(', ')}`
      : `unknown key; valid keys are ${known.join(', ')}`;
    return [{ path: [key], problem, onKey: true }];
  });
  if (faults.length > 0) return fail(faults);
  const limitsMicroUsd: Partial<Record<Tier, TierLimits>> = {};
  for (const [key, tier, period] of rows) {
    const cap = limitOf(mapping[key]);
    if (cap !== undefined)
      limitsMicroUsd[tier] = { monthly: undefined, daily: undefined, ...limitsMicroUsd[tier], [period]: cap };
  }
  return ok({ path, limitsMicroUsd });
}

function faultsOf(key: string, value: unknown): readonly DocumentProblem[] {
  if (!BUDGET_KEYS.includes(key))
    return [{ path: [key], problem: `unknown key; valid keys are ${BUDGET_KEYS.join(', ')}`, onKey: true }];
  const problem = problemOf(key, value);
  return problem === undefined ? [] : [{ path: [key], problem }];
}

function problemOf(key: string, value: unknown): string | undefined {
  switch (key) {
    case 'timezone':
      return isTimezone(value) ? undefined : 'must be an IANA time zone name, such as Europe/Berlin';
    case 'action_on_exceed':
      return value === 'deny' ? undefined : 'must be deny, the only supported action';
    default:
      return limitOf(value) === undefined ? `must be an amount in US dollars from 0 to ${MAX_LIMIT_USD}` : undefined;
  }
}

const limitOf = (value: unknown): number | undefined =>
  typeof value === 'number' ? capToMicro(value, MAX_LIMIT_USD) : undefined;

function isTimezone(value: unknown): value is string {
  // Newer engines also take `+05:30`; older ones do not, and a fixed offset has no daylight saving to be right about.
  if (typeof value !== 'string' || !/^[A-Za-z]/.test(value)) return false;
  if (value === 'UTC') return true;
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: value });
    return true;
  } catch {
    return false; // a RangeError is the engine's way to say that it knows no such zone
  }
}
