import type { KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ANCHOR_FILE,
  CHECKPOINTS_FILE,
  type Checkpoint,
  type Checkpointer,
  createCheckpointer,
  latestCheckpoint,
  loadCheckpointKey,
  readAnchor,
  readCheckpoints,
} from '../../audit-log/checkpoint.ts';
import { spanOf } from '../../audit-log/recovery.ts';
import { applyRetention, type RetentionReport } from '../../audit-log/retention.ts';
import { shrinkLog, sizeOfLog } from '../../audit-log/shrink.ts';
import { StrangersShare } from '../../audit-log/strangers-share.ts';
import type { AuditWriter } from '../../audit-log/writer.ts';
import type { PeerHead, WitnessStatement } from '../../core/audit/witness.ts';
import { messageOf } from '../../core/base/text.ts';
import { rfc3339 } from '../../core/base/time.ts';
import { type ClockGuard, createClockGuard } from '../../system/clock-guard.ts';

export type UpkeepOptions = {
  readonly directory: string;
  /** The path of the key that signs checkpoints: not in the folder that it vouches for. */
  readonly checkpointKeyPath: string;
  /** The name of this gateway, where several act as one. */
  readonly gateway?: string | undefined;
  readonly checkpointEveryMs: number;
  /** A segment this large is followed by a new one; undefined: as the writer has it. */
  readonly segmentBytes?: number;
  /** Undefined: no limit. With an age, nothing that is younger is deleted. */
  readonly retention: { readonly maxAgeMs: number | undefined; readonly maxBytes: number | undefined };
};

/** Gets what witnesses are to keep of the log. */
export type OnStatement = (statement: WitnessStatement) => void;

export type Note = (level: 'info' | 'warn', message: string) => void;

const RETENTION_EVERY_MS = 10 * 60_000;
/**
 * How soon a new segment is noticed. A busy gateway may write several a second, far too many for the interval above.
 */
const LOOK_EVERY_MS = 1_000;
/** A new limit may exceed by many segments. They are deleted in steps, with entries written in between. */
const SEGMENTS_PER_STEP = 8;
const NEXT_STEP_MS = 200;
/** Between two pieces of a millisecond each, while a log that is too large is looked through. */
const PACE_MS = 4;
const DAY_MS = 24 * 3_600_000;
const LOST_KEY = `signatures of the old key can no longer be verified, and \`svc audit verify\` reports it as forged. Stop the gateway and restore keys and audit from the same backup; if the old key is lost, move ${CHECKPOINTS_FILE} away`;
/** Without the anchor the log would look cut at its beginning, so it cannot be moved away. */
const LOST_ANCHOR = `, and verify a copy of the folder, without the key, until retention has deleted another file and signed ${ANCHOR_FILE} again`;
const UNSIGNED =
  'if its end was cut off, this cannot be detected. If a restore left the file out, stop the gateway and restore all parts from the same backup';
const NOT_SIGNED = 'could not sign the head of the audit log';
const NOT_DELETED = 'could not delete old audit segments';
const NOT_NOTED = 'could not note how much of the audit log comes from callers that are not identified';

/** Used if the size of the log is not limited. */
const DEFAULT_SHARE_BYTES = 1024 * 1024 * 1024;
const strangersShareOf = (maxBytes: number | undefined): number =>
  maxBytes === undefined ? DEFAULT_SHARE_BYTES : Math.floor(maxBytes / 10);

type UpkeptWriter = Pick<AuditWriter, 'flush' | 'flushNow' | 'segmentPath'>;

/**
 * Housekeeping of the audit thread: signs the head of the log periodically, and deletes segments beyond the retention
 * limits (docs/spec.md, Audit). A failure is reported and tried again; writing entries continues.
 */
export class AuditUpkeep {
  readonly #writer: UpkeptWriter;
  readonly #options: UpkeepOptions;
  readonly #note: Note;
  readonly #onStatement: OnStatement;
  #lastCheckpoint: Checkpoint | undefined;
  /** The ends of the other gateways' logs in a cluster. */
  peers: readonly PeerHead[] = [];
  readonly #key: KeyObject;
  readonly #checkpointer: Checkpointer;
  /** Undefined where nothing is deleted for its age. */
  readonly #clock: ClockGuard | undefined;
  readonly strangers: StrangersShare;
  readonly #timers: readonly NodeJS.Timeout[];
  #nextStep: NodeJS.Timeout | undefined;
  /** The segment that was current when retention last ran. */
  #seenSegment: string | undefined;
  #isFlushing = false;
  #isShrinking = false;
  /** Larger than its limit, and kept all the same. */
  #isLarge = false;
  #isStopped = false;

