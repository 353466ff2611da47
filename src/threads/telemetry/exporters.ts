/** The exporters of the protocol that the environment names. Each is loaded only where it is used. */

import type { LogRecordExporter } from '@opentelemetry/sdk-logs';
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';

export type Protocol = 'http/protobuf' | 'http/json';

/** Their targets, headers and time-outs come from the environment. */
export type Exporters = {
  readonly spans: () => Promise<SpanExporter>;
  readonly metrics: () => Promise<PushMetricExporter>;
  readonly logs: () => Promise<LogRecordExporter>;
};

const PROTOBUF: Exporters = {
  spans: async () => new (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter(),
  metrics: async () => new (await import('@opentelemetry/exporter-metrics-otlp-proto')).OTLPMetricExporter(),
  logs: async () => new (await import('@opentelemetry/exporter-logs-otlp-proto')).OTLPLogExporter(),
};
const JSON_TEXT: Exporters = {
  spans: async () => new (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter(),
  metrics: async () => new (await import('@opentelemetry/exporter-metrics-otlp-http')).OTLPMetricExporter(),
  logs: async () => new (await import('@opentelemetry/exporter-logs-otlp-http')).OTLPLogExporter(),
};

export const exportersFor = (protocol: Protocol): Exporters => (protocol === 'http/json' ? JSON_TEXT : PROTOBUF);
