/** The implementation of each use case. */

import { type AccountUseCases, withoutAccountStore } from '../accounts/accounts.ts';
import type { SharedTickets } from '../cluster/tickets.ts';
import type { Config } from '../config/config.ts';
import { orgInReach } from '../core/access.ts';
import { fail, ok } from '../core/base/result.ts';
import { mergedStats } from '../core/stats/merge.ts';
import type { Stats } from '../core/stats/stats.ts';
import type { StatsView } from '../core/stats/view.ts';
import type { StatsWindow } from '../core/stats/windows.ts';
import type { WsTickets } from '../credentials/ws-tickets.ts';
import type { RateLimiter } from '../fairness/rate-limit.ts';
import type { Topic } from '../ports/cluster.ts';
import type { AuditLog, Clock } from '../ports/ports.ts';
import type { UseCase } from '../ports/use-case.ts';
import type { Database } from '../stores/database.ts';
import type { StoreOutage } from '../stores/embedded/outage.ts';
import type { Metrics } from '../system/metrics.ts';
import type { PolicyLife } from '../threads/main/policy-life.ts';
import { type ApprovalWaits, decideApproval, type FindLineage } from '../use-cases/approvals.ts';
import { type AuditSinks, createAuditSinkUseCases } from '../use-cases/audit-sinks.ts';
import { createClusterUseCases, withoutCluster } from '../use-cases/cluster.ts';
import { type CredentialUseCasesDeps, createCredentialUseCases } from '../use-cases/credentials.ts';
import type { HaltKeeper, OwnCommands } from '../use-cases/halts.ts';
import { type ListsLimits, listLimits } from '../use-cases/limits.ts';
import { type AuditReads, readLog } from '../use-cases/logs.ts';
import type { PolicyKeeper } from '../use-cases/policies.ts';
import type { PriceKeeper } from '../use-cases/prices.ts';
import type { UseCases } from '../use-cases/use-cases.ts';
import { createWebhookUseCases } from '../use-cases/webhooks.ts';
import { LogWitness } from '../use-cases/witness.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import type { Cluster } from './start-cluster.ts';

export type UseCaseParts = CredentialUseCasesDeps & {
  readonly config: Config;
  readonly clock: Clock;
  readonly audit: AuditLog & { readonly isWritable: boolean; catchUp(): void };
  readonly auditReader: AuditReads;
  readonly sinks: AuditSinks;
  readonly database: Database | undefined;
  readonly accounts: AccountUseCases | undefined;
  readonly policyKeeper: PolicyKeeper;
  readonly policyLife: Pick<PolicyLife, 'history' | 'shadow' | 'replays'>;
  readonly limits: ListsLimits;
  readonly haltKeeper: HaltKeeper;
  readonly approvalWaits: ApprovalWaits;
  readonly webhooks: Webhooks;
  readonly stats: Stats;
  readonly prices: PriceKeeper;
  readonly commands: OwnCommands;
  readonly findLineage: FindLineage;
  readonly tickets: Pick<WsTickets, 'issue'> & Pick<WsTickets | SharedTickets, 'redeem'>;
  readonly limiters: Readonly<Record<'credential' | 'address', RateLimiter>>;
  readonly storeOutage: StoreOutage;
  readonly cluster: Cluster | undefined;
  readonly supervisor: { readonly isStopping: boolean };
  readonly witnesses: { readonly isAnyAway: boolean };
  readonly metrics: Metrics;
};

