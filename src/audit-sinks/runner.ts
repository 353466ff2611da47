/** Sends the audit log to one sink: in order, at least once, for as long as it takes (docs/audit-sinks.md). */
import { frameOf } from '../audit-log/line.ts';
import { backoffMs, spreadMs } from '../core/base/backoff.ts';
import { messageOf } from '../core/base/text.ts';
import { type Cursor, readCursor, writeCursor } from './cursor.ts';
import { LogFollower, type Piece, type ReadLimits } from './follower.ts';
import { placeOf, Refused, type SinkEntry, type SinkSetting, type SinkStatus, type SinkTarget } from './sink.ts';

export type Note = (level: 'info' | 'warn' | 'error', message: string, fields: object) => void;

export type RunnerOptions = {
  readonly setting: SinkSetting;
  readonly target: SinkTarget;
  readonly directory: string;
  readonly cursorPath: string;
  readonly note: Note;
  /** Called after each attempt. */
  readonly onStatus: () => void;
  readonly timing?: Partial<Timing>;
};

export type Timing = {
  /** How long a batch may take. */
  readonly timeoutMs: number;
  /** Between two looks at the log, unless there was more than fits into a batch. */
  readonly everyMs: number;
  /** The first wait after a failure; it doubles up to the longest. */
  readonly retryMs: number;
  readonly maxRetryMs: number;
};

const TIMING: Timing = { timeoutMs: 15_000, everyMs: 500, retryMs: 500, maxRetryMs: 30_000 };
/** The longest that a receiver may ask for. */
const MAX_ASKED_WAIT_MS = 5 * 60_000;
const LIMITS: ReadLimits = { entries: 1_000, bytes: 1024 * 1024 };
const SAVE_EVERY_MS = 1_000;
/** As many entries as one append to the log may have: a failed one is cut off again. */
const MAX_APPENDED = 4_096;
/** How many confirmed batches are remembered, for sinks that go back after a failure. */
const MAX_SENT = 1_000;

