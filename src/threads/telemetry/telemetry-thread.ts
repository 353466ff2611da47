/**
 * The thread that sends traces, metrics and logs to a collector, by OpenTelemetry's own packages. Nothing of them runs
 * in threads that checks pass through.
 */
import { hostname } from 'node:os';
import { BroadcastChannel, type MessagePort } from 'node:worker_threads';
import { detectResources, envDetector, type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider, type LogRecordExporter } from '@opentelemetry/sdk-logs';
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import { messageOf } from '../../core/base/text.ts';
import { within } from '../../system/clock.ts';
import { answerQuestions } from '../thread-link.ts';
import { exportersFor, type Protocol } from './exporters.ts';
import { recordOf } from './logs.ts';
import type { Batch, OnChannel, Signal, TelemetryClose, TelemetryNews } from './messages.ts';
import { metricsFor } from './metrics.ts';
import { endedSpan } from './spans.ts';
import { type Exported, Tally } from './tally.ts';

export type TelemetryThreadOptions = {
  readonly channel: string;
  readonly protocol: Protocol;
  readonly signals: readonly Signal[];
  readonly version: string;
};

const STATUS_EVERY_MS = 1_000;
/** As many as the packages keep for an export. Beyond that, what comes is dropped and counted. */
const MAX_QUEUED = 2_048;

/** Takes what is sent; resolves when it is exported or given up. */
type Sink<S extends Signal> = {
  readonly take: (batch: Extract<Batch, { signal: S }>) => void;
  readonly end: () => Promise<unknown>;
};

export async function runTelemetryThread(main: MessagePort, options: TelemetryThreadOptions): Promise<void> {
  const { channel: name, protocol, signals, version } = options;
  const say = (news: TelemetryNews): void => main.postMessage(news);
  const tally = new Tally((level, message, fields) => say({ type: 'note', level, message, fields }));
  const resource = resourceOf(version);
  const exporters = exportersFor(protocol);
  const sinks: { [S in Signal]?: Sink<S> } = {
    ...(signals.includes('traces') && { traces: tracesTo(await exporters.spans(), resource, version, tally) }),
    ...(signals.includes('logs') && { logs: logsTo(await exporters.logs(), resource, version, tally) }),
    ...(signals.includes('metrics') && { metrics: metricsTo(await exporters.metrics(), resource, version, tally) }),
  };
  const channel = new BroadcastChannel(name);
  channel.onmessage = (event) => {
    const message = (event as { readonly data: OnChannel }).data;
    if (message.kind !== 'batch') return;
    tally.drop(message.signal, message.dropped);
    (sinks[message.signal] as Sink<typeof message.signal> | undefined)?.take(message as never);
    channel.postMessage({ kind: 'taken', feed: message.feed, number: message.number } satisfies OnChannel);
  };
  const status = (): void => say({ type: 'status', ...tally.counts });
  const timer = setInterval(status, STATUS_EVERY_MS);
  answerQuestions(main, async ({ graceMs }: TelemetryClose) => {
    await within(graceMs, Promise.allSettled(Object.values(sinks).map((sink) => sink.end())));
    clearInterval(timer);
    channel.close();
    status();
  });
}

/** `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` come before what is said here. */
const resourceOf = (version: string): Resource =>
  resourceFromAttributes({
    'service.name': 'svc-gateway',
    'service.version': version,
    'service.instance.id': `${hostname()}:${process.pid}`,
    'host.name': hostname(),
  }).merge(detectResources({ detectors: [envDetector] }));

function tracesTo(exporter: SpanExporter, resource: Resource, version: string, tally: Tally): Sink<'traces'> {
  const counting: SpanExporter = {
    export: (spans, done) => exporter.export(spans, tally.watching('traces', spans.length, done)),
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
  const processor = new BatchSpanProcessor(counting, { maxQueueSize: MAX_QUEUED });
  // The sampler is that of OTEL_TRACES_SAMPLER.
  const provider = new BasicTracerProvider({ resource, spanProcessors: [processor] });
  const tracer = provider.getTracer('svc-gateway', version);
  return {
    take: ({ items }) => {
      for (const record of items) {
        if (tally.queued('traces') >= MAX_QUEUED) tally.drop('traces', 1);
        else if (endedSpan(tracer, record)) tally.queue('traces');
      }
    },
    end: () => provider.shutdown(),
  };
}

function logsTo(exporter: LogRecordExporter, resource: Resource, version: string, tally: Tally): Sink<'logs'> {
  const counting: LogRecordExporter = {
    export: (records, done) => exporter.export(records, tally.watching('logs', records.length, done)),
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  };
  const processor = new BatchLogRecordProcessor({ exporter: counting, maxQueueSize: MAX_QUEUED });
  const provider = new LoggerProvider({ resource, processors: [processor] });
  const logger = provider.getLogger('svc-gateway', version);
  return {
    take: ({ items }) => {
      for (const line of items) {
        if (tally.queued('logs') >= MAX_QUEUED) tally.drop('logs', 1);
        else {
          tally.queue('logs');
          logger.emit(recordOf(line));
        }
      }
    },
    end: () => provider.shutdown(),
  };
}

function metricsTo(exporter: PushMetricExporter, resource: Resource, version: string, tally: Tally): Sink<'metrics'> {
  const startMs = performance.timeOrigin;
  let exporting: Promise<unknown> = Promise.resolve();
  return {
    take: ({ items }) => {
      for (const { atMs, readings } of items) {
        const metrics = metricsFor(readings, { startMs, atMs, resource, version });
        tally.queue('metrics');
        const ignore = (): void => undefined;
        exporting = new Promise<void>((resolve) => {
          const done = tally.watching('metrics', 1, ignore);
          exporter.export(metrics, (result) => {
            done(result);
            resolve();
          });
        }).catch((error: unknown) => tally.watching('metrics', 1, ignore)(failure(error)));
      }
    },
    end: async () => {
      await exporting;
      await exporter.shutdown();
    },
  };
}

const failure = (error: unknown): Exported => ({ code: 1, error: new Error(messageOf(error)) });