export function useCasesOf({
  config,
  clock,
  audit,
  auditReader,
  sinks,
  database,
  accounts,
  policyKeeper,
  policyLife,
  limits,
  haltKeeper,
  approvalWaits,
  stats,
  prices,
  commands,
  findLineage,
  storeOutage,
  tickets,
  limiters,
  cluster,
  supervisor,
  witnesses,
  metrics,
  ...credentials
}: UseCaseParts): UseCases {
  cluster?.peers.serve('stats', async ({ orgId, window }) => {
    audit.catchUp(); // what is written is counted once that is known
    return stats.view(orgId, clock.nowMs(), window);
  });
  const logWitness = new LogWitness(audit, auditReader);
  return {
    ...confirmed(cluster, accounts ?? withoutAccountStore(), REVOKING_ACCOUNTS),
    ...confirmed(cluster, createCredentialUseCases(credentials), { revokeApiKey: ['api-keys', 'webhooks'] }),
    ...(cluster === undefined ? withoutCluster : createClusterUseCases(cluster.members, cluster.policies, audit)),
    ...createWebhookUseCases(credentials),
    ...createAuditSinkUseCases(sinks, audit),
    readLog: ({ principal, ...request }) => readLog(auditReader, principal, request),
    witnessCheckpoint: (asked) => logWitness.keep(asked),
    listRules: async ({ principal, policy, ...page }) => policyKeeper.listRules(principal, policy, page),
    listPolicies: async ({ principal, ...page }) => policyKeeper.list(principal, page),
    explainCheck: ({ principal, ...asked }) => policyKeeper.explain(principal, asked),
    listPolicyVersions: ({ principal, ...page }) => policyLife.history.list(principal, page),
    getPolicyVersion: ({ principal, version }) => policyLife.history.get(principal, version),
    diffPolicies: ({ principal, from, to }) => policyLife.history.diff(principal, from, to),
    startShadow: ({ principal, texts, expiresInSecs }) => policyLife.shadow.start(principal, texts, expiresInSecs),
    getShadow: ({ principal }) => policyLife.shadow.status(principal),
    stopShadow: ({ principal }) => policyLife.shadow.stop(principal),
    startReplay: ({ principal, ...request }) => policyLife.replays.start(principal, request),
    nextReplay: ({ ticket }) => policyLife.replays.next(ticket),
    leaveReplay: async ({ ticket }) => ok(policyLife.replays.leave(ticket)),
    reloadPolicies: ({ principal }) => policyKeeper.reloadFor(principal),
    listLimits: (asked) => listLimits(limits, asked),
    createHalt: ({ principal, halt }) => haltKeeper.create(principal, halt),
    decideApproval: (decision) => decideApproval(commands, findLineage, decision),
    waitApproval: ({ reader, ...wait }) => approvalWaits.wait(reader, wait),
    leaveWait: async ({ ticket }) => ok(approvalWaits.leave(ticket)),
    readStats: async ({ principal, orgId, window }) => {
      const org = orgInReach(principal, orgId);
      if (!org.ok) return org;
      const own = stats.view(org.value, clock.nowMs(), window);
      return ok(cluster === undefined ? own : await withOthers(own, { orgId: org.value, window }, cluster));
    },
    priceTokens: ({ tokens }) => prices.priceOf(tokens),
    findPrice: ({ model, provider }) => prices.find(model, provider),
    releaseHalt: ({ principal, id, reason }) => haltKeeper.release(principal, id, reason),
    issueTicket: ({ bearer }) => tickets.issue(bearer),
    redeemTicket: async ({ ticket }) => tickets.redeem(ticket),
    readiness: async () => {
      if (supervisor.isStopping || cluster?.membership.isReplaced)
        return fail({ kind: 'shutting_down', retryAfterSecs: 1 });
      if (!audit.isWritable && config.SVC_AUDIT_ON_FAILURE === 'deny') return fail({ kind: 'audit_unavailable' });
      return ok({
        audit: audit.isWritable ? 'writable' : 'unwritable',
        database:
          database === undefined
            ? 'not_configured'
            : (await database.postgres.isReachable())
              ? 'reachable'
              : 'unreachable',
        ...(witnesses.isAnyAway && { audit_witness: 'unreachable' }),
        ...(storeOutage.isOn && { store: 'unwritable' }),
        ...(cluster && { cluster: stateOf(cluster) }),
        ...(cluster?.bus.isConnected === false && { bus: 'unreachable' }),
      });
    },
    metrics: async ({ areNamesShown }) => ok(await metrics.render(areNamesShown)),
    takePermit: async ({ limit, key }) => limiters[limit].take(key, clock.nowMs()),
  };
}

/** If a gateway does not answer in time, the view says that it is incomplete. */
async function withOthers(
  own: StatsView,
  asked: { readonly orgId: string | undefined; readonly window: StatsWindow },
  { peers }: Cluster,
): Promise<StatsView> {
  const gathered = await peers.askAll('stats', asked);
  if (!gathered.ok) return { ...own, isIncomplete: true };
  const { answers, missing } = gathered.value;
  const merged = mergedStats([own, ...answers.map(({ answer }) => answer)]);
  return missing.length === 0 ? merged : { ...merged, isIncomplete: true };
}

function stateOf({ clock, membership }: Cluster): 'reachable' | 'unreachable' | 'wrong_clock' {
  if (!membership.isLeased) return 'unreachable';
  return clock.isOff ? 'wrong_clock' : 'reachable';
}

/** Operations that take something away from an account or its keys, and the copies they affect. */
const REVOKING_ACCOUNTS = {
  logout: ['accounts'],
  changeRole: ['accounts', 'api-keys', 'webhooks'],
  setDisabled: ['accounts', 'api-keys', 'webhooks'],
  revokeSessions: ['accounts'],
  confirmPasswordReset: ['accounts'],
} as const satisfies Partial<Record<keyof AccountUseCases, readonly Topic[]>>;

/** The same use cases, but these answer once every gateway of the cluster acts by what they have written. */
function confirmed<U extends object>(
  cluster: Cluster | undefined,
  useCases: U,
  topicsOf: Readonly<Partial<Record<keyof U, readonly Topic[]>>>,
): U {
  if (cluster === undefined) return useCases;
  const wrapped = { ...useCases };
  for (const [name, topics] of Object.entries(topicsOf) as [keyof U, readonly Topic[]][]) {
    const useCase = useCases[name] as UseCase<unknown, unknown>;
    const withBarriers: UseCase<unknown, unknown> = async (input) => {
      const reply = await useCase(input);
      if (!reply.ok) return reply;
      const names = await Promise.all(topics.map((topic) => cluster.states.barrier.pass(topic)));
      return { ...reply, unconfirmed: [...new Set(names.flat())] };
    };
    wrapped[name] = withBarriers as U[typeof name];
  }
  return wrapped;
}
