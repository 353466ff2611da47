/** The metrics of the gateway, as Prometheus has them, for OTLP. */
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  type HistogramMetricData,
  type MetricData,
  type MetricDescriptor,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import type { MetricReadings } from '../../system/metrics.ts';

type HrTime = [number, number];
type Span = { readonly startTime: HrTime; readonly endTime: HrTime };

/** OpenTelemetry's `ValueType.DOUBLE`. */
const DOUBLE = 1;

const hrTime = (ms: number): HrTime => [Math.floor(ms / 1000), Math.floor((ms % 1000) * 1e6)];

/** `startMs`: when counting began. */
export function metricsFor(
  readings: readonly MetricReadings[],
  { startMs, atMs, resource, version }: { startMs: number; atMs: number; resource: Resource; version: string },
): ResourceMetrics {
  const span: Span = { startTime: hrTime(startMs), endTime: hrTime(atMs) };
  const metrics = readings.flatMap((reading) => dataOf(reading, span) ?? []);
  return { resource, scopeMetrics: [{ scope: { name: 'svc-gateway', version }, metrics }] };
}

function dataOf(reading: MetricReadings, span: Span): MetricData | undefined {
  const descriptor: MetricDescriptor = {
    name: reading.name,
    description: reading.help,
    unit: /_seconds(_total)?$/.test(reading.name) ? 's' : /_bytes(_total)?$/.test(reading.name) ? 'By' : '',
    valueType: DOUBLE,
  };
  const temporality = { aggregationTemporality: AggregationTemporality.CUMULATIVE } as const;
  const dataPoints = reading.values.map(({ labels, value }) => ({ ...span, attributes: textual(labels), value }));
  switch (reading.type) {
    case 'counter':
      return { descriptor, ...temporality, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
    case 'gauge':
      return { descriptor, ...temporality, dataPointType: DataPointType.GAUGE, dataPoints };
    case 'histogram':
      return {
        descriptor,
        ...temporality,
        dataPointType: DataPointType.HISTOGRAM,
        dataPoints: histogramsOf(reading, span),
      };
    default:
      return undefined;
  }
}

const textual = (labels: Readonly<Record<string, string | number>>): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));

type HistogramPoint = HistogramMetricData['dataPoints'][number];

/** Prometheus counts what is below each bound; OTLP, what is between two of them. One point for each set of labels. */
function histogramsOf({ name, values }: MetricReadings, span: Span): HistogramPoint[] {
  const groups = new Map<string, { labels: Record<string, string>; below: [number, number][]; sum: number }>();
  for (const { metricName, labels, value } of values) {
    const { le, ...rest } = textual(labels);
    const key = JSON.stringify(rest);
    const group = groups.get(key) ?? { labels: rest, below: [], sum: 0 };
    groups.set(key, group);
    if (metricName === `${name}_sum`) group.sum = value;
    else if (metricName === `${name}_bucket` && le !== undefined)
      group.below.push([le === '+Inf' ? Infinity : Number(le), value]);
  }
  return [...groups.values()].map(({ labels, below, sum }) => {
    const sorted = below.toSorted(([one], [other]) => one - other);
    const counts = sorted.map(([, count], n) => count - (sorted[n - 1]?.[1] ?? 0));
    const boundaries = sorted.map(([bound]) => bound).filter((bound) => bound !== Infinity);
    const count = sorted.at(-1)?.[1] ?? 0;
    return { ...span, attributes: labels, value: { buckets: { boundaries, counts }, sum, count } };
  });
}
