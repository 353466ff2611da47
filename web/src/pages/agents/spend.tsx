/** An agent's spending over time, as it estimates before it acts. */
import type { AgentName, AuditEntry } from '../../base/api-types.ts';
import { nowMs } from '../../base/clock.ts';
import { clockTime, money } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { call } from '../../session/session.ts';
import { Chart } from '../../ui/chart.tsx';
import { useResource } from '../../ui/resource.ts';

const HOUR_MS = 3_600_000;
const STEPS = 24;
const RENEW_MS = 60_000;
/** Limits the allowed checks that are added up; of more, the newest count. */
const MAX_ENTRIES = 5_000;

type Steps = { readonly atMs: readonly number[]; readonly usd: readonly number[]; readonly isCut: boolean };

/** Sums up the estimated costs of its allowed checks, hour by hour, from the audit log. */
async function readSpend(agent: AgentName): Promise<Steps> {
  const firstMs = Math.floor(nowMs() / HOUR_MS) * HOUR_MS - (STEPS - 1) * HOUR_MS;
  const usd = Array.from({ length: STEPS }, () => 0);
  let cursor: string | null = null;
  let read = 0;
  do {
    const page: { entries: readonly AuditEntry[]; next_cursor: string | null } = await call(
      'GET',
      `/api/v1/logs${queryOf({ ...agent, event_type: 'ActionAllowed', since: new Date(firstMs).toISOString(), per_page: 1_000, cursor })}`,
    );
    for (const { timestamp, payload } of page.entries) {
      const at = Math.floor((Date.parse(timestamp) - firstMs) / HOUR_MS);
      if (typeof payload.estimated_cost_usd === 'number' && usd[at] !== undefined)
        usd[at] += payload.estimated_cost_usd;
    }
    read += page.entries.length;
    cursor = page.next_cursor;
  } while (cursor !== null && read < MAX_ENTRIES);
  return { atMs: usd.map((_, at) => firstMs + at * HOUR_MS), usd, isCut: cursor !== null };
}

export function AgentSpend({ agent }: { readonly agent: AgentName }) {
  const { data } = useResource('spend', () => readSpend(agent), { everyMs: RENEW_MS });
  const sum = data?.usd.reduce((total, usd) => total + usd, 0) ?? 0;
  return (
    <Chart
      title="Estimated spend"
      atMs={data?.atMs ?? []}
      format={money}
      figure={
        data === undefined
          ? 'Loading…'
          : data.isCut
            ? `more than ${money(sum)} since ${clockTime(data.atMs[0] ?? 0)}`
            : `${money(sum)} in 24 hours`
      }
      lines={[{ label: 'spend', colour: '--chart-3', kind: 'bars', values: data?.usd ?? [] }]}
      empty={data !== undefined && sum === 0 ? 'No spend estimated in 24 hours' : undefined}
    />
  );
}
