import type { AgentKey } from './base/ids.ts';
import type { CommandType, Replies } from './commands.ts';
import { type Effect, NO_EFFECTS } from './effects.ts';
import type { Shortage } from './limits/shortage.ts';
import type { Undo } from './rollback.ts';

/** A usage id, and the agent whose it is. */
export type UsageKey = { readonly agent: AgentKey; readonly usageId: string };

/**
 * The reply to a command, and what the shell must do. `undo` is given for a change that must be rolled back when it
 * cannot be recorded. A check gives none for an operation that it began itself: see `terminateBegun`.
 */
export type Outcome<T extends CommandType = CommandType> = {
  readonly reply: Replies[T];
  readonly effects: readonly Effect[];
  readonly undo?: Undo;
  /** For an undecided check: the amounts that the ledger of a cluster has to grant first. */
  readonly short?: readonly Shortage[];
  /** For an undecided command: the agreement that gateways sharing approvals must reach first. */
  readonly turn?: ApprovalTurn;
  /** For a usage record that changed nothing: the id to claim among the gateways of a cluster first. */
  readonly claims?: UsageKey;
  /** For a usage record beyond the ledger's grants: it is answered once the ledger knows of it. */
  readonly exceedsGrants?: true;
};

/** Approvals with this digest change one after the other; or this one is not known here, and may be elsewhere. */
export type ApprovalTurn = { readonly digest: string } | { readonly unknownId: string };

/** The outcome of a command that has changed nothing. */
export const unchanged = <R>(reply: R): { readonly reply: R; readonly effects: readonly Effect[] } => ({
  reply,
  effects: NO_EFFECTS,
});
