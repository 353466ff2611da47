/** How much of a budget is used, held back, and left, and when it will end. */
import { nowMs } from '../../base/clock.ts';
import { clockTime, dateTime, money } from '../../base/format.ts';
import { NEAR } from '../../standing/alert.ts';
import { type Period, projectionOf, usedOf } from './projection.ts';

type GaugeProps = {
  readonly label: string;
  readonly period: Period;
  readonly reserved: number;
  readonly isLabelHidden?: boolean;
};

export function Gauge({ label, period, reserved, isLabelHidden = false }: GaugeProps) {
  const { spent_usd: spent, limit_usd: limit, reset } = period;
  const used = Math.min(1, usedOf(period) ?? 0);
  const kept = limit === null || limit === 0 ? 0 : Math.min(1 - used, reserved / limit);
  const level = limit === null ? '' : used >= 1 ? 'over' : used + kept >= NEAR ? 'near' : 'fine';
  return (
    <div class={`gauge ${level}`} title={`resets ${dateTime(reset)}`}>
      <span class="gauge-words">
        {!isLabelHidden && <span class="hint">{label} </span>}
        <b class="number">{money(spent)}</b>
        <span class="hint">{limit === null ? ' · no limit' : ` of ${money(limit)}`}</span>
      </span>
      {limit !== null && (
        // biome-ignore lint/a11y/useSemanticElements: the browser's own has one part, and this two
        <div
          class="track"
          role="meter"
          aria-label={`Spent ${label.toLowerCase()}`}
          aria-valuemin={0}
          aria-valuemax={limit}
          aria-valuenow={Math.min(spent, limit)}
          aria-valuetext={`${money(spent)} of ${money(limit)}`}
        >
          <span class="spent" style={{ width: `${used * 100}%` }} />
          <span class="reserved" style={{ width: `${kept * 100}%` }} />
        </div>
      )}
      <Outlook period={period} />
    </div>
  );
}

/** Projects the period's spending at the present rate. */
function Outlook({ period }: { readonly period: Period }) {
  const projection = projectionOf(period, nowMs());
  switch (projection.kind) {
    case 'over':
      return <span class="outlook bad">used up until {clockTime(Date.parse(period.reset))}</span>;
    case 'ends':
      return <span class="outlook soon">ends {clockTime(projection.atMs)} at this rate</span>;
    case 'lasts':
      return <span class="outlook">lasts until it resets</span>;
    default:
      return null;
  }
}
