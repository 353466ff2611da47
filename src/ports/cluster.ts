/** The outside of a cluster's gateway: the database, the bus and the other gateways. */
import type { AuditFilter } from '../core/audit/audit.ts';
import type { Brand, SecretDigest } from '../core/base/ids.ts';
import type { Result } from '../core/base/result.ts';
import type { Period } from '../core/budget/config.ts';
import type { BudgetOwner } from '../core/budget/envelope.ts';
import type { AccountRow, Grant } from '../core/budget/escrow.ts';
import type { Command, CommandType, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import type { Principal } from '../core/identity/roles.ts';
import type { UsageKey } from '../core/outcome.ts';
import type { ShadowCounts } from '../core/policy/shadow.ts';
import type { StatsView } from '../core/stats/view.ts';
import type { StatsWindow } from '../core/stats/windows.ts';
import type { Interest, UnnumberedEvent } from './events.ts';

/** A run of a gateway, from its start to its end: a random UUID. */
export type RunId = Brand<string, 'RunId'>;

/** How far somebody has applied the log: the mark stands for everything up to there. */
export type Place = { readonly seq: number; readonly mark: string };

/** `serve`: cut off from the database, a gateway goes on with what it knows; `deny`: it denies every check. */
export type OnOutage = 'serve' | 'deny';

export type Member = {
  readonly run: RunId;
  readonly name: string;
  /** `suspect`: its lease is over. Nothing follows from that which could not be taken back. */
  readonly state: 'live' | 'suspect' | 'retired';
  readonly version: string;
  readonly protocols: readonly [oldest: number, newest: number];
  /** By the clock of the database, as are all times here. */
  readonly leaseUntilMs: number;
  /** How far its clock is ahead of the database's. */
  readonly skewMs: number;
  readonly policyVersion: string | undefined;
  readonly auditHead: { readonly id: number; readonly hash: string } | undefined;
  /** Whether it can exchange messages; undefined: an older release, which does not say. */
  readonly isOnBus: boolean | undefined;
  /** Barriers that it has not confirmed, and has not made up for yet. */
  readonly unconfirmed: number;
  readonly onOutage: OnOutage;
  /** Up to where it acts by the log, as it has last told the database; undefined: it has not yet. */
  readonly applied: Place | undefined;
};

/** A run's report about itself with every beat. */
export type Beat = Pick<Member, 'skewMs' | 'policyVersion' | 'auditHead'> & {
  readonly isOnBus: boolean;
  /** It has read everything again since the last beat, so that it acts by all it had not confirmed. */
  readonly isCaughtUp: boolean;
  readonly applied: Place;
};

/** This run may not write: a newer one has its name, or an operator has forgotten it. It must end. */
export type Replaced = { readonly kind: 'replaced' };
/** The database does not know this run, as after a fail-over that lost the end of the log. It joins again. */
export type UnknownRun = { readonly kind: 'unknown_run' };

export type Joining = Pick<Member, 'run' | 'name' | 'version' | 'protocols' | 'onOutage'>;

/** Money that runs which do not return have been granted and not spent. */
export type Stranded = ReadonlyMap<RunId, number>;

/** The list of the runs of all gateways. Faults of the database: `store_unreachable`. */
export type MemberStore = {
  /** Its clock now, to compare one's own with. */
  now(): Promise<Result<number, Fault>>;
  /** Enters this run, and retires an earlier one of the same name in the same step. */
  join(joining: Joining): Promise<Result<void, Fault>>;
  /** Extends the lease of this run. The answer has every run that is not retired, or may go on all the same. */
  beat(beat: Beat): Promise<Result<readonly Member[], Fault | Replaced | UnknownRun>>;
  /** Marks runs whose lease is over as suspect, and frees money that nobody holds any more. Any gateway may call it. */
  tidy(): Promise<Result<void, Fault>>;
  /** Notes that these runs have not confirmed a barrier. */
  noteUnconfirmed(runs: readonly RunId[]): Promise<Result<void, Fault>>;
  /** All runs, with those retired ones whose money is stranded. */
  list(): Promise<Result<{ readonly members: readonly Member[]; readonly stranded: Stranded }, Fault>>;
  /**
   * Retires the runs of this name whose lease has been over for 10 minutes. Their unreported grants are charged, or
   * freed. Faults: `not_found`; `conflict` while one may still run.
   */
  forget(name: string, unspent: 'charge' | 'free'): Promise<Result<{ readonly microUsd: number }, Fault>>;
  /** Ends this run in order: it has returned its grants. */
  leave(): Promise<Result<void, Fault>>;
};

/** Who takes part. */
export type Membership = {
  readonly self: RunId;
  readonly name: string;
  /** Every other run that is not retired. */
  others(): readonly Member[];
  /** Whether the database still counts this run as live, by clocks that cannot both be wrong at once. */
  readonly isLeased: boolean;
  /** How long ago the database was last reached. */
  readonly unreachedMs: number;
  /** Reads who takes part now, by a reading that begins after the call. False: the database could not be asked. */
  lookAgain(): Promise<boolean>;
  onChange(listener: () => void): void;
};

/** Tables besides the log of which gateways keep copies. A gateway that has missed something reads all of it again. */
export type Topic = 'api-keys' | 'accounts' | 'webhooks' | 'shadow';

/** The money of all gateways. */
export type Ledger = {
  /**
   * Reports this run's holdings, spending and wants, and returns its grants. `sequence` grows with every call: a late
   * report changes nothing, and is answered `undefined`. Faults of the database: `store_unreachable`.
   */
  exchange(
    sequence: number,
    rows: readonly AccountRow[],
  ): Promise<Result<readonly Grant[] | undefined, Fault | Replaced | UnknownRun>>;
  /** Which server it is: another one, or one that was started again, may have forgotten the latest exchanges. */
  server(): Promise<Result<string, Fault>>;
  /** This run has said everything again to that server, which grants nothing until all have. */
  stated(server: string): Promise<Result<void, Fault | Replaced | UnknownRun>>;
};

/** The spending of all gateways from an account of the ledger, in each of the requested periods. */
export type LedgerSpend = { readonly owner: BudgetOwner; readonly spentMicroUsd: Readonly<Record<Period, number>> };

export type LedgerPageRequest = {
  /** The ledger's names of the running periods. */
  readonly periods: Readonly<Record<Period, string>>;
  readonly orgId: string | undefined;
  /** The `next` of the page before. */
  readonly after: string | undefined;
  readonly limit: number;
};

/** The spending that all gateways have reported, widest tier first. Faults of the database: `store_unreachable`. */
export type LedgerPages = {
  page(
    request: LedgerPageRequest,
  ): Promise<Result<{ readonly items: readonly LedgerSpend[]; readonly next: string | undefined }, Fault>>;
};

/** `busy`: another gateway counts it at this moment, or has stopped in the middle of that. */
export type UsageClaim = 'mine' | 'counted' | 'busy';

/** Usage ids of all gateways: each is counted by one run. Faults of the database: `store_unreachable`. */
export type UsageIds = {
  /** In the order of the keys. */
  claim(keys: readonly UsageKey[]): Promise<Result<readonly UsageClaim[], Fault | Replaced | UnknownRun>>;
  /** This run has counted them. */
  settle(keys: readonly UsageKey[]): Promise<Result<void, Fault | Replaced | UnknownRun>>;
};

/**
 * Questions of one gateway to another, with their answers. Plain data, as JSON has it. A kind that an older release
 * does not know is refused by it.
 */
export type Questions = {
  /**
   * To decide a command as if it had come to that gateway; `ifKnown`: only if its operation lives there, `of_anyone`:
   * also if that is another agent's.
   */
  readonly decide: {
    readonly asked: { readonly command: Command; readonly ifKnown: boolean | 'of_anyone' };
    readonly answer: Decided;
  };
  /** Reads an operation in the same way, before it is known who has it. */
  readonly whose: Questions['decide'];
  /** Decides operators' orders in the same way, but takes longer: all gateways confirm them first. */
  readonly order: Questions['decide'];
  /** Its counts of checks, denies and spending; `orgId`: of one org, else of all. */
  readonly stats: {
    readonly asked: { readonly orgId: string | undefined; readonly window: StatsWindow };
    readonly answer: StatsView;
  };
  /** Its counts for the shadow of this version. */
  readonly shadow: { readonly asked: { readonly version: string }; readonly answer: ShadowCounts };
  /** Its audit entries, newest first. */
  readonly log: { readonly asked: LogAsked; readonly answer: Result<LogPiece, Fault> };
  /** To use up a ticket that it has given out; `taken` is absent where it is not good, or not any more. */
  readonly ticket: {
    readonly asked: { readonly digest: SecretDigest };
    readonly answer: { readonly taken?: TicketOwner };
  };
  /** To compile a set of policies that is stored. `problems`: why it cannot. */
  readonly prepare: {
    readonly asked: { readonly version: string };
    readonly answer: { readonly problems?: readonly string[] };
  };
  /** How many operations it has stopped or resumed because of a halt, once it has. */
  readonly halted: { readonly asked: { readonly id: string }; readonly answer: { readonly affected: number } };
  /** By which key it signs tokens. */
  readonly 'signing-key': { readonly asked: object; readonly answer: { readonly kid: string } };
};

/** Who has asked for a ticket, and how long ago. `expiresAtMs`: absent for a key without expiry. */
export type TicketOwner = {
  readonly principal: Principal;
  readonly expiresAtMs?: number;
  readonly ageMs: number;
};

/** `lines`: one entry of JSON a line; the others are a piece of an export. */
export type LogForm = 'lines' | 'ndjson' | 'csv';
export type LogAsked = {
  readonly filter: AuditFilter;
  readonly form: LogForm;
  readonly most: number;
  /** Only entries with smaller ids; undefined: from the newest on. */
  readonly before: number | undefined;
  /** The org that the reader is bound to; null: it sees all. */
  readonly orgId: string | null;
};
/** `before`: where the next piece begins; absent: this is the last one. */
export type LogPiece = { readonly text: string; readonly before?: number | undefined };
/** `reply` is absent where the operation does not live there. */
export type Decided = {
  readonly reply?: Replies[CommandType];
  readonly auditId?: number | undefined;
};
export type QuestionKind = keyof Questions;
export type Asked<K extends QuestionKind> = Questions[K]['asked'];
export type Answer<K extends QuestionKind> = Questions[K]['answer'];

/** Why a gateway that was asked has no answer. */
export type NoAnswer = 'unknown_kind' | 'overloaded' | 'too_large' | 'failed';

/** Answers of all gateways that were asked, and the names of those that did not answer. */
export type Gathered<K extends QuestionKind> = {
  readonly answers: readonly { readonly from: Member; readonly answer: Answer<K> }[];
  readonly missing: readonly string[];
};

/** Questions to other gateways. If one does not answer, nobody knows whether it carried out the request. */
export type Peers = {
  /** Faults: `unreachable_gateway` after a second, or once it has ended; `overloaded`. */
  ask<K extends QuestionKind>(to: RunId, kind: K, asked: Asked<K>): Promise<Result<Answer<K>, Fault>>;
  /**
   * Asks every other gateway, and waits a second for the live ones. `isEnough` is asked about each answer as it comes;
   * true: no further one is waited for.
   * Fault: `overloaded`.
   */
  askAll<K extends QuestionKind>(
    kind: K,
    asked: Asked<K>,
    isEnough?: (answer: Answer<K>, from: Member) => boolean,
    without?: readonly string[],
  ): Promise<Result<Gathered<K>, Fault>>;
  /** Answers questions of this kind. Its rejections are logged, and the asker gets no answer. */
  serve<K extends QuestionKind>(kind: K, answer: (asked: Asked<K>, from: Member) => Promise<Answer<K>>): void;
};

/** A file of policy documents, as it was written. */
export type PolicyText = { readonly file: string; readonly text: string };

/** Sets of policies by their version, and which one is in force everywhere. Faults: `store_unreachable`. */
export type PolicyShelf = {
  /** Undefined: none yet. `by`: who has activated it. */
  active(): Promise<Result<{ readonly version: string; readonly by: string } | undefined, Fault>>;
  /** Undefined: there is no such version, or none any more. */
  read(version: string): Promise<Result<readonly PolicyText[] | undefined, Fault>>;
  add(
    set: { readonly version: string; readonly documents: number; readonly rules: number },
    texts: readonly PolicyText[],
    by: string,
  ): Promise<Result<void, Fault>>;
};

/** Plain data, as JSON has it. Within a release, fields are only added. */
export type ClusterMessage =
  /** To be answered before `untilMs`, by the clock of the database; later it is dropped. */
  | {
      readonly type: 'ask';
      readonly id: number;
      readonly kind: QuestionKind;
      readonly asked: unknown;
      readonly untilMs: number;
    }
  | {
      readonly type: 'answer';
      readonly id: number;
      readonly answer?: unknown;
      /** Instead of an answer. */
      readonly none?: NoAnswer;
    }
  /** The sender acts by the log up to there. */
  | { readonly type: 'acted'; readonly place: Place }
  /** Orders that the sender could not write: until the log says more, they stand. */
  | { readonly type: 'unwritten'; readonly orders: readonly (readonly [id: string, order: unknown])[] }
  /** There is something in the log up to there: a hint. */
  | { readonly type: 'appended'; readonly seq: number }
  /** These accounts are empty: whoever holds idle money of them gives it back. Owner and period, in turn. */
  | { readonly type: 'recall'; readonly accounts: readonly string[] }
  /** Somebody watches what concerns these orgs there; none: nobody any more. Said again as long as it holds. */
  | { readonly type: 'watch'; readonly watch: number; readonly interest: Interest }
  /** Tells watchers of events here. `count`: since the watch began, at its `birth` here, these and all before them. */
  | {
      readonly type: 'events';
      readonly watch: number;
      readonly birth: number;
      readonly count: number;
      readonly events: readonly UnnumberedEvent[];
    };

/**
 * Messages between gateways: each arrives once or not at all, in order from each sender. Nothing rests on them alone.
 */
export type Bus = {
  /** Never waits. False: not connected, or too much waits already, so nothing was sent. */
  send(to: RunId | 'all', message: ClusterMessage): boolean;
  onMessage(listener: (from: RunId, message: ClusterMessage) => void): void;
  /** Some may have been missed: whoever keeps a copy reads it again. */
  onGap(listener: () => void): void;
  readonly isConnected: boolean;
};

/** Has every gateway act by what has just been written elsewhere. */
export type Barrier = {
  /**
   * Resolves when all do, at the latest after a second, with the names of those that do not; `database` is one of them
   * where it could not be told.
   */
  pass(topic: Topic, detail?: unknown): Promise<readonly string[]>;
};

/** Added to an answer where not all gateways act by it yet: their names. */
export type Unconfirmed = { readonly unconfirmed?: readonly string[] | undefined };
