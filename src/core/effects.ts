/** Effects that the shell must carry out after the governor has decided: plain values, in their order. */
import type { AgentRegistration } from './agents/agents.ts';
import type { Approval } from './approvals/approval.ts';
import type { AuditDraft } from './audit/audit.ts';
import type { AgentIdentity, AgentKey, OpId } from './base/ids.ts';
import type { BudgetAlert } from './budget/envelope.ts';
import type { Halt } from './halts/halt.ts';
import type { LimitAlert } from './limits/reached.ts';
import type { OpView, Signal } from './ops/op-view.ts';
import type { OpSlot } from './ops/ops.ts';

export type Effect =
  | { readonly kind: 'audit'; readonly draft: AuditDraft }
  | { readonly kind: 'op-changed'; readonly op: OpView }
  /**
   * To be posted (Governor.post) and sent once the entry beside it is written: what an agent was told cannot be taken
   * back. `number` is the operation's own in the registry: by then, another may be in its slot.
   */
  | {
      readonly kind: 'signal';
      readonly agent: AgentKey;
      readonly opId: OpId;
      readonly slot: OpSlot;
      readonly number: number;
      readonly signal: Signal;
      /** Given by the shell of a gateway in a cluster, where signals of all gateways are numbered. */
      readonly sequence?: number;
    }
  | {
      readonly kind: 'agent-saved';
      readonly key: AgentKey;
      readonly registration: AgentRegistration;
      readonly rotated: boolean;
    }
  | { readonly kind: 'agent-removed'; readonly identity: AgentIdentity; readonly key: AgentKey }
  /**
   * All spend so far, and what limits have counted, must be saved before the answer is sent, including what is on its
   * way to the store.
   */
  | {
      readonly kind: 'spend-recorded';
      /** The newly recorded spend; undefined for a record that was counted before. */
      readonly spent?: { readonly agent: AgentIdentity; readonly microUsd: number };
    }
  /** A decision of a person, to be saved before the answer is sent: see `StateStore`. */
  | { readonly kind: 'state-saved'; readonly table: StateTable; readonly id: string; readonly row: unknown }
  | { readonly kind: 'state-removed'; readonly table: StateTable; readonly id: string }
  | { readonly kind: 'halt-changed'; readonly halt: Halt }
  | { readonly kind: 'approval-changed'; readonly approval: Approval }
  | { readonly kind: 'budget-alert'; readonly alert: BudgetAlert }
  | { readonly kind: 'limit-alert'; readonly alert: LimitAlert }
  | {
      readonly kind: 'violation';
      readonly agent: AgentIdentity;
      readonly reason: string;
      readonly claimed: AgentIdentity;
      readonly action: string;
    };

/** Tables for the decisions of people: small records that survive a restart. */
export type StateTable = 'halts' | 'approvals' | 'webhooks';

export const NO_EFFECTS: readonly Effect[] = [];
