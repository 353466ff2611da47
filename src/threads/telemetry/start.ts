/** Traces, metrics and logs for a collector of OpenTelemetry; nothing of it is loaded where that is off. */

import type { Config } from '../../config/config.ts';
import type { Closing } from '../../ports/closing.ts';
import type { Logger } from '../../system/log.ts';
import { packageVersion } from '../../system/package-files.ts';
import type { Signal } from './messages.ts';
import type { TelemetryLink } from './telemetry-link.ts';

/** It gets at least this long, even where the rest has used up the grace period of the shutdown. */
const LEAST_GRACE_MS = 500;
/** A collector that is away must not hold up a stop. */
const MOST_GRACE_MS = 2_000;

/** Which signals are sent; none: it is off. */
function signalsOf(config: Config): readonly Signal[] {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined || config.OTEL_SDK_DISABLED) return [];
  const wanted = {
    traces: config.OTEL_TRACES_EXPORTER,
    metrics: config.OTEL_METRICS_EXPORTER,
    logs: config.OTEL_LOGS_EXPORTER,
  } as const;
  return (['traces', 'metrics', 'logs'] as const).filter((signal) => wanted[signal] === 'otlp');
}

/** The variables that OpenTelemetry's packages read, in their thread. */
const environmentOf = (config: Config): NodeJS.ProcessEnv => ({
  ...process.env,
  OTEL_EXPORTER_OTLP_ENDPOINT: config.OTEL_EXPORTER_OTLP_ENDPOINT,
  OTEL_EXPORTER_OTLP_HEADERS: config.OTEL_EXPORTER_OTLP_HEADERS,
  OTEL_SERVICE_NAME: config.OTEL_SERVICE_NAME,
  OTEL_TRACES_SAMPLER: config.OTEL_TRACES_SAMPLER,
  OTEL_TRACES_SAMPLER_ARG: config.OTEL_TRACES_SAMPLER_ARG?.toString(),
});

/** Undefined where it is off. */
export async function startTelemetry(
  config: Config,
  log: Logger,
  closers: Closing,
): Promise<TelemetryLink | undefined> {
  const signals = signalsOf(config);
  if (signals.length === 0) return undefined;
  const { TelemetryLink } = await import('./telemetry-link.ts');
  const telemetry = new TelemetryLink({
    protocol: config.OTEL_EXPORTER_OTLP_PROTOCOL,
    signals,
    environment: environmentOf(config),
    version: packageVersion(),
    metricsEveryMs: config.OTEL_METRIC_EXPORT_INTERVAL,
    note: (level, message, fields) => log[level](message, fields),
  });
  log.follow?.((line) => telemetry.addLine(line));
  closers.add('the telemetry', (grace) => {
    log.follow?.(undefined);
    return telemetry.close(Math.min(MOST_GRACE_MS, grace.leftMs(LEAST_GRACE_MS)));
  });
  return telemetry;
}