  /** Starts at once. Throws where the key of the checkpoints cannot be read. */
  constructor(writer: UpkeptWriter, options: UpkeepOptions, note: Note, onStatement: OnStatement = () => undefined) {
    const { directory, checkpointKeyPath, checkpointEveryMs, retention } = options;
    this.#writer = writer;
    this.#options = options;
    this.#note = note;
    this.#onStatement = onStatement;
    const hasKey = existsSync(checkpointKeyPath);
    this.#key = loadCheckpointKey(checkpointKeyPath);
    const isSigned = readCheckpoints(directory).length > 0;
    const isAnchored = readAnchor(directory) !== undefined;
    if (!hasKey && (isSigned || isAnchored))
      note(
        'warn',
        `${checkpointKeyPath} was missing, and a new key was created: ${LOST_KEY}${isAnchored ? LOST_ANCHOR : ''}`,
      );
    if (!isSigned) this.#attempt('could not determine the age of the audit log', () => this.#warnIfOld());
    this.#checkpointer = createCheckpointer({
      directory,
      key: this.#key,
      gateway: options.gateway,
      nowMs: Date.now,
    });
    // The gateway may have been killed before its witnesses had it.
    this.#state(latestCheckpoint(directory));
    this.#clock = retention.maxAgeMs === undefined ? undefined : this.#createClockGuard();
    this.strangers = new StrangersShare(directory, strangersShareOf(retention.maxBytes));
    const checkpoints = setInterval(() => void this.#checkpoint(), checkpointEveryMs);
    const hasRetention = retention.maxAgeMs !== undefined || retention.maxBytes !== undefined;
    if (hasRetention) this.#retain();
    this.#timers = hasRetention
      ? [
          checkpoints,
          setInterval(() => this.#retain(), RETENTION_EVERY_MS),
          setInterval(() => this.#retainIfGrown(), LOOK_EVERY_MS),
        ]
      : [checkpoints];
  }

  /** Warns about a log that must have been signed before, unless every run of the gateway was killed early. */
  #warnIfOld(): void {
    const { directory, checkpointEveryMs } = this.#options;
    const span = spanOf(directory);
    if (span === undefined || span.toMs - span.fromMs <= checkpointEveryMs) return;
    this.#note(
      'warn',
      `${join(directory, CHECKPOINTS_FILE)} was missing, although the log goes back to ${rfc3339(span.fromMs)}: ${UNSIGNED}`,
    );
  }

  /** Notes how much of what was just written is from callers that are not identified. */
  noteStrangers(bytes: number): void {
    const { segmentPath } = this.#writer;
    if (segmentPath !== undefined) this.strangers.add(segmentPath, bytes);
  }

  /** Ends without a signature. */
  abandon(): void {
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#nextStep);
    this.#isStopped = true;
  }

  /** Signs the head a last time. */
  stop(): void {
    this.abandon();
    this.#attempt(NOT_SIGNED, () => this.#state(this.#checkpointer.record(this.#writer.flushNow(), this.peers)));
    this.#attempt(NOT_NOTED, () => this.strangers.save());
  }

  /**
   * The entries must be on the disk before the checkpoint is: otherwise a loss of power would look like a log that was
   * cut.
   */
  async #checkpoint(): Promise<void> {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    try {
      const head = await this.#writer.flush();
      if (this.#isStopped) return;
      this.#state(this.#checkpointer.record(head, this.peers));
      this.strangers.save();
    } catch (error) {
      this.#failed(NOT_SIGNED, error);
    } finally {
      this.#isFlushing = false;
    }
  }

  #retain(): void {
    clearTimeout(this.#nextStep);
    this.#seenSegment = this.#writer.segmentPath;
    const { maxAgeMs, maxBytes } = this.#options.retention;
    // An operator who sets an age wants all younger entries: then size deletes nothing, and is only warned about.
    if (maxAgeMs === undefined) void this.#shrink();
    else this.#attempt(NOT_DELETED, () => this.#deleteOld(maxAgeMs));
    if (maxAgeMs !== undefined && maxBytes !== undefined)
      this.#attempt(NOT_DELETED, () => this.#warnIfLarge(maxAgeMs, maxBytes));
  }

  #deleteOld(maxAgeMs: number): void {
    if (this.#clock?.isBelieved() !== true) return;
    const { directory } = this.#options;
    const limits = { directory, maxAgeMs, maxSegments: SEGMENTS_PER_STEP, key: this.#key, nowMs: Date.now() };
    const report = applyRetention(limits);
    this.strangers.drop(report.deletedSegments);
    this.#noteDeleted(report);
    if (report.isCut) this.#nextStep = setTimeout(() => this.#retain(), NEXT_STEP_MS);
  }

  /** Runs one at a time; a run sees a segment that is begun meanwhile, or is followed by another run. */
  async #shrink(): Promise<void> {
    const { directory, segmentBytes, retention } = this.#options;
    const { maxBytes } = retention;
    if (maxBytes === undefined || this.#isShrinking) return;
    this.#isShrinking = true;
    try {
      const report = await shrinkLog({
        directory,
        maxBytes,
        segmentBytes: segmentBytes ?? maxBytes,
        strangers: this.strangers,
        key: this.#key,
        nowMs: Date.now,
        pace: () => sleep(PACE_MS, undefined, { ref: false }),
        isStopped: () => this.#isStopped,
      });
      this.#noteDeleted(report);
    } catch (error) {
      this.#failed(NOT_DELETED, error);
    } finally {
      this.#isShrinking = false;
    }
  }

  #noteDeleted({ deletedSegments: names, deletedBytes }: RetentionReport): void {
    if (names.length === 0) return;
    this.#state(this.#lastCheckpoint);
    this.#note('info', `retention deleted ${names.length} audit segments, ${deletedBytes} bytes: ${names.join(', ')}`);
  }

  /** Once while it lasts. */
  #warnIfLarge(maxAgeMs: number, maxBytes: number): void {
    const bytes = sizeOfLog(this.#options.directory) - this.strangers.uncountedBytes;
    const isLarge = bytes > maxBytes;
    if (isLarge && !this.#isLarge)
      this.#note(
        'warn',
        `the audit log has ${bytes} bytes, more than SVC_AUDIT_RETENTION_MIB allows; nothing is deleted, because all of it is younger than the ${maxAgeMs / DAY_MS} days of SVC_AUDIT_RETENTION_DAYS. Give it more room, or keep fewer days: on a full disk SVC_AUDIT_ON_FAILURE decides`,
      );
    this.#isLarge = isLarge;
  }

  /** Tells the witnesses that this was the end of the log, and where the log begins now. */
  #state(checkpoint: Checkpoint | undefined): void {
    if (checkpoint === undefined) return;
    this.#lastCheckpoint = checkpoint;
    const anchor = readAnchor(this.#options.directory);
    const first_id = anchor === 'damaged' ? undefined : (anchor?.first_id ?? 1);
    this.#onStatement({ ...checkpoint, first_id });
  }

  #retainIfGrown(): void {
    if (this.#writer.segmentPath !== this.#seenSegment) this.#retain();
  }

  #createClockGuard(): ClockGuard {
    const signedMs = readCheckpoints(this.#options.directory).map(({ checkpoint }) =>
      Date.parse(checkpoint?.timestamp ?? ''),
    );
    return createClockGuard({
      witnessedMs: signedMs.filter((ms) => !Number.isNaN(ms)),
      onLeap: (fromMs, toMs) =>
        this.#note(
          'warn',
          `the clock went from ${rfc3339(fromMs)} to ${rfc3339(toMs)}; no audit segment will be deleted because of its age until the gateway has run for another day`,
        ),
    });
  }

  #attempt(what: string, step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#failed(what, error);
    }
  }

  #failed(what: string, error: unknown): void {
    this.#note('warn', `${what}: ${messageOf(error)}`);
  }
}
