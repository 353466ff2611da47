import { messageOf } from '../core/error-text.ts';
import { createCheckpointer, loadCheckpointKey, readCheckpoints } from '../adapters/audit/checkpoint.ts';
import { applyRetention } from '../adapters/audit/retention.ts';
import type { AuditWriter } from '../adapters/audit/writer.ts';
import { createClockGuard } from './clock-guard.ts';

export type UpkeepOptions = {
  readonly directory: string;
  /** Where the key that signs checkpoints is kept: not in the folder that it vouches for. */
  readonly checkpointKeyPath: string;
  readonly checkpointEveryMs: number;
  /** Undefined: no limit. */
  readonly retention: { readonly maxAgeMs: number | undefined; readonly maxBytes: number | undefined };
};

export type Note = (level: 'info' | 'warn', message: string) => void;

const RETENTION_EVERY_MS = 10 * 60_000;
/** How soon a new segment is noticed. A busy gateway may write several a second, far too many for the interval above. */
const LOOK_EVERY_MS = 1_000;
/** A new limit may exceed by many segments. They are deleted in steps, with entries written in between. */
const SEGMENTS_PER_STEP = 8;
const NEXT_STEP_MS = 200;
const rfc3339 = (ms: number): string => new Date(ms).toISOString();
const NOT_SIGNED = 'the head of the audit log was not signed';

/**
 * Housekeeping of the audit thread: signs the head of the log periodically, and deletes segments beyond the retention limits
 * (contract: Audit). A failure is reported and tried again; writing entries continues.
 */
export function startUpkeep(writer: Pick<AuditWriter, 'flush' | 'flushNow' | 'segmentPath'>, options: UpkeepOptions, note: Note): { stop(): void } {
  const { directory, checkpointKeyPath, checkpointEveryMs, retention } = options;
  const key = loadCheckpointKey(checkpointKeyPath);
  const checkpointer = createCheckpointer({ directory, key, nowMs: Date.now });
  const hasRetention = retention.maxAgeMs !== undefined || retention.maxBytes !== undefined;

  let isFlushing = false;
  let isStopped = false;

  const failed = (what: string, error: unknown): void => note('warn', `${what}: ${messageOf(error)}`);
  const attempt = (what: string, step: () => void): void => {
    try {
      step();
    } catch (error) {
      failed(what, error);
    }
  };
  // The entries must be on the disk before the checkpoint is: otherwise a loss of power would look like a log that was cut.
  const checkpoint = async (): Promise<void> => {
    if (isFlushing) return;
    isFlushing = true;
    try {
      const head = await writer.flush();
      if (!isStopped) checkpointer.record(head);
    } catch (error) {
      failed(NOT_SIGNED, error);
    } finally {
      isFlushing = false;
    }
  };
  const clock = retention.maxAgeMs === undefined ? undefined : createClockGuard({
    witnessedMs: readCheckpoints(directory).map(({ checkpoint }) => Date.parse(checkpoint?.timestamp ?? '')).filter((ms) => !Number.isNaN(ms)),
    onLeap: (fromMs, toMs) => note('warn', `the clock went from ${rfc3339(fromMs)} to ${rfc3339(toMs)}: no audit segment is deleted for its age until the gateway has run for a day from now`),
  });
  const retain = (): void => attempt('old audit segments were not deleted', () => {
    clearTimeout(nextStep);
    seen = writer.segmentPath;
    const maxAgeMs = clock?.isBelieved() === true ? retention.maxAgeMs : undefined;
    const { deletedSegments, deletedBytes, isCut } = applyRetention({ directory, ...retention, maxAgeMs, maxSegments: SEGMENTS_PER_STEP, key, nowMs: Date.now() });
    if (isCut) nextStep = setTimeout(retain, NEXT_STEP_MS);
    if (deletedSegments.length > 0) note('info', `retention deleted ${deletedSegments.length} audit segments, ${deletedBytes} bytes: ${deletedSegments.join(', ')}`);
  });

  const look = (): void => {
    if (writer.segmentPath !== seen) retain();
  };

  let nextStep: NodeJS.Timeout | undefined;
  let seen: string | undefined;
  if (hasRetention) retain();
  const timers = [setInterval(() => void checkpoint(), checkpointEveryMs), ...(hasRetention ? [setInterval(retain, RETENTION_EVERY_MS), setInterval(look, LOOK_EVERY_MS)] : [])];
  return {
    stop() {
      for (const timer of timers) clearInterval(timer);
      clearTimeout(nextStep);
      isStopped = true;
      attempt(NOT_SIGNED, () => checkpointer.record(writer.flushNow()));
    },
  };
}
