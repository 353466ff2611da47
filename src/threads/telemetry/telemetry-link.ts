import { randomUUID } from 'node:crypto';
import { messageOf } from '../../core/base/text.ts';
import type { MetricReadings } from '../../system/metrics.ts';
import { ThreadLink } from '../thread-link.ts';
import type { Protocol } from './exporters.ts';
import { Feed } from './feed.ts';
import type { Counts, Signal, TelemetryClose, TelemetryNews } from './messages.ts';
import type { TelemetryThreadOptions } from './telemetry-thread.ts';

export type TelemetryLinkOptions = {
  readonly protocol: Protocol;
  readonly signals: readonly Signal[];
  /** The environment of the thread. */
  readonly environment: NodeJS.ProcessEnv;
  readonly version: string;
  /** Between two readings of the metrics. */
  readonly metricsEveryMs: number;
  readonly note: (level: 'info' | 'warn' | 'error', message: string, fields: object) => void;
};

const NONE: Counts = { traces: 0, metrics: 0, logs: 0 };
const RESTART_MS = 5_000;
const CLOSE_MARGIN_MS = 500;

/** The main thread's link to the thread of telemetry. That starts again when it has died. */
export class TelemetryLink {
  readonly #options: TelemetryLinkOptions;
  /** Its name, for the threads that send over it. */
  readonly channel = `svc-telemetry-${randomUUID()}`;
  readonly #logs: Feed<'logs'> | undefined;
  readonly #metrics: Feed<'metrics'> | undefined;
  readonly #thread: ThreadLink<TelemetryClose, void, TelemetryNews>;
  #reading: NodeJS.Timeout | undefined;
  #counts: { readonly exported: Counts; readonly dropped: Counts } = { exported: NONE, dropped: NONE };
  /** Counts of threads that have died. */
  #before = { exported: NONE, dropped: NONE };

  constructor(options: TelemetryLinkOptions) {
    this.#options = options;
    this.#logs = options.signals.includes('logs') ? new Feed(this.channel, 'logs') : undefined;
    this.#metrics = options.signals.includes('metrics') ? new Feed(this.channel, 'metrics') : undefined;
    const { protocol, signals, environment: env, version, note } = options;
    const workerData: TelemetryThreadOptions = { channel: this.channel, protocol, signals, version };
    this.#thread = new ThreadLink(
      { entry: 'telemetry', workerData, env },
      {
        restartMs: RESTART_MS,
        onNews: (news) => {
          if (news.type === 'status') this.#counts = news;
          else note(news.level, news.message, news.fields);
        },
        onDefect: (error) => {
          note('error', 'sending telemetry failed', { error });
          this.#before = { exported: this.exported, dropped: this.dropped };
          this.#counts = { exported: NONE, dropped: NONE };
        },
      },
    );
    this.#thread.start();
  }

  get tracesChecks(): boolean {
    return this.#options.signals.includes('traces');
  }

  /** Adds a line of the main thread's log: JSON. */
  addLine(line: string): void {
    this.#logs?.add(line);
  }

  /** Reads the metrics from now on. */
  follow(read: () => Promise<readonly MetricReadings[]>): void {
    const { metricsEveryMs, note } = this.#options;
    if (this.#metrics === undefined) return;
    const add = (): void =>
      void read().then(
        (readings) => this.#metrics?.add({ atMs: Date.now(), readings }),
        (error: unknown) => note('error', 'reading metrics for OpenTelemetry failed', { error: messageOf(error) }),
      );
    this.#reading = setInterval(add, metricsEveryMs).unref();
  }

  get exported(): Counts {
    return sum(this.#before.exported, this.#counts.exported);
  }

  get dropped(): Counts {
    return sum(this.#before.dropped, this.#counts.dropped);
  }

  /** Sends what is left, as far as the collector takes it within that time. */
  close(graceMs: number): Promise<void> {
    clearInterval(this.#reading);
    this.#logs?.close();
    this.#metrics?.close();
    return this.#thread.close({ question: { graceMs }, withinMs: graceMs + CLOSE_MARGIN_MS });
  }
}

const sum = (one: Counts, other: Counts): Counts => ({
  traces: one.traces + other.traces,
  metrics: one.metrics + other.metrics,
  logs: one.logs + other.logs,
});
