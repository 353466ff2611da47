/** The settings of OpenTelemetry that the gateway reads itself: rows of the table, under the names of the standard. */
import { baseUrl, oneOf, switchedOn, text } from './parse.ts';
import { countOf, secret, type Variable, variable } from './variable.ts';

const exporter = (signal: string): Variable<'otlp' | 'none'> =>
  variable(oneOf('otlp', 'none'), '`otlp` or `none`', 'otlp', `\`none\`: no ${signal} are sent to the collector`);

export const TELEMETRY_VARIABLES = {
  OTEL_EXPORTER_OTLP_ENDPOINT: variable(
    baseUrl,
    'http://… or https://…, without a query',
    undefined,
    'collector of OpenTelemetry (OTLP/HTTP) that gets traces, metrics and logs, such as `http://127.0.0.1:4318`; see docs/opentelemetry.md; unset: nothing is sent',
  ),
  OTEL_EXPORTER_OTLP_PROTOCOL: variable(
    oneOf('http/protobuf', 'http/json'),
    '`http/protobuf` or `http/json`',
    'http/protobuf',
    'encoding for the collector: `http/protobuf` or `http/json`',
  ),
  OTEL_EXPORTER_OTLP_HEADERS: secret(
    variable(text, 'name=value pairs', undefined, 'headers for the collector, as `name=value,name=value`'),
  ),
  OTEL_SERVICE_NAME: {
    ...variable(text, 'text', undefined, 'the name of the gateway at the collector'),
    fallbackRule: '`svc-gateway`',
  },
  OTEL_TRACES_EXPORTER: exporter('traces'),
  OTEL_METRICS_EXPORTER: exporter('metrics'),
  OTEL_LOGS_EXPORTER: exporter('logs'),
  OTEL_TRACES_SAMPLER: variable(
    oneOf(
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ),
    'a sampler of OpenTelemetry, such as parentbased_traceidratio',
    'parentbased_always_on',
    'which checks become spans; with a ratio, `OTEL_TRACES_SAMPLER_ARG` says how many (0 to 1)',
  ),
  OTEL_TRACES_SAMPLER_ARG: variable(
    (value) => (/^(?:0(?:\.\d+)?|1(?:\.0+)?)$/.test(value) ? Number(value) : undefined),
    'a number from 0 to 1',
    undefined,
    'the part of all checks that become spans, with a sampler that takes a ratio',
  ),
  OTEL_METRIC_EXPORT_INTERVAL: countOf('milliseconds', 100, 86_400_000, '60000', 'how often metrics are sent'),
  OTEL_SDK_DISABLED: variable(switchedOn, 'true', '', '`true`: nothing is sent, whatever else is set'),
} as const;
