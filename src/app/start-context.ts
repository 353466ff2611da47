import type { Config } from '../config/config.ts';
import type { RunId } from '../ports/cluster.ts';
import type { StartWait } from '../stores/postgres/start-wait.ts';
import type { Closers } from '../system/closers.ts';
import type { Logger } from '../system/log.ts';
import type { TelemetryLink } from '../threads/telemetry/telemetry-link.ts';

/** The tools of each step of a start. */
export type StartContext = {
  readonly config: Config;
  readonly log: Logger;
  /** Aborted when the gateway is to stop while it starts. */
  readonly signal: AbortSignal;
  /** For whatever asks the database. */
  readonly wait: StartWait;
  /** Each step that opens something adds how to close it. */
  readonly closers: Closers;
  /** Undefined: it is off. */
  readonly telemetry: TelemetryLink | undefined;
  /** In a cluster: this start of the gateway. */
  readonly run: RunId | undefined;
};
