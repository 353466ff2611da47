/**
 * Requests of I/O threads to the main thread by name, answered asynchronously. Requests that the governor answers at
 * once are commands.
 */

import type { AccountUseCases } from '../accounts/accounts.ts';
import type { Approval } from '../core/approvals/approval.ts';
import type { WitnessStatement } from '../core/audit/witness.ts';
import type { AgentIdentity, SecretDigest } from '../core/base/ids.ts';
import type { Page, PageRequest } from '../core/base/page.ts';
import type { CommandOf, CommandType, OrgFilter, Replies } from '../core/commands.ts';
import type { CheckSubject } from '../core/condition/condition.ts';
import type { ApiKey } from '../core/identity/api-key.ts';
import type { Principal, Scope } from '../core/identity/roles.ts';
import type { LimitStatus } from '../core/limits/status.ts';
import type { Price, TokenUsage } from '../core/prices/price.ts';
import type { StatsView } from '../core/stats/view.ts';
import type { StatsWindow } from '../core/stats/windows.ts';
import type { Webhook, WebhookStatus } from '../core/webhooks/webhook.ts';
import type { CreateApiKey, ListApiKeys } from '../credentials/api-key-admin.ts';
import type { CreatedApiKey } from '../credentials/api-keys.ts';
import type { Made } from '../credentials/made-keys.ts';
import type { PublicJwk } from '../credentials/signing-keys.ts';
import type { PolicyText } from '../ports/cluster.ts';
import type { AccessToken } from '../ports/ports.ts';
import type { Authenticated, UseCase } from '../ports/use-case.ts';
import type { NewWebhook } from '../webhooks/hooks.ts';
import type { ApprovalDecision, ApprovalReader } from './approvals.ts';
import type { AuditSinkUseCases } from './audit-sinks.ts';
import type { ClusterUseCases } from './cluster.ts';
import type { CreatedHalt, HaltOutcome, NewHalt } from './halts.ts';
import type { ListLimits } from './limits.ts';
import type { LogRequest, LogText } from './logs.ts';
import type { ExplainedCheck, PoliciesInForce, Reloaded, RulesInForce } from './policies.ts';
import type { ListedVersion, PolicyDiff, VersionWithFiles } from './policy-history.ts';
import type { ReplayNews, ReplayRequest } from './policy-replay.ts';
import type { ShadowStatus, StartedShadow } from './policy-shadow.ts';
import type { Priced } from './prices.ts';
import type { WitnessedStatement } from './witness.ts';

// Requests of the protocols, in I/O threads, to the main thread.

/** A reply, and the id of its audit entry; undefined when there was nothing to record, or it could not be recorded. */
export type Recorded<R> = {
  readonly reply: R;
  readonly auditId: number | undefined;
  /** The gateway of a cluster that decided it, and recorded it in its log; undefined: this one. */
  readonly home?: string | undefined;
};

/** The origin of a check. It is read only if the caller turns out not to be known. */
export type Origin = {
  /** As the network knows the caller; '' or absent where that cannot be said any more. */
  readonly address?: string | undefined;
  /** The header of W3C Trace Context, as it came. */
  readonly traceparent?: string | undefined;
};

export type Link = {
  /** The home of operations that begin here; undefined: the gateway is outside a cluster. */
  readonly home?: string | undefined;
  /** The agent of this token, where that can be told at once. Undefined: it has to be asked for. */
  ownerOf?(credential: SecretDigest): AgentIdentity | undefined;
  /** `type` is repeated here because the compiler infers the rest from it. */
  ask<T extends CommandType>(
    command: CommandOf<T> & { readonly type: T },
    origin?: Origin,
  ): Promise<Recorded<Replies[T]>>;
  call<N extends UseCaseName>(name: N, input: InputOf<N>): Promise<ReplyOf<N>>;
};
export type UseCases = AccountUseCases & AuditSinkUseCases & ClusterUseCases & OwnUseCases;

