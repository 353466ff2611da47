/** Follows a clock that was set back by more than a minute, in a cluster that of the database, and says so. */
import { NO_LINEAGE } from '../core/audit/audit.ts';
import { rfc3339 } from '../core/base/time.ts';
import type { StartContext } from './start-context.ts';
import type { Decisions } from './start-decisions.ts';
import type { Threads } from './start-threads.ts';

const FOLLOW_EVERY_MS = 1_000;

export function followClock(
  { log, closers }: Pick<StartContext, 'log' | 'closers'>,
  { clock, clusterClock, audit }: Pick<Threads, 'clock' | 'clusterClock' | 'audit'>,
  { governor, stats }: Pick<Decisions, 'governor' | 'stats'>,
): void {
  const following = setInterval(() => {
    const step = clock.follow();
    if (step === undefined) return;
    governor.setBack(step.toMs);
    stats.setBack(step.toMs);
    const [before, after] = [rfc3339(step.fromMs), rfc3339(step.toMs)];
    const whose = clusterClock === undefined ? 'this machine' : 'the database';
    log.warn(`the clock of ${whose} was set back, and is followed`, { from: before, to: after });
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
