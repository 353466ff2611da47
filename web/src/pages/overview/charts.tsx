/** The four pictures of the overview. */
import { count, measured, money } from '../../base/format.ts';
import { Chart } from '../../ui/chart.tsx';
import { perSecond, type Series, type Step, sumsOf } from '../../ui/series.ts';

const rate = (value: number): string => `${measured(value)}/s`;
const millis = (value: number): string => (value >= 1_000 ? `${measured(value / 1_000)} s` : `${measured(value)} ms`);

export function Charts({ series }: { readonly series: Series }) {
  const { steps, stepMs } = series;
  const atMs = steps.map((step) => step.atMs);
  const of = (value: (step: Step) => number | null) => steps.map(value);
  const sums = sumsOf(steps);
  const checks = sums.allow + sums.deny + sums.pending;
  const empty = checks === 0 ? 'No checks in this window' : undefined;
  const hasLatency = steps.some(({ p99 }) => p99 !== null);
  return (
    <div class="charts">
      <Chart
        title="Checks per second"
        atMs={atMs}
        format={rate}
        figure={`${count(checks)} checks`}
        lines={[
          { label: 'checks/s', colour: '--chart-1', kind: 'area', values: of((step) => perSecond(step, stepMs)) },
        ]}
        empty={empty}
      />
      <Chart
        title="Decisions"
        atMs={atMs}
        format={count}
        isStacked
        figure={`${share(sums.deny, checks)} denied`}
        lines={[
          { label: 'allow', colour: '--chart-allow', kind: 'bars', values: of(({ allow }) => allow) },
          { label: 'deny', colour: '--chart-deny', kind: 'bars', values: of(({ deny }) => deny) },
          { label: 'pending', colour: '--chart-pending', kind: 'bars', values: of(({ pending }) => pending) },
        ]}
        empty={empty}
      />
      <Chart
        title="Latency"
        atMs={atMs}
        format={millis}
        figure={hasLatency ? `p99 up to ${millis(Math.max(...steps.map(({ p99 }) => p99 ?? 0)))}` : undefined}
        lines={[
          { label: 'p50', colour: '--chart-1', values: of(({ p50 }) => p50) },
          { label: 'p99', colour: '--chart-2', values: of(({ p99 }) => p99) },
        ]}
        empty={hasLatency ? undefined : 'Measured for all orgs together'}
      />
      <Chart
        title="Spend"
        atMs={atMs}
        format={money}
        figure={money(sums.spendUsd)}
        lines={[{ label: 'spend', colour: '--chart-3', kind: 'bars', values: of(({ spendUsd }) => spendUsd) }]}
        empty={sums.spendUsd === 0 ? 'No spend in this window' : undefined}
      />
    </div>
  );
}

export const share = (part: number, whole: number): string => {
  if (whole === 0) return '0 %';
  const percent = (part / whole) * 100;
  return percent > 0 && percent < 0.1 ? '<0.1 %' : `${measured(percent)} %`;
};