type OwnUseCases = {
  readonly authenticate: UseCase<{ readonly bearer: string }, Authenticated>;
  readonly exchangeToken: UseCase<
    { readonly bearer: string; readonly scopes: readonly Scope[] | undefined },
    AccessToken
  >;
  readonly createApiKey: UseCase<{ readonly principal: Principal; readonly key: CreateApiKey }, CreatedApiKey>;
  readonly listApiKeys: UseCase<ListApiKeys & { readonly principal: Principal }, Page<ApiKey>>;
  readonly ownApiKey: UseCase<{ readonly principal: Principal }, ApiKey>;
  readonly revokeApiKey: UseCase<
    { readonly principal: Principal; readonly id: string; readonly cascade: boolean },
    Made
  >;
  readonly rotateSigningKey: UseCase<{ readonly principal: Principal }, { readonly kid: string }>;
  readonly jwks: UseCase<Record<never, never>, { readonly keys: readonly PublicJwk[] }>;
  readonly readLog: UseCase<LogRequest & { readonly principal: Principal }, LogText>;
  readonly witnessCheckpoint: UseCase<
    { readonly principal: Principal; readonly statement: WitnessStatement },
    WitnessedStatement
  >;
  readonly listPolicies: UseCase<PageRequest & { readonly principal: Principal }, PoliciesInForce>;
  readonly listRules: UseCase<
    PageRequest & { readonly principal: Principal; readonly policy: string | undefined },
    RulesInForce
  >;
  /** The fullest first. */
  readonly listLimits: UseCase<ListLimits, Page<LimitStatus>>;
  readonly explainCheck: UseCase<
    {
      readonly principal: Principal;
      readonly subject: CheckSubject;
      /** The session whose limits are looked at as well. */
      readonly traceId: string | undefined;
      /** Decides in place of the set in force. */
      readonly draft: readonly PolicyText[] | undefined;
    },
    ExplainedCheck
  >;
  readonly reloadPolicies: UseCase<{ readonly principal: Principal }, Reloaded>;
  readonly listPolicyVersions: UseCase<PageRequest & { readonly principal: Principal }, Page<ListedVersion>>;
  readonly getPolicyVersion: UseCase<{ readonly principal: Principal; readonly version: string }, VersionWithFiles>;
  /** `to` undefined: the set in force. */
  readonly diffPolicies: UseCase<
    { readonly principal: Principal; readonly from: string; readonly to: string | undefined },
    PolicyDiff
  >;
  readonly startShadow: UseCase<
    { readonly principal: Principal; readonly texts: readonly PolicyText[]; readonly expiresInSecs: number },
    StartedShadow
  >;
  readonly getShadow: UseCase<{ readonly principal: Principal }, ShadowStatus>;
  readonly stopShadow: UseCase<{ readonly principal: Principal }, void>;
  /** Begins a replay, which `nextReplay` follows and `leaveReplay` ends. */
  readonly startReplay: UseCase<
    ReplayRequest & { readonly principal: Principal },
    { readonly incomplete: readonly string[] }
  >;
  readonly nextReplay: UseCase<{ readonly ticket: string }, ReplayNews>;
  readonly leaveReplay: UseCase<{ readonly ticket: string }, void>;
  readonly createHalt: UseCase<{ readonly principal: Principal; readonly halt: Omit<NewHalt, 'id'> }, CreatedHalt>;
  readonly releaseHalt: UseCase<
    { readonly principal: Principal; readonly id: string; readonly reason: string },
    HaltOutcome
  >;
  readonly decideApproval: UseCase<ApprovalDecision, Approval>;
  /** `principal` and `agent` are the reader's: the requests of an org are counted by them. */
  readonly waitApproval: UseCase<
    {
      readonly reader: ApprovalReader;
      readonly principal?: Principal | undefined;
      readonly id: string;
      readonly waitMs: number;
      /** Names the wait for `leaveWait`; nobody else knows it. */
      readonly ticket: string;
    },
    Approval
  >;
  /** Ends a wait whose caller has left. */
  readonly leaveWait: UseCase<{ readonly ticket: string }, void>;
  readonly readStats: UseCase<OrgFilter & { readonly window: StatsWindow }, StatsView>;
  readonly priceTokens: UseCase<{ readonly tokens: TokenUsage }, Priced>;
  readonly findPrice: UseCase<{ readonly model: string; readonly provider: string | undefined }, Price>;
  readonly createWebhook: UseCase<{ readonly principal: Principal; readonly webhook: NewWebhook }, Webhook>;
  readonly listWebhooks: UseCase<
    PageRequest & {
      readonly principal: Principal;
      readonly orgId: string | undefined;
      /** Only those that this subject made, and the keys that it made. */
      readonly madeBy: string | undefined;
    },
    Page<WebhookStatus>
  >;
  readonly getWebhook: UseCase<{ readonly principal: Principal; readonly id: string }, WebhookStatus>;
  readonly takeOverWebhook: UseCase<{ readonly principal: Principal; readonly id: string }, WebhookStatus>;
  readonly deleteWebhook: UseCase<{ readonly principal: Principal; readonly id: string }, void>;
  readonly testWebhook: UseCase<{ readonly principal: Principal; readonly id: string }, { readonly messageId: string }>;
  /** A ticket that opens one WebSocket as this bearer. */
  readonly issueTicket: UseCase<
    { readonly bearer: string },
    { readonly ticket: string; readonly expiresInSecs: number }
  >;
  /** Works once for each ticket, whichever thread asks. */
  readonly redeemTicket: UseCase<{ readonly ticket: string }, Authenticated>;
  /** Faults: `audit_unavailable`, `shutting_down`. */
  readonly readiness: UseCase<
    Record<never, never>,
    {
      readonly audit: 'writable' | 'unwritable';
      readonly database: 'not_configured' | 'reachable' | 'unreachable';
      readonly audit_witness?: 'unreachable';
      readonly store?: 'unwritable';
      /** In a cluster: whether it holds a lease, and whether its clock is right. */
      readonly cluster?: 'reachable' | 'unreachable' | 'wrong_clock';
      /** Present while messages cannot be exchanged with the other gateways of a cluster. */
      readonly bus?: 'unreachable';
    }
  >;
  /** `areNamesShown`: with the series that name orgs and rules. */
  readonly metrics: UseCase<
    { readonly areNamesShown: boolean },
    { readonly contentType: string; readonly text: string }
  >;
  /** Counts one request against the rate limit of a credential or an address. */
  readonly takePermit: UseCase<{ readonly limit: 'credential' | 'address'; readonly key: string }, void>;
};

export type UseCaseName = keyof UseCases;
export type InputOf<N extends UseCaseName> = Parameters<UseCases[N]>[0];
export type ReplyOf<N extends UseCaseName> = Awaited<ReturnType<UseCases[N]>>;
