/** The messages between the threads: plain data, in closed unions that both ends of every channel import. */
import type { ChainHead } from '../audit-log/line.ts';
import type { PeerHead, WitnessStatement } from '../core/audit/witness.ts';
import type { AgentKey } from '../core/base/ids.ts';
import type { Command, Replies } from '../core/commands.ts';
import type { SignalMessage } from '../core/ops/op-view.ts';
import type { DurationCounts } from '../core/stats/durations.ts';
import type { GatewayEvent, Interest } from '../ports/events.ts';
import type { TlsIdentity } from '../ports/tls.ts';
import type { UseCaseName } from '../use-cases/use-cases.ts';

/**
 * Identifies an I/O thread. Never reused: a message for one that died must not reach its successor, which numbers its
 * requests from 1 again.
 */
export type IoId = number;
/** Stands for the main thread itself, where a use case or a timer asks the governor. */
export const OWN: IoId = -1;

/** In place of an I/O thread: the other gateways of a cluster. */
export const PEERS: IoId = -3;

export type IoToMain =
  | { readonly type: 'command'; readonly id: number; readonly command: Command }
  | { readonly type: 'call'; readonly id: number; readonly name: UseCaseName; readonly input: unknown }
  | { readonly type: 'interest'; readonly interest: Interest }
  | { readonly type: 'control-closed'; readonly stream: number; readonly agent: AgentKey }
  /** The origin of the request of this number: the answer to `locate`. */
  | { readonly type: 'located'; readonly id: number; readonly network: string }
  | { readonly type: 'stats'; readonly stats: IoStats }
  /** Everything sent before the `confirm` of this number holds in this thread. */
  | { readonly type: 'confirmed'; readonly number: number };

export type Ports = { readonly httpPort: number; readonly grpcPort: number };

/** The start data of doors. Only they know the type of `data`. Port 0 takes a free one. */
export type LocalStart = {
  /** The first thread is 0. */
  readonly place: number;
  readonly data: unknown;
  readonly ports: Ports;
  /** Undefined: without TLS. */
  readonly tls: TlsIdentity | undefined;
  /** How many I/O threads there are, which all listen on the same ports. */
  readonly threads: number;
  /**
   * The time in the main thread, in milliseconds since the Unix epoch: ahead of the wall clock where that was set back.
   */
  readonly nowMs: number;
};

/** The start data of an I/O thread. */
export type IoStart = LocalStart & {
  /** The counters of the audit log: see `audit-counters.ts`. */
  readonly auditCounters: SharedArrayBuffer;
};

/** Notices of an I/O thread to its supervisor. Not sent in batches, because they are about the thread itself. */
export type IoNotice =
  | {
      readonly type: 'listening';
      readonly httpPort: number;
      readonly grpcPort: number;
      /** Describes the HTTP engine to the operator. */
      readonly httpEngine: string;
    }
  | { readonly type: 'cannot-listen'; readonly reason: string }
  | { readonly type: 'drained' }
  /** An answer that had begun could not be finished, for a reason that is no defect of the gateway. */
  | { readonly type: 'cut'; readonly doing: string; readonly reason: string }
  /** Idle gRPC connections are closed for others. */
  | { readonly type: 'crowded' }
  | { readonly type: 'error'; readonly doing: string; readonly message: string };

/** `auditIndex` is the reply's place among the entries its batch writes to the audit log; -1: it writes none. */
export type Reply =
  | {
      readonly type: 'command-reply';
      readonly id: number;
      readonly reply: Replies[Command['type']];
      readonly auditIndex: number;
      /** The place of the audit entry of another gateway's decision. */
      readonly elsewhere?: { readonly home: string; readonly auditId: number | undefined };
    }
  | { readonly type: 'call-reply'; readonly id: number; readonly reply: unknown };

