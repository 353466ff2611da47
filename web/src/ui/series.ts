/** Statistics as series of points: a few even steps, however many minutes they come from. Pure. */
import type { Stats } from '../base/api-types.ts';

export const WINDOWS = ['15m', '1h', '24h', '7d', '30d'] as const;
export type Window = (typeof WINDOWS)[number];

export const WINDOW_WORDS: Readonly<Record<Window, string>> = {
  '15m': 'Last 15 minutes',
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export const SPAN_MS: Readonly<Record<Window, number>> = {
  '15m': 15 * MINUTE_MS,
  '1h': HOUR_MS,
  '24h': 24 * HOUR_MS,
  '7d': 7 * 24 * HOUR_MS,
  '30d': 30 * 24 * HOUR_MS,
};

/** Wide enough that each step can be told from the next. */
const STEP_MS: Readonly<Record<Window, number>> = {
  '15m': MINUTE_MS,
  '1h': MINUTE_MS,
  '24h': 15 * MINUTE_MS,
  '7d': 2 * HOUR_MS,
  '30d': 12 * HOUR_MS,
};

export const isWindow = (text: string | null): text is Window => WINDOWS.includes(text as Window);

export type Step = {
  readonly atMs: number;
  readonly allow: number;
  readonly deny: number;
  readonly pending: number;
  readonly spendUsd: number;
  /** Null where nothing was measured. */
  readonly p50: number | null;
  readonly p99: number | null;
};

export type Series = { readonly stepMs: number; readonly steps: readonly Step[] };

export type Minute = NonNullable<Stats['minutes']>[number];

/** Fewer say nothing. */
const LEAST_STEPS = 10;

/**
 * A stretch of time in which nothing happened is a step of zeros, not a gap; what was before the figures begin is left
 * out.
 */
export function seriesOf(minutes: readonly Minute[], window: Window, endMs: number, beginMs = 0): Series {
  const stepMs = STEP_MS[window];
  const lastMs = Math.floor(endMs / stepMs) * stepMs;
  const known = Math.ceil((endMs - beginMs) / stepMs) + 1;
  const count = Math.min(Math.round(SPAN_MS[window] / stepMs), Math.max(LEAST_STEPS, known));
  const firstMs = lastMs - (count - 1) * stepMs;
  const groups = Array.from({ length: count }, (): Minute[] => []);
  for (const minute of minutes) groups[Math.floor((Date.parse(minute.at) - firstMs) / stepMs)]?.push(minute);
  return { stepMs, steps: groups.map((group, at) => stepOf(group, firstMs + at * stepMs)) };
}

function stepOf(group: readonly Minute[], atMs: number): Step {
  const sum = (of: (minute: Minute) => number): number => group.reduce((total, minute) => total + of(minute), 0);
  const worst = (of: 'p50' | 'p99'): number | null => {
    const known = group.flatMap(({ latency_ms: latency }) => latency?.[of] ?? []);
    return known.length === 0 ? null : Math.max(...known);
  };
  return {
    atMs,
    allow: sum(({ allow }) => allow),
    deny: sum(({ deny }) => deny),
    pending: sum(({ pending }) => pending),
    spendUsd: sum(({ spend_usd }) => spend_usd),
    p50: worst('p50'),
    p99: worst('p99'),
  };
}

export const perSecond = ({ allow, deny, pending }: Step, stepMs: number): number =>
  (allow + deny + pending) / (stepMs / 1_000);

export type Sums = {
  readonly allow: number;
  readonly deny: number;
  readonly pending: number;
  readonly spendUsd: number;
};

export function sumsOf(steps: readonly Step[]): Sums {
  const sum = (of: 'allow' | 'deny' | 'pending' | 'spendUsd'): number =>
    steps.reduce((total, step) => total + step[of], 0);
  return { allow: sum('allow'), deny: sum('deny'), pending: sum('pending'), spendUsd: sum('spendUsd') };
}