export class SinkRunner {
  readonly #options: RunnerOptions;
  readonly #timing: Timing;
  readonly #log: LogFollower;
  #cursor: Cursor = { id: 0, hash: undefined };
  /** Counts replays: what was under way at one of them moves the cursor no more. */
  #epoch = 0;
  /** Until when a stop waits for what is not sent; undefined: nobody stops it. */
  #drainUntilMs: number | undefined;
  #maxEntries = LIMITS.entries;
  #failuresInARow = 0;
  #failures = 0;
  #sentEntries = 0;
  #lostEntries = 0;
  #trouble: string | undefined;
  #isStopped = false;
  /** Ends the attempt that is under way. */
  #ending: AbortController | undefined;
  /** Ends the wait that is under way. */
  #wake: (() => void) | undefined;
  /** The next wait ends at once. */
  #isWoken = false;
  #savedMs = 0;
  #isSaved = true;
  /** Batches that were confirmed, oldest first, and where the cursor stood before. */
  #sent: { readonly atMs: number; readonly before: Cursor }[] = [];
  /** The entry at which the log was found to have been changed: seen again, it is believed. */
  #changedAt: number | undefined;
  #running: Promise<void> | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    this.#log = new LogFollower(options.directory);
  }

  get status(): SinkStatus {
    const { setting } = this.#options;
    return {
      name: setting.name,
      type: setting.type,
      format: setting.format,
      place: placeOf(setting),
      sentId: this.#cursor.id,
      sentEntries: this.#sentEntries,
      lostEntries: this.#lostEntries,
      failures: this.#failures,
      trouble: this.#trouble,
    };
  }

  /** Goes on behind what the receiver has. Throws what the file system says. */
  start(): void {
    this.#cursor = this.#begin();
    this.#running = this.#run();
  }

  /** Sends everything from this entry on, again or for the first time; beyond the end of the log: from there on. */
  replay(fromId: number): void {
    this.#epoch += 1;
    this.#cursor = { ...this.#cursor, id: Math.min(fromId - 1, this.#log.lastId()), hash: undefined };
    this.#sent = [];
    this.#isSaved = false;
    this.#save();
    this.#retryNow();
  }

  /** Rejects where the receiver does not take a message that is no entry. */
  test(): Promise<void> {
    return this.#options.target.test(AbortSignal.timeout(this.#timing.timeoutMs));
  }

  /** Sends what is in the log, if the receiver takes it, and ends when that is done or the time is over. */
  async close(graceMs: number): Promise<void> {
    this.#drainUntilMs = performance.now() + graceMs;
    this.#retryNow();
    const late = setTimeout(() => {
      this.#isStopped = true;
      this.#ending?.abort(new Error('the gateway stops'));
    }, graceMs);
    await this.#running;
    clearTimeout(late);
    this.#save();
  }

  #begin(): Cursor {
    const { cursorPath, note, setting } = this.#options;
    const read = readCursor(cursorPath);
    const lastId = this.#log.lastId();
    const first = { id: (this.#log.firstId() ?? 1) - 1, hash: undefined };
    if (read === undefined) return first;
    if (read !== 'damaged' && read.id <= lastId) return read;
    note('warn', 'an audit sink begins at the start of the log again', {
      sink: setting.name,
      reason:
        read === 'damaged'
          ? `${cursorPath} is damaged`
          : `it was sent entry ${read.id}, and the log ends with ${lastId}: it was restored or cut`,
    });
    return first;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const isLast = this.#drainUntilMs !== undefined;
      try {
        const isMore = await this.#step();
        if (isMore) continue;
        if (isLast) return;
        await this.#wait(this.#timing.everyMs);
      } catch (error) {
        this.#fail(error);
        // A stop does not wait for a receiver that is away.
        if (this.#drainUntilMs !== undefined) return;
        await this.#wait(this.#waitAfter(error));
      }
    }
  }

  /** Sends the next batch; true where there is more. */
  async #step(): Promise<boolean> {
    const from = this.#cursor;
    const epoch = this.#epoch;
    const limits = { ...LIMITS, entries: this.#maxEntries };
    const piece = this.#log.read(from.id, limits);
    const { entries } = piece;
    if (entries.length === 0) {
      this.#save();
      return false;
    }
    if (this.#wasChanged(piece, from)) return true;
    await this.#attempt(entries);
    if (epoch !== this.#epoch) return true;
    this.#confirm(from, entries);
    return entries.length === limits.entries || this.#drainUntilMs !== undefined || this.#isPieceCut(entries);
  }

  /** Rejects when its time is over, whatever the target does. */
  async #attempt(entries: readonly SinkEntry[]): Promise<void> {
    const ending = new AbortController();
    const ended = new Promise<never>((_, reject) => {
      ending.signal.addEventListener('abort', () => reject(ending.signal.reason), { once: true });
    });
    const late = setTimeout(() => ending.abort(new Error('it took too long')), this.#timing.timeoutMs);
    this.#ending = ending;
    try {
      await Promise.race([this.#options.target.send(entries, ending.signal), ended]);
    } finally {
      clearTimeout(late);
      this.#ending = undefined;
    }
  }

  /** Long entries fill a batch before it has as many as it may. */
  #isPieceCut(entries: readonly SinkEntry[]): boolean {
    return entries.reduce((sum, { line }) => sum + line.length, 0) > LIMITS.bytes / 2;
  }

  /** An append that failed was cut off after it had been read, and others have its ids now: they are sent too. */
  #wasChanged({ entries, first }: Piece, from: Cursor): boolean {
    const isNext = entries[0]?.id === from.id + 1;
    if (!isNext || first === undefined || from.hash === undefined || first.prevHash === from.hash) return false;
    if (this.#changedAt === from.id) return false; // the log itself is damaged there, which verification names
    this.#changedAt = from.id;
    this.#cursor = { ...from, id: Math.max(0, from.id - MAX_APPENDED), hash: undefined };
    return true;
  }

  #confirm(from: Cursor, entries: readonly SinkEntry[]): void {
    const last = entries.at(-1)!;
    this.#cursor = { id: last.id, hash: frameOf(Buffer.from(last.line))?.hash };
    this.#noteLost(from, entries);
    this.#sentEntries += entries.length;
    this.#remember(from);
    this.#failuresInARow = 0;
    this.#maxEntries = Math.min(LIMITS.entries, this.#maxEntries * 2);
    this.#isSaved = false;
    if (performance.now() - this.#savedMs >= SAVE_EVERY_MS) this.#save();
    if (this.#trouble !== undefined) {
      this.#trouble = undefined;
      this.#options.note('info', 'an audit sink takes entries again', { sink: this.#options.setting.name });
    }
    this.#options.onStatus();
  }

  /** Ids have no gaps but where retention has deleted entries. */
  #noteLost(from: Cursor, entries: readonly SinkEntry[]): void {
    const lastId = entries.at(-1)!.id;
    const lost = lastId - from.id - entries.length;
    if (lost <= 0) return;
    this.#lostEntries += lost;
    this.#options.note('error', 'an audit sink has lost entries: retention deleted them before they were sent', {
      sink: this.#options.setting.name,
      entries: lost,
      after: from.id,
      before: lastId,
    });
  }

  #remember(before: Cursor): void {
    const { rewindMs } = this.#options.target;
    if (rewindMs === 0) return;
    const nowMs = performance.now();
    this.#sent.push({ atMs: nowMs, before });
    while (this.#sent.length > MAX_SENT || (this.#sent[0]?.atMs ?? nowMs) < nowMs - rewindMs) this.#sent.shift();
  }

  #fail(error: unknown): void {
    const { note, setting, target } = this.#options;
    this.#failures += 1;
    this.#failuresInARow += 1;
    const reason = messageOf(error);
    if (error instanceof Refused && error.isTooLarge) this.#maxEntries = Math.max(1, Math.floor(this.#maxEntries / 2));
    // Entries that it took shortly before it went away are sent again.
    const [oldest] = this.#sent.filter(({ atMs }) => atMs >= performance.now() - target.rewindMs);
    if (oldest !== undefined) this.#cursor = oldest.before;
    this.#sent = [];
    if (this.#trouble === undefined)
      note('warn', 'an audit sink does not take entries; they are sent again until it does', {
        sink: setting.name,
        reason,
      });
    this.#trouble = reason;
    this.#options.onStatus();
  }

  #waitAfter(error: unknown): number {
    if (error instanceof Refused && error.isTooLarge && this.#maxEntries > 1) return 0;
    const { retryMs: firstMs, maxRetryMs: longestMs } = this.#timing;
    const ownMs = backoffMs(this.#failuresInARow, { firstMs, longestMs });
    const askedMs = error instanceof Refused ? Math.min(MAX_ASKED_WAIT_MS, error.retryAfterMs ?? 0) : 0;
    return Math.max(askedMs, spreadMs(ownMs, Math.random()));
  }

  #wait(ms: number): Promise<void> {
    if (this.#isWoken || this.#drainUntilMs !== undefined) {
      this.#isWoken = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#wake = end;
    });
  }

  #retryNow(): void {
    if (this.#wake === undefined) this.#isWoken = true;
    else this.#wake();
  }

  /** If it cannot be saved, more is sent again after a restart. */
  #save(): void {
    if (this.#isSaved) return;
    const { cursorPath, note, setting } = this.#options;
    this.#savedMs = performance.now();
    try {
      writeCursor(cursorPath, this.#cursor);
      this.#isSaved = true;
    } catch (error) {
      note('warn', 'the place of an audit sink could not be saved', { sink: setting.name, reason: messageOf(error) });
    }
  }
}
