import { Worker } from 'node:worker_threads';
import { placeOf, type SinkSetting, type SinkStatus } from '../../audit-sinks/sink.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import { stackOf } from '../../core/base/text.ts';
import type { Fault } from '../../core/fault.ts';
import { within } from '../../system/clock.ts';
import { workerFile } from '../../system/worker-file.ts';
import type { AuditSinks, ListedSink, SinkTest } from '../../use-cases/audit-sinks.ts';
import type { FromSinks, SinkThreadOptions, ToSinks } from './sinks-thread.ts';

export type SinksLinkOptions = SinkThreadOptions & {
  /** The id of the last entry that was handed to the log. */
  readonly lastId: () => number;
  readonly note: (level: 'info' | 'warn' | 'error', message: string, fields: object) => void;
};

/** A test may take as long as a batch. */
const ANSWER_MS = 20_000;
const RESTART_MS = 1_000;
/** The time a thread gets to save its cursors, after the time to send is over. */
const CLOSE_MARGIN_MS = 500;

/** The main thread's link to the thread of the audit sinks. That starts again when it has died. */
export class AuditSinksLink implements AuditSinks {
  readonly #options: SinksLinkOptions;
  readonly #waiting = new Map<number, (trouble: string | undefined) => void>();
  #statuses: readonly SinkStatus[];
  #worker: Worker | undefined;
  #restart: NodeJS.Timeout | undefined;
  #onClosed: (() => void) | undefined;
  #lastNumber = 0;
  #isClosed = false;

  constructor(options: SinksLinkOptions) {
    this.#options = options;
    this.#statuses = options.sinks.map((setting) => unknownOf(setting));
  }

  /** Call it once the log is open. */
  start(): void {
    const { sinks, directory, cursorFolder, version, note } = this.#options;
    if (sinks.length === 0 || this.#isClosed) return;
    const workerData: SinkThreadOptions = { sinks, directory, cursorFolder, version };
    const worker = new Worker(workerFile('audit-sinks'), { workerData, name: 'audit-sinks' });
    this.#worker = worker;
    worker.on('message', (message: FromSinks) => this.#receive(message));
    worker.on('error', (error) =>
      note('error', 'sending the audit log to its sinks failed', { error: stackOf(error) }),
    );
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
      this.#onClosed?.();
      for (const number of [...this.#waiting.keys()]) this.#settle(number, 'the thread of the sinks has ended');
      if (!this.#isClosed) this.#restart = setTimeout(() => this.start(), RESTART_MS).unref();
    });
    worker.unref();
  }

  get sinks(): readonly ListedSink[] {
    const lastId = this.#options.lastId();
    return this.#statuses.map((status) => ({ ...status, lag: Math.max(0, lastId - status.sentId) }));
  }

  async test(name: string): Promise<Result<SinkTest, Fault>> {
    const trouble = await this.#ask((number) => ({ type: 'test', number, name }), name);
    return trouble.ok ? ok({ trouble: trouble.value }) : trouble;
  }

  async replay(name: string, fromId: number): Promise<Result<void, Fault>> {
    const done = await this.#ask((number) => ({ type: 'replay', number, name, fromId }), name);
    if (!done.ok) return done;
    return done.value === undefined ? ok(undefined) : fail({ kind: 'internal' });
  }

  /** Sends what the log has now, as far as the receivers take it within that time. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#restart);
    const worker = this.#worker;
    if (worker === undefined) return;
    const closed = new Promise<void>((resolve) => {
      this.#onClosed = resolve;
    });
    worker.postMessage({ type: 'close', graceMs } satisfies ToSinks);
    await within(graceMs + CLOSE_MARGIN_MS, closed);
    await worker.terminate();
  }

  async #ask(message: (number: number) => ToSinks, name: string): Promise<Result<string | undefined, Fault>> {
    if (!this.#options.sinks.some((sink) => sink.name === name)) return fail({ kind: 'not_found', what: 'audit sink' });
    if (this.#worker === undefined)
      return fail({ kind: 'overloaded', what: 'the thread of the sinks', retryAfterSecs: 1 });
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const settled = new Promise<string | undefined>((resolve) => this.#waiting.set(number, resolve));
    this.#worker.postMessage(message(number));
    const late = setTimeout(() => this.#settle(number, 'it took too long'), ANSWER_MS);
    const trouble = await settled;
    clearTimeout(late);
    return ok(trouble);
  }

  #receive(message: FromSinks): void {
    if (message.type === 'status') this.#statuses = message.sinks;
    else if (message.type === 'note') this.#options.note(message.level, message.message, message.fields);
    else if (message.type === 'done') this.#settle(message.number, message.trouble);
    else this.#onClosed?.();
  }

  #settle(number: number, trouble: string | undefined): void {
    const settle = this.#waiting.get(number);
    this.#waiting.delete(number);
    settle?.(trouble);
  }
}

/** Until the thread has said more. */
const unknownOf = (setting: SinkSetting): SinkStatus => ({
  name: setting.name,
  type: setting.type,
  format: setting.format,
  place: placeOf(setting),
  sentId: 0,
  sentEntries: 0,
  lostEntries: 0,
  failures: 0,
  trouble: undefined,
});
