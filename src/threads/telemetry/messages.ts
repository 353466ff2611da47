/** Messages of the gateway's threads to the thread of telemetry: plain data, over one broadcast channel. */
import type { DecisionCause } from '../../core/check/cause.ts';
import type { MetricReadings } from '../../system/metrics.ts';

/** A check that was answered. */
export type CheckRecord = {
  /** The header of that name, as it came; undefined: none. */
  readonly traceparent: string | undefined;
  readonly opId: string;
  readonly orgId: string;
  readonly teamId: string;
  readonly agentId: string;
  readonly action: string;
  readonly resource: string;
  readonly isDryRun: boolean;
  /** In milliseconds since the Unix epoch, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  /** Undefined where nothing was decided: then `fault` says why. */
  readonly decision: 'allow' | 'deny' | 'pending' | undefined;
  readonly fault: string | undefined;
  readonly cause: DecisionCause | undefined;
  readonly reason: string | undefined;
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  readonly approvalId: string | undefined;
  readonly auditId: number | undefined;
  /** The gateway of a cluster that decided it. */
  readonly home: string | undefined;
};

export type Signal = 'traces' | 'metrics' | 'logs';

export type Items = {
  readonly traces: readonly CheckRecord[];
  /** Lines of the log of the gateway: JSON. */
  readonly logs: readonly string[];
  /** A reading of all metrics. */
  readonly metrics: readonly { readonly atMs: number; readonly readings: readonly MetricReadings[] }[];
};

export type Batch = {
  [S in Signal]: {
    readonly kind: 'batch';
    readonly signal: S;
    /** Who has sent it, and which of its batches it is: the thread confirms what it has taken. */
    readonly feed: string;
    readonly number: number;
    readonly items: Items[S];
    /** Counts records dropped since the last batch, because too many waited. */
    readonly dropped: number;
  };
}[Signal];

export type Confirmation = { readonly kind: 'taken'; readonly feed: string; readonly number: number };

export type OnChannel = Batch | Confirmation;

export type Counts = Readonly<Record<Signal, number>>;

/** To the main thread, over the port of the thread. */
export type TelemetryNews =
  | { readonly type: 'status'; readonly exported: Counts; readonly dropped: Counts }
  | { readonly type: 'note'; readonly level: 'info' | 'warn'; readonly message: string; readonly fields: object };
/** Asks it to send what is left, and is answered when that is done or the time is over. */
export type TelemetryClose = { readonly graceMs: number };
