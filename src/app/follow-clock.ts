/** Follows a wall clock that was set back by more than a minute, and says so. */
import { NO_LINEAGE } from '../core/audit/audit.ts';
import { rfc3339 } from '../core/base/time.ts';
import type { StartContext } from './start-context.ts';
import type { Decisions } from './start-decisions.ts';
import type { Threads } from './start-threads.ts';

const FOLLOW_EVERY_MS = 1_000;

export function followClock(
  { log, closers }: Pick<StartContext, 'log' | 'closers'>,
  { clock, audit }: Pick<Threads, 'clock' | 'audit'>,
  { governor, stats }: Pick<Decisions, 'governor' | 'stats'>,
): void {
  const following = setInterval(() => {
    const step = clock.follow();
    if (step === undefined) return;
    governor.setBack(step.toMs);
    stats.setBack(step.toMs);
    const [before, after] = [rfc3339(step.fromMs), rfc3339(step.toMs)];
    log.warn('the clock of this machine was set back, and is followed', { from: before, to: after });
    // The log says itself if it cannot be written.
    void audit.record({
      eventType: 'SettingsChanged',
      lineage: NO_LINEAGE,
      actor: 'gateway',
      payload: { changed: [{ name: 'clock', before, after }] },
    });
  }, FOLLOW_EVERY_MS);
  closers.add('the clock', () => clearInterval(following));
}
