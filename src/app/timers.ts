/** The periodic work of the main thread. */

import type { Config } from '../config/config.ts';
import { NO_LINEAGE } from '../core/audit/audit.ts';
import { rfc3339 } from '../core/base/time.ts';
import { explain } from '../core/fault.ts';
import type { Governor } from '../core/governor.ts';
import { sumOfDurations } from '../core/stats/durations.ts';
import type { Stats } from '../core/stats/stats.ts';
import type { ApiKeyDeletion } from '../credentials/api-key-start.ts';
import type { ApiKeys } from '../credentials/api-keys.ts';
import type { RevocationList } from '../credentials/revocations.ts';
import { TimedSlices } from '../fairness/timed-slices.ts';
import type { Clock } from '../ports/ports.ts';
import { createClockGuard } from '../system/clock-guard.ts';
import type { Logger } from '../system/log.ts';
import type { IoThreads } from '../threads/main/io-threads.ts';
import type { SpendSaver } from '../threads/main/spend-saver.ts';
import type { StatsSaver } from '../threads/main/stats-saver.ts';
import type { HaltKeeper, OwnCommands } from '../use-cases/halts.ts';
import type { StartContext } from './start-context.ts';
import type { Decisions } from './start-decisions.ts';
import type { Threads } from './start-threads.ts';

/** How often the last uses of API keys are written, and revocations dropped whose tokens have all expired. */
const TIDY_EVERY_MS = 60_000;
/** How often a step is taken in deleting API keys that ended long ago. */
const DELETE_EVERY_MS = 10_000;
/** How often approvals are looked at whose time may be over, and how many change at once. */
const TICK_APPROVALS_EVERY_MS = 500;
const APPROVALS_A_TICK = 100;
const EXPIRE_HALTS_EVERY_MS = 1_000;
/** How often the time that checks take is looked at, and what is older than a day dropped from the statistics. */
const LATENCY_EVERY_MS = 5_000;
const PRUNE_STATS_EVERY_MS = 60_000;
/** Limits the loss of statistics in a crash, with the time that a write takes: a minute is promised. */
const SAVE_STATS_EVERY_MS = 20_000;
/** How often changes of API keys by other gateways on the same database are read. */
const SHARED_KEYS_EVERY_MS = 2_000;

/** How often it is looked whether the wall clock was set back. */
const FOLLOW_EVERY_MS = 1_000;

/** How many finished operations are removed in one go, and how long that should take. */
const SWEEP_SLICES = { aimMs: 3, first: 500, least: 100, most: 5_000 };

type OnError = (error: unknown, doing: string) => void;

type Timed = {
  readonly config: Config;
  readonly log: Logger;
  readonly onError: OnError;
  readonly clock: Clock;
  readonly governor: Governor;
  readonly haltKeeper: HaltKeeper;
  readonly commands: OwnCommands;
  readonly spend: SpendSaver;
  readonly stats: Stats;
  readonly statsSaver: Pick<StatsSaver, 'save'>;
  readonly threads: IoThreads;
  readonly apiKeys: ApiKeys;
  readonly keyDeletion: ApiKeyDeletion;
  readonly revocations: RevocationList;
  /** Set in a cluster. */
  readonly tickApprovals: (() => Promise<void>) | undefined;
  /** Other gateways may be on the same database. */
  readonly isShared: boolean;
};

/** The timers run until the caller clears them. */
export function startTimers({
  config,
  log,
  onError,
  clock,
  governor,
  haltKeeper,
  commands,
  spend,
  stats,
  statsSaver,
  threads,
  apiKeys,
  keyDeletion,
  revocations,
  tickApprovals = async () => void (await commands.ask({ type: 'tick-approvals', most: APPROVALS_A_TICK })),
  isShared,
}: Timed): readonly NodeJS.Timeout[] {
  const lastSeenAtMs = apiKeys.lastSeenAtMs;
  // A leap is not logged: keys may go unused for days where no clock is wrong. It only makes the deletion wait for a
  // day.
  const guard = createClockGuard({
    witnessedMs: lastSeenAtMs === undefined ? [] : [lastSeenAtMs],
    onLeap: () => undefined,
  });
  return [
    ...(isShared
      ? [
          setInterval(
            () => void apiKeys.refresh().catch((error: unknown) => onError(error, 'syncing API keys')),
            SHARED_KEYS_EVERY_MS,
          ),
        ]
      : []),
    setInterval(() => {
      sweep(governor, clock);
      spend.save().catch((error: unknown) => onError(error, 'saving budgets'));
    }, config.SVC_OPS_SWEEP_SECS * 1000),
    setInterval(() => void flushKeys(apiKeys, log, onError), TIDY_EVERY_MS),
    setInterval(() => void haltKeeper.releaseExpired(governor.halts.expiredAt(clock.nowMs())), EXPIRE_HALTS_EVERY_MS),
    // The log and the store say themselves that they cannot be written; the next tick tries again.
    setInterval(
      () => void tickApprovals().catch((error: unknown) => onError(error, 'ending approvals')),
      TICK_APPROVALS_EVERY_MS,
    ),
    setInterval(() => revocations.prune(), TIDY_EVERY_MS),
    setInterval(
      () => stats.noteLatency(sumOfDurations(threads.stats.map(({ checks }) => checks)).counts, clock.nowMs()),
      LATENCY_EVERY_MS,
    ),
    setInterval(() => stats.prune(clock.nowMs()), PRUNE_STATS_EVERY_MS),
    setInterval(
      () => void statsSaver.save().catch((error: unknown) => onError(error, 'saving statistics')),
      SAVE_STATS_EVERY_MS,
    ),
    setInterval(() => {
      // The pool logs once that the database is away, and the next turn makes up for this one.
      if (guard.isBelieved())
        void keyDeletion.step().catch((error: unknown) => onError(error, 'deleting API keys that ended long ago'));
    }, DELETE_EVERY_MS),
  ];
}

/** Follows a clock that was set back by more than a minute, in a cluster that of the database, and says so. */
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

/** Never rejects: what could not be written is logged, and tried again the next time. */
export async function flushKeys(apiKeys: ApiKeys, log: Logger, onError: OnError): Promise<void> {
  try {
    const written = await apiKeys.flush();
    if (!written.ok)
      log.warn('revocations or uses of API keys could not be saved yet', { reason: explain(written.fault) });
  } catch (error) {
    onError(error, 'saving revocations and uses of API keys'); // a full disk makes the embedded store reject
  }
}

/** Removes a slice of the finished operations at a time, so that checks run in between. */
function sweep(governor: Governor, clock: Clock, slices = new TimedSlices(SWEEP_SLICES, performance)): void {
  if (slices.run((most) => governor.sweep(clock.nowMs(), most))) setImmediate(() => sweep(governor, clock, slices));
}
