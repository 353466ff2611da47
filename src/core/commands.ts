/** Every command that the governor takes, and its reply: one closed union that both ends import. */

import type { AgentView } from './agents/agent-view.ts';
import type { Approval, ApprovalState } from './approvals/approval.ts';
import type { Lineage } from './approvals/approvers.ts';
import type { AgentIdentity, OpId, SecretDigest } from './base/ids.ts';
import type { Page, PageRequest } from './base/page.ts';
import type { Result } from './base/result.ts';
import type { Period, Tier } from './budget/config.ts';
import type { BudgetStatusRow } from './budget/status.ts';
import type { DecisionCause } from './check/cause.ts';
import type { Obligation } from './check/obligations.ts';
import type { Fault } from './fault.ts';
import type { EnforcementPlace, Halt } from './halts/halt.ts';
import type { Voucher } from './identity/access.ts';
import type { Principal } from './identity/roles.ts';
import type { OpFilter } from './listings/ops-page.ts';
import type { AgentsWithTeams, LineagePage, Overview, Stats, Tree } from './listings/topology.ts';
import type { ControlTrigger, OpState } from './ops/op-state.ts';
import type { OpView, SignalMessage } from './ops/op-view.ts';
import type { TokenUsage } from './prices/price.ts';

/** Which gateway of a cluster has the operation, as an earlier answer said; undefined: it was not said. */
type Homed = { readonly home?: string | undefined };

/** How an action ended, as its agent reports it. */
export type OpOutcome = 'success' | 'failure';

export type Completion = {
  /** Absent where the agent did not say. */
  readonly outcome?: OpOutcome | undefined;
  /** The error of a failure. */
  readonly error?: string | undefined;
  /** Tokens that were reported with it, for the record; the money is counted separately. */
  readonly priced?: PricedTokens | undefined;
};

/** Tokens, and what they were found to cost. */
export type PricedTokens = { readonly tokens: TokenUsage; readonly costMicroUsd: number };

export type CheckCommand = Voucher & {
  readonly type: 'check';
  readonly agent: AgentIdentity;
  readonly opId: OpId;
  readonly action: string;
  readonly resource: string;
  readonly attributes: Readonly<Record<string, unknown>> | undefined;
  readonly estimatedCostMicroUsd: number;
  /** The agent on whose behalf this one acts, for agent-to-agent calls. */
  readonly caller: AgentIdentity | undefined;
  readonly dryRun: boolean;
  /** The types of obligations that the caller fulfils; undefined: none. */
  readonly supportedObligations?: readonly string[] | undefined;
} & Homed;

/** An action that a door refuses by itself, such as one it cannot read. It is recorded as a denied check is. */
export type RefuseCommand = Voucher & {
  readonly type: 'refuse-action';
  /** Undefined where the bearer is known, but not for which agent it speaks. */
  readonly agent: AgentIdentity | undefined;
  /** As far as they could be read; '' for what could not. */
  readonly action: string;
  readonly resource: string;
  readonly reason: string;
};

/** The answer to a check. Its place in the audit log is added once the entry is written. */
export type CheckAnswer = {
  /** `pending`: the agent must not act until people have approved. */
  readonly decision: 'allow' | 'deny' | 'pending';
  readonly reason: string;
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  /** Undefined unless denied. */
  readonly cause: DecisionCause | undefined;
  /** The budget that denied it, and when its next period begins; of a limit, only when it leaves room again. */
  readonly exceeded:
    | { readonly tier?: Tier | undefined; readonly period?: Period | undefined; readonly resetsAtMs: number }
    | undefined;
  /** Undefined where no operation of the caller's exists: identity refused, or a dry run. */
  readonly opState: OpState | undefined;
  /** The approval that it waits for, or that has decided it. */
  readonly approvalId?: string | undefined;
  /** Obligations that come with an allow; undefined: none. */
  readonly obligations?: readonly Obligation[] | undefined;
  /** An alternative to the denied action. */
  readonly remedy?: string | undefined;
};
/** The cost is counted either way. `limit_exceeded` names the first cap that is exceeded now. */
export type UsageAnswer =
  | { readonly status: 'ok' }
  | { readonly status: 'limit_exceeded'; readonly tier: Tier; readonly period: Period };
export type OrgFilter = { readonly principal: Principal; readonly orgId: string | undefined };

