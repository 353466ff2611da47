/** Reads the statistics of a window. */
import type { Stats } from '../../base/api-types.ts';
import { queryOf } from '../../base/request.ts';
import { call } from '../../session/session.ts';
import { type Series, SPAN_MS, seriesOf, type Window } from '../../ui/series.ts';

export type RuleCount = Stats['top']['rules'][number];

export type WindowStats = {
  readonly stats: Stats;
  readonly series: Series;
  /** Since when there are figures, where that is later than the window begins. */
  readonly since: string | undefined;
};

const SOON_MS = 120_000;

export async function readStats(window: Window, orgId: string): Promise<WindowStats> {
  const stats: Stats = await call('GET', `/api/v1/stats${queryOf({ window, org_id: orgId })}`);
  const endMs = Date.parse(stats.to);
  const steps = stats.hours ?? stats.minutes ?? [];
  return {
    stats,
    series: seriesOf(steps, window, endMs, Date.parse(stats.from)),
    since: Date.parse(stats.from) > endMs - SPAN_MS[window] + SOON_MS ? stats.from : undefined,
  };
}
