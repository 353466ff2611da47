/**
 * Metrics for Prometheus. Values are read only when the metrics are asked for, so that they cost nothing until then.
 */
import type { Metric as Registered, Registry } from 'prom-client';

export type Reading = { readonly labels?: Readonly<Record<string, string>>; readonly value: number };
export type Metric = {
  /** `svc_…`, in base units; ends in `_total` for a value that only grows. */
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly labels?: readonly string[];
  readonly read: () => number | readonly Reading[];
};

export type Histogram = {
  readonly name: string;
  readonly type: 'histogram';
  readonly help: string;
  /** Upper bounds, ascending. */
  readonly buckets: readonly number[];
  /** How many were within each bucket and no earlier one, last those beyond all, and the sum of all. */
  readonly read: () => { readonly counts: readonly number[]; readonly sum: number };
};

export type Metrics = {
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
  close(): void;
};

/** The library is loaded when they are first asked for: most gateways that start are gone before that. */
export function createMetrics(metrics: readonly (Metric | Histogram)[]): Metrics {
  let registry: Promise<Registry> | undefined;
  return {
    render: async () => {
      const opened = await (registry ??= registryOf(metrics));
      return { contentType: opened.contentType, text: await opened.metrics() };
    },
    close: () => void registry?.then((opened) => opened.clear()),
  };
}

async function registryOf(metrics: readonly (Metric | Histogram)[]): Promise<Registry> {
  const { Counter, collectDefaultMetrics, Gauge, Registry } = await import('prom-client');
  const registry = new Registry();
  // Process and event loop, under the names that dashboards for Node.js know.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 });
  for (const metric of metrics) {
    if (metric.type === 'histogram') {
      registry.registerMetric(collected(metric));
      continue;
    }
    const { name, type, help, labels = [], read } = metric;
    const each = (take: (labels: Record<string, string>, value: number) => void): void => {
      const readings = read();
      for (const { labels: of = {}, value } of typeof readings === 'number' ? [{ value: readings }] : readings)
        take(of, value);
    };
    const common = { name, help, labelNames: labels, registers: [registry] };
    if (type === 'gauge') {
      new Gauge({
        ...common,
        collect() {
          this.reset();
          each((of, value) => this.set(of, value));
        },
      });
    } else {
      new Counter({
        ...common,
        collect() {
          this.reset();
          each((of, value) => this.inc(of, value));
        },
      });
    }
  }
  return registry;
}

/** The library's own histogram takes observations one by one; here they come counted, from other threads. */
function collected({ name, type, help, buckets, read }: Histogram): Registered {
  const get = async () => {
    const { counts, sum } = read();
    let count = 0;
    const values = counts.map((within, at) => ({
      metricName: `${name}_bucket`,
      labels: { le: buckets[at] ?? '+Inf' },
      value: (count += within),
    }));
    return {
      name,
      type,
      help,
      aggregator: 'sum',
      values: [
        ...values,
        { metricName: `${name}_sum`, labels: {}, value: sum },
        { metricName: `${name}_count`, labels: {}, value: count },
      ],
    };
  };
  return { name, get } as unknown as Registered;
}