export type Command =
  | CheckCommand
  | RefuseCommand
  | { readonly type: 'find-agent'; readonly credential: SecretDigest }
  | { readonly type: 'recognize-agent'; readonly agent: AgentIdentity; readonly credential: SecretDigest }
  | { readonly type: 'register-op'; readonly principal: Principal; readonly opId: OpId; readonly agent: AgentIdentity }
  /** The fields of a completion count only with the trigger `complete`. */
  | (Completion & {
      readonly type: 'control-op';
      readonly principal: Principal;
      readonly opId: OpId;
      readonly orgId?: string | undefined;
      readonly trigger: ControlTrigger;
    } & Homed)
  | (Voucher &
      Completion &
      Homed & { readonly type: 'complete-op'; readonly agent: AgentIdentity; readonly opId: OpId })
  | (Homed & {
      readonly type: 'get-op';
      readonly principal: Principal;
      readonly opId: OpId;
      readonly orgId?: string | undefined;
    })
  | (OrgFilter & OpFilter & PageRequest & { readonly type: 'list-ops' })
  | {
      readonly type: 'register-agent';
      readonly principal: Principal;
      readonly agent: AgentIdentity;
      readonly credential: SecretDigest;
      readonly parent: AgentIdentity | undefined;
    }
  | { readonly type: 'deregister-agent'; readonly principal: Principal; readonly agent: AgentIdentity }
  | (OrgFilter &
      PageRequest & {
        readonly type: 'list-agents';
        readonly teamId?: string | undefined;
        readonly agentId?: string | undefined;
      })
  | (OrgFilter & PageRequest & { readonly type: 'topology-overview' })
  | (OrgFilter & PageRequest & { readonly type: 'topology-tree' })
  | (OrgFilter & PageRequest & { readonly type: 'topology-stats' })
  | (OrgFilter & PageRequest & { readonly type: 'topology-team'; readonly teamId: string })
  | (OrgFilter & PageRequest & { readonly type: 'topology-lineage'; readonly agentId: string })
  | (Voucher & {
      readonly type: 'record-usage';
      readonly agent: AgentIdentity;
      readonly costMicroUsd: number;
      /** Present if the cost is that of tokens. */
      readonly tokens?: TokenUsage | undefined;
      readonly opId: OpId | undefined;
      readonly usageId: string | undefined;
      /**
       * In a cluster: whether the id has been claimed for this gateway, or was counted by another; `judged`: the
       * record was counted here, and the ledger has been told.
       */
      readonly claim?: 'mine' | 'counted' | 'judged' | undefined;
    } & Homed)
  | (OrgFilter & PageRequest & { readonly type: 'list-budgets' })
  | (Voucher & {
      readonly type: 'open-control';
      readonly agent: AgentIdentity;
      /** The I/O thread's own number for the stream. */
      readonly stream: number;
    })
  | (Voucher & {
      readonly type: 'ack-signal';
      readonly agent: AgentIdentity;
      readonly opId: OpId;
      readonly sequence: number;
    } & Homed)
  | {
      readonly type: 'create-halt';
      readonly principal: Principal;
      readonly halt: Omit<Halt, 'createdBy' | 'createdAtMs' | 'released'>;
    }
  | { readonly type: 'release-halt'; readonly principal: Principal; readonly id: string; readonly reason: string }
  | (PageRequest & {
      readonly type: 'list-halts';
      readonly principal: Principal;
      /** Only those in force, or only those released; undefined: both. */
      readonly active: boolean | undefined;
    })
  | (OrgFilter & PageRequest & { readonly type: 'list-approvals'; readonly state: ApprovalState | undefined })
  | { readonly type: 'get-approval'; readonly principal: Principal; readonly id: string }
  | (Voucher & { readonly type: 'own-approval'; readonly agent: AgentIdentity; readonly id: string })
  | {
      readonly type: 'decide-approval';
      readonly principal: Principal;
      readonly id: string;
      readonly kind: 'approve' | 'deny';
      readonly reason: string;
      /** Identifies the people behind the principal. */
      readonly lineage: Lineage;
      /** Who is behind the credentials that asked, or have approved already, by their subjects. */
      readonly people: Readonly<Record<string, string>>;
    }
  | { readonly type: 'cancel-approval'; readonly principal: Principal; readonly id: string }
  | (Voucher & { readonly type: 'cancel-own-approval'; readonly agent: AgentIdentity; readonly id: string })
  /** The gateway's own: ends those whose time is over, `most` at a time; with `only`, just that one. */
  | { readonly type: 'tick-approvals'; readonly most: number; readonly only?: string }
  /** The gateway's own, in a cluster: has a halt freeze or end an approval. */
  | { readonly type: 'halt-approval'; readonly haltId: string; readonly id: string }
  /** The operation was terminated, and does not wait for the approval any more. */
  | { readonly type: 'leave-approval'; readonly id: string; readonly opId: OpId; readonly actor: string }
  /** The gateway's own, in a cluster: what another gateway has decided; undefined: it is gone. */
  | { readonly type: 'adopt-approval'; readonly id: string; readonly approval: Approval | undefined }
  | { readonly type: 'adopt-halt'; readonly id: string; readonly halt: Halt | undefined }
  /** The gateway's own, in a cluster: ends or sends on the operations that wait for what others have decided. */
  | { readonly type: 'follow-approval'; readonly id: string }
  /** The gateway's own: stops what a halt covers, `most` operations at a time. */
  | {
      readonly type: 'enforce-halt';
      readonly id: string;
      readonly from: EnforcementPlace | undefined;
      readonly most: number;
    }
  /** The gateway's own: resumes operations that a released halt had paused, given by number and slot. */
  | {
      readonly type: 'resume-halted';
      readonly halt: Halt;
      readonly actor: string;
      readonly paused: readonly (readonly [number: number, slot: number])[];
    };

