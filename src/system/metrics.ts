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
  /** Its labels name what not everybody may know of who may read the others. */
  readonly isNaming?: boolean;
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

/** As the library has them: what a histogram counts has names of its own, below the bound `le`. */
export type MetricReadings = {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly {
    readonly metricName?: string;
    readonly labels: Readonly<Record<string, string | number>>;
    readonly value: number;
  }[];
};

export type Metrics = {
  /** All of them, those that name something included. */
  readings(): Promise<readonly MetricReadings[]>;
  render(areNamesShown: boolean): Promise<{ readonly contentType: string; readonly text: string }>;
  close(): void;
};

/** The library is loaded when they are first asked for: most gateways that start are gone before that. */
export function createMetrics(metrics: readonly (Metric | Histogram)[]): Metrics {
  let registries: Promise<{ readonly common: Registry; readonly naming: Registry }> | undefined;
  return {
    readings: async () => {
      const { common, naming } = await (registries ??= registriesOf(metrics));
      const all = [...(await common.getMetricsAsJSON()), ...(await naming.getMetricsAsJSON())];
      return all.map((each) => ({ ...each, type: String(each.type) }) as unknown as MetricReadings);
    },
    render: async (areNamesShown) => {
      const { common, naming } = await (registries ??= registriesOf(metrics));
      const text = await common.metrics();
      return { contentType: common.contentType, text: areNamesShown ? text + (await naming.metrics()) : text };
    },
    close: () => {
      void registries?.then(({ common, naming }) => {
        common.clear();
        naming.clear();
      });
    },
  };
}

async function registriesOf(metrics: readonly (Metric | Histogram)[]) {
  const { Counter, collectDefaultMetrics, Gauge, Registry } = await import('prom-client');
  const common = new Registry();
  const naming = new Registry();
  // Process and event loop, under the names that dashboards for Node.js know.
  collectDefaultMetrics({ register: common, eventLoopMonitoringPrecision: 20 });
  for (const metric of metrics) {
    if (metric.type === 'histogram') {
      common.registerMetric(collected(metric));
      continue;
    }
    const { name, type, help, labels = [], isNaming = false, read } = metric;
    const each = (take: (labels: Record<string, string>, value: number) => void): void => {
      const readings = read();
      for (const { labels: of = {}, value } of typeof readings === 'number' ? [{ value: readings }] : readings)
        take(of, value);
    };
    const shape = { name, help, labelNames: labels, registers: [isNaming ? naming : common] };
    if (type === 'gauge') {
      new Gauge({
        ...shape,
        collect() {
          this.reset();
          each((of, value) => this.set(of, value));
        },
      });
    } else {
      new Counter({
        ...shape,
        collect() {
          this.reset();
          each((of, value) => this.inc(of, value));
        },
      });
    }
  }
  return { common, naming };
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