/** Answers that may be given once their batch is written. `firstId` is the id of the first entry of the batch. */
export type HeldMessage = {
  readonly type: 'held';
  readonly batch: number;
  readonly firstId: number;
  /** The expected count of failures if all has gone well. */
  readonly failures: number;
  readonly replies: readonly MainToDoors[];
};
/** Batches from this number on are not written, and their answers come separately. */
export type NotRecordedMessage = { readonly type: 'not-recorded'; readonly from: number };

/** To an I/O thread. Doors in the main thread need hold nothing. */
export type MainToIo = MainToDoors | HeldMessage | NotRecordedMessage;

export type MainToDoors =
  | Reply
  | { readonly type: 'events'; readonly events: readonly GatewayEvent[] }
  /** Reports lost events of other gateways. */
  | { readonly type: 'events-lost'; readonly count: number }
  /**
   * Asks where the check of this number comes from, which is needed only where its caller is not known: looking it up
   * for every check would cost more than the rest of it.
   */
  | { readonly type: 'locate'; readonly id: number }
  | { readonly type: 'signal'; readonly stream: number; readonly message: SignalMessage }
  /** Every token and every open stream of this subject is dead from now on. */
  | { readonly type: 'revoked'; readonly subject: string }
  /** The agent's credential is no longer valid: its control streams are closed. */
  | { readonly type: 'agent-revoked'; readonly agent: AgentKey }
  /** How many agents are registered, for what a thread remembers of each. Sent after a change, not at once. */
  | { readonly type: 'agent-count'; readonly count: number }
  /** In a cluster, the time by which the main thread goes, once a second. */
  | { readonly type: 'time'; readonly nowMs: number }
  /** The TLS identity for new connections. */
  | { readonly type: 'tls'; readonly identity: TlsIdentity }
  /** To be confirmed: all that was sent before holds in this thread. */
  | { readonly type: 'confirm'; readonly number: number }
  /** Take nothing new, and answer what is in flight within this time. */
  | { readonly type: 'drain'; readonly graceMs: number };

export type MainToAudit =
  | {
      readonly type: 'append';
      readonly batch: number;
      /** The id of the first entry, as its answer already says. */
      readonly firstId: number;
      readonly bodies: string;
      readonly count: number;
      /** How much of the bodies is from callers that are not identified. */
      readonly strangerBytes: number;
      /** Whether somebody waits to hear that it is written. */
      readonly isAwaited: boolean;
    }
  /** The ends of the other gateways' logs in a cluster: for the next checkpoint. */
  | { readonly type: 'peers'; readonly heads: readonly PeerHead[] }
  /** After `not-written`: drop all that was sent before; what follows does not build on it. */
  | { readonly type: 'resume' }
  | { readonly type: 'close' };

export type AuditToMain =
  | { readonly type: 'opened'; readonly headId: number; readonly notes: readonly string[] }
  /** All batches up to this one are in the log. An audit thread sends only those that are awaited, and counts all. */
  | { readonly type: 'written'; readonly batch: number; readonly isAwaited: boolean }
  /** Nothing is written from here on, until `resume`. */
  | { readonly type: 'not-written'; readonly reason: string }
  | { readonly type: 'writable' }
  /** Whether callers that are not identified have used up their share of the log. */
  | { readonly type: 'share'; readonly isFull: boolean }
  /** The last entry, where other gateways are to know it. */
  | { readonly type: 'head'; readonly head: ChainHead }
  /** For the witnesses of the log. */
  | { readonly type: 'statement'; readonly statement: WitnessStatement }
  /** For the log of the gateway. */
  | { readonly type: 'note'; readonly level: 'info' | 'warn'; readonly message: string }
  | { readonly type: 'closed' };

/**
 * An I/O thread's report about itself, for the metrics. The first three values are current; the others count since it
 * started.
 */
export type IoStats = {
  readonly pendingRequests: number;
  readonly webSockets: number;
  readonly controlStreams: number;

  readonly droppedEvents: number;
  readonly refusedRequests: number;
  readonly requests: { readonly http: number; readonly grpc: number; readonly connect: number };
  readonly checks: DurationCounts;
};