export type CommandType = Command['type'];
type Commands = { readonly [T in CommandType]: Extract<Command, { readonly type: T }> };
export type CommandOf<T extends CommandType> = Commands[T];

/** In a cluster: the names of gateways that did not answer, so that what they have is not among it. */
export type Incomplete = { readonly incomplete?: readonly string[] | undefined };

/** Has the compiler report a missing row at the table itself, ahead of every place that takes a reply. */
type ForEveryCommand<R extends Record<CommandType, Result<unknown, Fault>>> = R;

export type Replies = ForEveryCommand<{
  check: Result<CheckAnswer, Fault>;
  /** The reason for the log: it differs if the caller is not the agent. */
  'refuse-action': Result<{ readonly reason: string }, Fault>;
  /** The agent whose credential it is. */
  'find-agent': Result<{ readonly agent: AgentIdentity | undefined }, Fault>;
  /** Whether the credential is the agent's. */
  'recognize-agent': Result<{ readonly isIts: boolean }, Fault>;
  'register-op': Result<{ readonly op: OpView; readonly created: boolean }, Fault>;
  'control-op': Result<OpView, Fault>;
  'complete-op': Result<OpView, Fault>;
  /** `others`: where several gateways have an operation of this id. */
  'get-op': Result<OpView & { readonly others?: readonly OpView[] | undefined }, Fault>;
  'list-ops': Result<Page<OpView> & Incomplete, Fault>;
  'register-agent': Result<{ readonly agent: AgentView; readonly rotated: boolean }, Fault>;
  'deregister-agent': Result<void, Fault>;
  'list-agents': Result<Page<AgentView>, Fault>;
  'topology-overview': Result<Overview, Fault>;
  'topology-tree': Result<Tree, Fault>;
  'topology-stats': Result<Stats, Fault>;
  'topology-team': Result<AgentsWithTeams, Fault>;
  'topology-lineage': Result<LineagePage, Fault>;
  'record-usage': Result<UsageAnswer, Fault>;
  'list-budgets': Result<Page<BudgetStatusRow>, Fault>;
  'open-control': Result<{ readonly pending: readonly SignalMessage[] }, Fault>;
  'ack-signal': Result<void, Fault>;
  'create-halt': Result<Halt, Fault>;
  'release-halt': Result<{ readonly halt: Halt; readonly paused: readonly (readonly [number, number])[] }, Fault>;
  'list-halts': Result<Page<Halt>, Fault>;
  'list-approvals': Result<Page<Approval>, Fault>;
  'get-approval': Result<Approval, Fault>;
  'own-approval': Result<Approval, Fault>;
  'decide-approval': Result<Approval, Fault>;
  'cancel-approval': Result<Approval, Fault>;
  'cancel-own-approval': Result<Approval, Fault>;
  'tick-approvals': Result<{ readonly changes: number }, Fault>;
  'halt-approval': Result<void, Fault>;
  'leave-approval': Result<void, Fault>;
  /** `isDecided`: `follow-approval` is to come. */
  'adopt-approval': Result<{ readonly isDecided: boolean }, Fault>;
  /** The halt as it was known here, and the operations that it keeps paused no more. */
  'adopt-halt': Result<
    { readonly before: Halt | undefined; readonly paused: readonly (readonly [number, number])[] },
    Fault
  >;
  'follow-approval': Result<void, Fault>;
  'enforce-halt': Result<{ readonly changed: number; readonly next: EnforcementPlace | undefined }, Fault>;
  'resume-halted': Result<{ readonly changed: number }, Fault>;
}>;

/** Whether a command changes what must be recorded. The others are answered even while nothing can be. */
export const CHANGES = {
  check: true,
  'refuse-action': true,
  'register-op': true,
  'control-op': true,
  'complete-op': true,
  'register-agent': true,
  'deregister-agent': true,
  'record-usage': true,
  'find-agent': false,
  'create-halt': true,
  'release-halt': true,
  'enforce-halt': true,
  'resume-halted': true,
  'decide-approval': true,
  'cancel-approval': true,
  'cancel-own-approval': true,
  'tick-approvals': true,
  'halt-approval': true,
  'leave-approval': true,
  // Decisions of other gateways apply here even if nothing can be recorded here.
  'adopt-approval': false,
  'adopt-halt': false,
  'follow-approval': true,
  'list-approvals': false,
  'get-approval': false,
  'own-approval': false,
  'list-halts': false,
  'recognize-agent': false,
  'get-op': false,
  'list-ops': false,
  'list-agents': false,
  'list-budgets': false,
  'open-control': false,
  'ack-signal': false,
  'topology-overview': false,
  'topology-team': false,
  'topology-tree': false,
  'topology-lineage': false,
  'topology-stats': false,
} as const satisfies Record<CommandType, boolean>;
