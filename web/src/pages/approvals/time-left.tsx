import type { Approval } from '../../base/api-types.ts';
import { nowMs } from '../../base/clock.ts';
import { dateTime, duration } from '../../base/format.ts';
import { seconds } from '../../live/live.ts';

const SOON_MS = 120_000;

/** How long it can still be decided; a halt stops its clock. */
export function TimeLeft({
  approval: { state, expires_at: expires, frozen_at: frozen },
}: {
  readonly approval: Approval;
}) {
  seconds.value;
  if (state !== 'pending') return <span class={`state ${state}`}>{state}</span>;
  if (frozen !== null) return <span class="state paused">frozen by a halt</span>;
  const leftMs = Date.parse(expires) - nowMs();
  return (
    <span class={`time-left number ${leftMs < SOON_MS ? 'soon' : ''}`} title={`until ${dateTime(expires)}`}>
      {leftMs <= 0 ? 'expired' : `${duration(leftMs)} left`}
    </span>
  );
}
