/** An audit sink: the target of the log's entries, and their form (docs/audit-sinks.md). */

/** Paths of files in PEM format, read anew for each connection. */
export type SinkTls = {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly servername?: string | undefined;
};

export const SINK_TYPES = ['file', 'http', 'syslog', 'otlp'] as const;
export const SINK_FORMATS = ['native', 'ocsf'] as const;
export type SinkFormat = (typeof SINK_FORMATS)[number];

type Named = { readonly name: string; readonly format: SinkFormat };

export type SinkSetting = Named &
  (
    | { readonly type: 'file'; readonly path: string }
    | { readonly type: 'syslog'; readonly url: string; readonly tls: SinkTls }
    | {
        readonly type: 'http';
        readonly url: string;
        readonly headers: Readonly<Record<string, string>>;
        /** Signs each call; undefined: calls are not signed. */
        readonly secret: string | undefined;
        readonly tls: SinkTls;
      }
    | {
        readonly type: 'otlp';
        readonly url: string;
        readonly headers: Readonly<Record<string, string>>;
        readonly tls: SinkTls;
      }
  );

/** The target without parts that may be secret: no query and no headers. */
export function placeOf(setting: SinkSetting): string {
  if (setting.type === 'file') return setting.path;
  const { protocol, host, pathname } = new URL(setting.url);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}

/** An entry of the log. */
export type SinkEntry = {
  readonly id: number;
  /** The line as it is in the log, without its line feed. */
  readonly line: string;
};

/** A sink's other end. Each call takes as long as `signal` allows. */
export type SinkTarget = {
  /** Rejects where the receiver may not have all of them. */
  send(entries: readonly SinkEntry[], signal: AbortSignal): Promise<void>;
  /** Shows whether the receiver can be reached and takes what is sent, with a message that is no entry. */
  test(signal: AbortSignal): Promise<void>;
  /**
   * How far to go back after a failure: where nobody confirms that what was sent is kept, what was sent shortly before
   * a receiver went away may be lost.
   */
  readonly rewindMs: number;
};

/** The receiver's answer to a batch that it did not take. */
export class Refused extends Error {
  /** Smaller batches may be taken. */
  readonly isTooLarge: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(
    reason: string,
    { isTooLarge = false, retryAfterMs }: { isTooLarge?: boolean; retryAfterMs?: number } = {},
  ) {
    super(reason);
    this.isTooLarge = isTooLarge;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The state of a sink, for operators. */
export type SinkStatus = {
  readonly name: string;
  readonly type: SinkSetting['type'];
  readonly format: SinkFormat;
  readonly place: string;
  /** The last entry that its receiver has; 0: none. */
  readonly sentId: number;
  readonly sentEntries: number;
  readonly lostEntries: number;
  readonly failures: number;
  /** Why the last attempt failed; undefined: it did not. */
  readonly trouble: string | undefined;
};
