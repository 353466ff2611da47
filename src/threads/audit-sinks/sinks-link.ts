import { placeOf, type SinkSetting, type SinkStatus } from '../../audit-sinks/sink.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import { messageOf } from '../../core/base/text.ts';
import type { Fault } from '../../core/fault.ts';
import { within } from '../../system/clock.ts';
import type { AuditSinks, ListedSink, SinkTest } from '../../use-cases/audit-sinks.ts';
import { ThreadLink } from '../thread-link.ts';
import type { SinkAnswer, SinkNews, SinkQuestion, SinkThreadOptions } from './sinks-thread.ts';

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
  readonly #thread: ThreadLink<SinkQuestion, SinkAnswer, SinkNews>;
  #statuses: readonly SinkStatus[];

  constructor(options: SinksLinkOptions) {
    const { sinks, directory, cursorFolder, version, note } = options;
    this.#options = options;
    this.#statuses = sinks.map((setting) => unknownOf(setting));
    const workerData: SinkThreadOptions = { sinks, directory, cursorFolder, version };
    this.#thread = new ThreadLink(
      { entry: 'audit-sinks', workerData },
      {
        restartMs: RESTART_MS,
        onNews: (news) => this.#receive(news),
        onDefect: (error) => note('error', 'sending the audit log to its sinks failed', { error }),
      },
    );
  }

  /** Call it once the log is open. */
  start(): void {
    if (this.#options.sinks.length > 0) this.#thread.start();
  }

  get sinks(): readonly ListedSink[] {
    const lastId = this.#options.lastId();
    return this.#statuses.map((status) => ({ ...status, lag: Math.max(0, lastId - status.sentId) }));
  }

  async test(name: string): Promise<Result<SinkTest, Fault>> {
    const trouble = await this.#ask({ type: 'test', name });
    return trouble.ok ? ok({ trouble: trouble.value }) : trouble;
  }

  async replay(name: string, fromId: number): Promise<Result<void, Fault>> {
    const done = await this.#ask({ type: 'replay', name, fromId });
    if (!done.ok) return done;
    return done.value === undefined ? ok(undefined) : fail({ kind: 'internal' });
  }

  /** Sends what the log has now, as far as the receivers take it within that time. */
  close(graceMs: number): Promise<void> {
    return this.#thread.close({ question: { type: 'close', graceMs }, withinMs: graceMs + CLOSE_MARGIN_MS });
  }

  async #ask(question: Exclude<SinkQuestion, { type: 'close' }>): Promise<Result<string | undefined, Fault>> {
    if (!this.#options.sinks.some((sink) => sink.name === question.name))
      return fail({ kind: 'not_found', what: 'audit sink' });
    if (!this.#thread.isRunning)
      return fail({ kind: 'overloaded', what: 'the thread of the sinks', retryAfterSecs: 1 });
    const asked = this.#thread.ask(question).catch((error: unknown) => ({ trouble: messageOf(error) }));
    return ok(((await within(ANSWER_MS, asked)) ?? { trouble: 'it took too long' }).trouble);
  }

  #receive(news: SinkNews): void {
    if (news.type === 'status') this.#statuses = news.sinks;
    else this.#options.note(news.level, news.message, news.fields);
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
