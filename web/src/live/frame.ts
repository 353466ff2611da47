/** A frame of the live stream (docs/live-stream.md). */
export type Frame = {
  readonly id: string;
  readonly event_type: string;
  readonly org_id: string | null;
  readonly agent_id: string | null;
  readonly timestamp: string;
  readonly payload: any;
};

export type Snapshot = {
  /** How many operations are to come. */
  readonly opCount: number;
  /** How long the finished ones are kept. */
  readonly finishedTtlMs: number;
};
