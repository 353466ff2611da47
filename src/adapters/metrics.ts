/** Metrics for Prometheus. Values are read only when the metrics are asked for, so that they cost nothing until then. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';

export type Reading = { readonly labels?: Readonly<Record<string, string>>; readonly value: number };
export type Metric = {
  /** `svc_…`, in base units; ends in `_total` for a value that only grows. */
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly labels?: readonly string[];
  readonly read: () => number | readonly Reading[];
};

export type Metrics = { readonly contentType: string; render(): Promise<string>; close(): void };

export function createMetrics(metrics: readonly Metric[]): Metrics {
  const registry = new Registry();
  // Process and event loop, under the names that dashboards for Node.js know.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 });
  for (const { name, type, help, labels = [], read } of metrics) {
    const each = (take: (labels: Record<string, string>, value: number) => void): void => {
      const readings = read();
      for (const { labels: of = {}, value } of typeof readings === 'number' ? [{ value: readings }] : readings) take(of, value);
    };
    const common = { name, help, labelNames: labels, registers: [registry] };
    if (type === 'gauge') {
      new Gauge({ ...common, collect() { this.reset(); each((of, value) => this.set(of, value)); } });
    } else {
      new Counter({ ...common, collect() { this.reset(); each((of, value) => this.inc(of, value)); } });
    }
  }
  return { contentType: registry.contentType, render: () => registry.metrics(), close: () => registry.clear() };
}
