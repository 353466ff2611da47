/** The main thread's view of what a gateway in a cluster shares with the others. */
import type { AgentIdentity, AgentKey, OpId } from '../core/base/ids.ts';
import type { Command, CommandOf, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import type { Shortage } from '../core/limits/shortage.ts';
import type { Signal } from '../core/ops/op-view.ts';
import type { Outcome, UsageKey } from '../core/outcome.ts';
import type { Member } from './cluster.ts';
import type { Entry, Verdict } from './cluster-log.ts';

export type SentSignal = { readonly agent: AgentKey; readonly opId: OpId; readonly signal: Signal };

/** Orders to operations hold at all gateways of a cluster. */
export type ControlSharing = {
  nextSequence(nowMs: number): number;
  /** Resolves with the names of those that do not act by it yet. Never rejects. */
  save(sent: SentSignal, sequence: number, nowMs: number): Promise<readonly string[]>;
  forget(agent: AgentKey, opId: OpId): void;
};

/** A change that was accepted: where, and who took part then. */
export type Accepted = { readonly seq: number; readonly members: readonly Member[] };

/** A command with what it would change for all gateways, and what it takes to decide it again. */
export type Trial = {
  readonly command: Command;
  readonly digest: string | undefined;
  readonly nowMs: number;
  readonly outcome: Outcome;
  readonly entries: readonly Entry[];
  readonly ids: readonly string[];
};

/** The end of a proposal: exactly one of these is called. */
export type ProposalEnds = {
  /** Called at its place in the log: all before is applied here, and nothing after it. */
  readonly accepted: (accepted: Accepted) => void;
  /** Nothing was changed: called once everything is applied here that it was refused for. */
  readonly refused: (verdict: Exclude<Verdict, 'accepted'>) => void;
  /** Nobody knows whether it was changed, or will be. */
  readonly failed: (fault: Fault) => void;
};

/** Decides what all gateways share at its place in their log. */
export type SharedDecisions = {
  /** Whether the command changes what all share. */
  concerns(command: Command): boolean;
  /** Commands about one thing are tried one after the other: `begin` gets what to call at its end. */
  inTurn(digest: string | undefined, begin: (done: () => void) => void): void;
  tryOut(command: Command, digest: string | undefined, nowMs: number): Trial;
  propose(trial: Trial, ends: ProposalEnds): void;
  /** Decides the command that was tried. Nothing that it changes is proposed any more. */
  decide(trial: Trial): Outcome;
  /** Does what the shell does about such a decision. */
  carryingOut<T>(trial: Trial, work: () => T): T;
  /** Applies all there is. */
  follow(): Promise<boolean>;
  /** Resolves once all gateways act by what was accepted, with the names of those that do not. */
  confirmed(accepted: Accepted, trial: Trial): Promise<readonly string[]>;
};

/** The money that gateways of a cluster share. */
export type SharedMoney = {
  /** False: too many wait already. `retry` has the check decided again, when the ledger has been asked. */
  park(check: object, short: readonly Shortage[], retry: () => void): boolean;
  /** Whether this gateway is to count the usage record with this id. Never rejects. */
  claim(key: UsageKey): Promise<'mine' | 'counted' | 'busy'>;
  /** Call it when the record is saved, before it is answered. Never rejects. */
  settle(key: UsageKey): Promise<void>;
  /** Tells the ledger what this agent has spent. Resolves when it knows, or cannot be asked. Never rejects. */
  report(agent: AgentIdentity): Promise<void>;
  /** Lists the spending of all gateways. */
  listBudgets(command: CommandOf<'list-budgets'>): Promise<Replies['list-budgets']>;
};
