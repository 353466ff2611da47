/** The log that all gateways of a cluster apply in the same order. */
import type { AgentRegistration } from '../core/agents/agents.ts';
import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Member, Place, Replaced, RunId, Topic, UnknownRun } from './cluster.ts';

/**
 * Things kept by id; guards, which keep two from doing the same at once and are nothing by themselves; and notices that
 * rows of another table have changed.
 */
export type EntryKind = 'agents' | 'halts' | 'approvals' | 'orders' | 'policy' | 'guards' | 'notice';

/** A change; `body` null: removed. Plain data, as JSON has it. */
export type Entry = {
  readonly kind: EntryKind;
  readonly id: string;
  readonly body: unknown;
  /** The `seq` that has changed it last, as far as the proposer knows; 0: nothing is there. Absent: whatever it is. */
  readonly expects?: number;
  /** The highest `seq` that may have changed it last. */
  readonly upTo?: number;
  /** It is offered again to a server that has lost it: when it was entered first. Nothing newer gives way to it. */
  readonly at?: number;
};

/** An append, as all gateways apply it. */
export type LogRow = Place & {
  readonly nonce: string;
  readonly run: RunId;
  /** By the clock of the database, later than that of each row before it. */
  readonly atMs: number;
  readonly entries: readonly Entry[];
};

/**
 * `changed`: it is not what the proposer expected; `credential`: another agent has it; `parent`: it would descend from
 * itself.
 */
export type Verdict = 'accepted' | 'changed' | 'credential' | 'parent';

export type LogAnswer =
  /** This server does not have what was applied: another one, which has lost the tail. */
  | { readonly lost: true }
  | {
      readonly lost?: undefined;
      readonly seq: number;
      /** Rows that the asker has not applied are not kept any more. */
      readonly isGap: boolean;
      /** Rows after the asker's place: perhaps not all of them. */
      readonly rows: readonly LogRow[];
      /** Runs that take part now, with those that may go on though they are retired. */
      readonly members: readonly Member[];
      /** The row of an append, and what became of each group; undefined: others have offered the row again. */
      readonly mine?: { readonly seq: number; readonly verdicts: readonly Verdict[] | undefined };
    };

type Answered = Promise<Result<LogAnswer, Fault | Replaced | UnknownRun>>;

/** The state that all of the log comes to, at least up to `place`. */
export type Whole = {
  readonly place: Place;
  readonly agents: readonly AgentRegistration[];
  readonly states: readonly (Entry & { readonly version: number })[];
  readonly policy: { readonly version: string; readonly by: string } | undefined;
};

/** Faults of the database: `store_unreachable`. */
export type LogStore = {
  /** Enters each group as a whole, or refuses it. Sent again under its nonce it changes nothing, and is answered. */
  append(nonce: string, place: Place, groups: readonly (readonly Entry[])[]): Answered;
  after(place: Place): Answered;
  /** The places of the rows after this one; of the newest, where there are none. */
  placesAfter(seq: number): Promise<Result<readonly Place[], Fault>>;
  whole(): Promise<Result<Whole, Fault>>;
};

/** Entries that say what has changed elsewhere. */
export const noticeOf = (topic: Topic, detail?: unknown): Entry => ({ kind: 'notice', id: topic, body: detail ?? {} });
