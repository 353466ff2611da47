import type { RunId } from '../ports/cluster.ts';
import type { Logger } from '../system/log.ts';
import type { Closers } from './closers.ts';
import type { Config } from './config.ts';

/** What each step of a start has at hand. */
export type StartContext = {
  readonly config: Config;
  readonly log: Logger;
  /** Aborted when the gateway is to stop while it starts. */
  readonly signal: AbortSignal;
  /** Whoever opens something adds how to close it. */
  readonly closers: Closers;
  /** Of a gateway in a cluster: this start of it. */
  readonly run: RunId | undefined;
};
