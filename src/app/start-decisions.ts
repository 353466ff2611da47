/** The parts that decide, and that record and carry out the decisions. */

import { createHash, randomUUID } from 'node:crypto';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { homeOf } from '../cluster/run.ts';
import { otherLogs } from '../cluster/shared-logs.ts';
import type { Config } from '../config/config.ts';
import type { Approval } from '../core/approvals/approval.ts';
import { redactAttributes } from '../core/audit/redact.ts';
import { DEFAULT_REDACTED_KEYS, redactedKeys } from '../core/audit/redact-text.ts';
import { BudgetTracker } from '../core/budget/budget.ts';
import { BudgetGrants } from '../core/budget/grants.ts';
import { usageLimitsFor } from '../core/budget/usage.ts';
import type { Effect } from '../core/effects.ts';
import { Governor } from '../core/governor.ts';
import type { Halt } from '../core/halts/halt.ts';
import { matchOf } from '../core/halts/match.ts';
import { LimitGrants } from '../core/limits/grants.ts';
import { type LimitRow, withoutLimits } from '../core/limits/rows.ts';
import type { PolicySet } from '../core/policy/policy.ts';
import { BUCKET_SECS } from '../core/stats/durations.ts';
import { Stats } from '../core/stats/stats.ts';
import { RateLimiter } from '../fairness/rate-limit.ts';
import type { AgentStore, BudgetStore, Clock, DecisionStore } from '../ports/ports.ts';
import { createEmbeddedAgents } from '../stores/embedded/agents.ts';
import { createEmbeddedBudgets } from '../stores/embedded/budgets.ts';
import { createEmbeddedShadow, createShadowCounts } from '../stores/embedded/policy-shadow.ts';
import { createEmbeddedPolicyVersions } from '../stores/embedded/policy-versions.ts';
import { createEmbeddedStates } from '../stores/embedded/states.ts';
import { createEmbeddedStats } from '../stores/embedded/stats.ts';
import { randomHashKey } from '../system/hash-key.ts';
import { usableMemoryMib } from '../system/machine.ts';
import { CommandRunner } from '../threads/main/command-runner.ts';
import { createPolicyKeeper, newsOfPolicies } from '../threads/main/policy-keeper.ts';
import { historyOf, openPolicyLife, type PolicyLife } from '../threads/main/policy-life.ts';
import { type Recording, startRecorder } from '../threads/main/recording.ts';
import { StatsSaver } from '../threads/main/stats-saver.ts';
import { UnauthenticatedCallers } from '../threads/main/unauthenticated-callers.ts';
import { OWN } from '../threads/protocol.ts';
import { startWebhooks } from '../threads/webhooks/start.ts';
import { ApprovalWaits } from '../use-cases/approvals.ts';
import { HaltKeeper, type HaltSharing } from '../use-cases/halts.ts';
import type { PolicyKeeper } from '../use-cases/policies.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import type { Cluster } from './start-cluster.ts';
import type { StartContext } from './start-context.ts';
import type { Resources } from './start-resources.ts';
import type { Threads } from './start-threads.ts';
import { auditFolderOf } from './start-threads.ts';

/** Entries that may be on their way to the audit log at once: what a few seconds at full speed produce. */
const MAX_UNRECORDED_ENTRIES = 200_000;

export type Limiters = Readonly<Record<'credential' | 'address' | 'check', RateLimiter>>;

export type Decisions = {
  readonly governor: Governor;
  readonly commands: CommandRunner;
  readonly haltKeeper: HaltKeeper;
  readonly approvalWaits: ApprovalWaits;
  readonly limiters: Limiters;
  readonly policyKeeper: PolicyKeeper;
  readonly policyLife: PolicyLife;
  readonly recording: Recording;
  readonly webhooks: Webhooks;
  readonly stats: Stats;
  readonly statsSaver: StatsSaver;
};

export function startDecisions(
  context: StartContext,
  resources: Resources,
  { audit, clock, threads }: Threads,
  cluster: Cluster | undefined,
): Decisions {
  const { config, log, closers } = context;
  const { policies: loaded, store, onError } = resources;
  const agents = cluster?.states.agentStore ?? createEmbeddedAgents(store);
  const budgets = cluster?.money.budgets ?? createEmbeddedBudgets(store);
  const ownStates = createEmbeddedStates(store);
  const states = cluster?.states.store ?? ownStates;
  const governor = restoreGovernor({
    config,
    policies: loaded.policies,
    agents,
    budgets,
    states,
    nowMs: clock.nowMs(),
    sliceMs: cluster?.money.sliceMs,
    newApprovalId: cluster?.states.ids.next ?? randomUUID,
  });
  const decisions = cluster?.states.share(governor, clock);
  const webhooks = startWebhooks(config, {
    ...{ states: ownStates, audit, clock, log, closers, onError },
    resetsAtMs: (period) => governor.budgets.resetsAtMs(period),
    shared: cluster?.webhooks,
  });
  const statistics = openStats(store, clock.nowMs());
  const onApproval = (approval: Approval): void => approvalWaits.wake(approval);
  const recording = startRecorder({
    governor,
    audit,
    threads,
    agents,
    budgets,
    states,
    controls: decisions?.controls,
    clock,
    webhooks,
    stats: statistics.stats,
    onApproval,
    onError,
    onAuditFailure: config.SVC_AUDIT_ON_FAILURE,
  });
  const policyParts = keepPolicies(context, resources, { audit, clock }, { governor, webhooks, cluster, recording });
  const limiters = limitersOf(config);
  const commands = new CommandRunner({
    ...recording,
    governor,
    audit,
    threads,
    clock,
    onError,
    onAuditFailure: config.SVC_AUDIT_ON_FAILURE,
    maxUnrecorded: MAX_UNRECORDED_ENTRIES,
    home: context.run && homeOf(context.run),
    money: cluster?.money.tradeFor(governor, clock, (alerts) => raise(alerts, recording)),
    unauthenticated: new UnauthenticatedCallers({
      perMinute: config.SVC_RATE_LIMIT_UNIDENTIFIED,
      checksPerMinute: config.SVC_RATE_LIMIT_CHECK,
      isShareFull: () => audit.isShareFull,
    }),
    decisions,
    controls: cluster?.states.orders,
    checkLimiter: config.SVC_RATE_LIMIT_CHECK === 0 ? undefined : limiters.check,
  });
  const haltKeeper = haltsFor(commands, governor, onError, cluster?.states.halting);
  const approvalWaits = waitsFor(commands);
  if (cluster !== undefined)
    followCluster(cluster, { ...policyParts, commands, governor, haltKeeper, recording, threads, clock, onApproval });
  return {
    governor,
    commands,
    haltKeeper,
    approvalWaits,
    limiters,
    ...policyParts,
    recording,
    webhooks,
    ...statistics,
  };
}

/** The statistics of the runs before, and who saves them. */
function openStats(store: Resources['store'], nowMs: number): Pick<Decisions, 'stats' | 'statsSaver'> {
  const stats = new Stats(
    nowMs,
    BUCKET_SECS.map((secs) => secs * 1000),
  );
  const kept = createEmbeddedStats(store);
  stats.restore(kept.load(), nowMs);
  return { stats, statsSaver: new StatsSaver(stats, kept) };
}

function keepPolicies(
  context: StartContext,
  resources: Resources,
  threads: Pick<Threads, 'audit' | 'clock'>,
  {
    governor,
    webhooks,
    cluster,
    recording: { events },
  }: Pick<Decisions, 'governor' | 'webhooks' | 'recording'> & { readonly cluster: Cluster | undefined },
): Pick<Decisions, 'policyKeeper' | 'policyLife'> {
  const { onError, policies, policyPath, store } = resources;
  const own = historyOf(createEmbeddedPolicyVersions(store), onError);
  context.closers.add('the history of the policies', () => own.settled());
  const policyKeeper = createPolicyKeeper({
    ...threads,
    isPublished: cluster !== undefined,
    keep: cluster === undefined ? own.keep : undefined,
    path: policyPath,
    policies: policies.policies,
    governor,
    log: context.log,
    onError,
    ...newsOfPolicies({ webhooks, events, clock: threads.clock }),
  });
  const life = openPolicyLife({
    ...threads,
    store: cluster?.policyStores.shadow ?? createEmbeddedShadow(store),
    counts: createShadowCounts(store),
    versions: cluster?.policyStores.versions ?? own.versions,
    announce: async () => cluster?.states.barrier.pass('shadow') ?? [],
    countsElsewhere: async (version) => {
      const asked = await cluster?.peers.askAll('shadow', { version });
      return asked?.ok === true ? asked.value.answers.map(({ answer }) => answer) : [];
    },
    otherLogs: () => (cluster === undefined ? [] : otherLogs(cluster.membership, cluster.peers)),
    governor,
    policyKeeper,
    auditFolder: auditFolderOf(context.config),
    closers: context.closers,
    log: context.log,
    onError,
  });
  cluster?.peers.serve('shadow', async ({ version }) => life.shadow.countsOf(version));
  const begin = (): Promise<void> => {
    if (cluster === undefined) own.keep(policies, 'gateway', threads.clock.nowMs());
    return life.begin();
  };
  return { policyKeeper, policyLife: { ...life, begin } };
}

type Following = Pick<Decisions, 'commands' | 'governor' | 'haltKeeper' | 'policyKeeper' | 'recording'> &
  Pick<Threads, 'threads'> & { readonly clock: Clock; readonly onApproval: (approval: Approval) => void };

/** Follows the other gateways' policies and orders. */
function followCluster(
  { money, policies, states }: Cluster,
  {
    commands,
    governor,
    haltKeeper,
    policyKeeper,
    recording: { controlStreams },
    threads,
    clock,
    onApproval,
  }: Following,
): void {
  policies.follow({
    version: () => policyKeeper.version,
    install: async (compiled, actor) => {
      const installed = await policyKeeper.replace(compiled, actor);
      // Money that exceeds lower caps is given back before this gateway says that it acts by them.
      await money.giveBack();
      return installed;
    },
  });
  const { orders } = states;
  governor.closedElsewhere = (agent, opId) => orders.closedElsewhere(agent, opId);
  governor.onSwept = (agent, opId) => orders.forget(agent, opId);
  states.follow({
    ...{ commands, haltKeeper, clock, onApproval },
    deliver: (agent, message) => {
      for (const { io, stream } of controlStreams.of(agent)) threads.send(io, { type: 'signal', stream, message });
    },
  });
}

const haltsFor = (
  commands: CommandRunner,
  { agents }: Governor,
  onError: Resources['onError'],
  shared: HaltSharing | undefined,
): HaltKeeper =>
  new HaltKeeper({
    commands,
    newId: () => randomUUID(),
    // Twice: what was asked during a slice is answered in the turn after it, and not behind the next one.
    breathe: () => setImmediate().then(() => setImmediate()),
    stopwatch: performance,
    pause: (ms) => sleep(ms, undefined, { ref: false }),
    onError,
    matchOf: (scope) => matchOf(agents, scope),
    shared,
  });

const waitsFor = (commands: CommandRunner): ApprovalWaits =>
  new ApprovalWaits({
    commands,
    nowMs: () => performance.now(),
    after: (ms, call) => {
      const timer = setTimeout(call, ms).unref();
      return () => clearTimeout(timer);
    },
  });

/** Alerts of what all gateways of a cluster have spent, raised by the exchange that has crossed the threshold. */
function raise(alerts: readonly Effect[], { effectRunner, recorder }: Recording): void {
  const batch = recorder.begin(OWN);
  const saved = effectRunner.run(alerts, batch);
  void recorder.recordWhenDurable(batch, saved ?? Promise.resolve());
}

const limitersOf = (config: Config): Limiters => ({
  credential: new RateLimiter(config.SVC_RATE_LIMIT_API),
  address: new RateLimiter(config.SVC_RATE_LIMIT_AUTH),
  check: new RateLimiter(config.SVC_RATE_LIMIT_CHECK),
});

/** An org may have a quarter of all budgets: it cannot take those of the others. */
const ORGS_WORTH = 4;

type GovernorStart = {
  readonly config: Config;
  readonly policies: PolicySet;
  readonly agents: AgentStore;
  readonly budgets: BudgetStore;
  readonly states: Pick<DecisionStore, 'load'>;
  readonly nowMs: number;
  /** In a cluster: for how long a grant of the ledger is to last. */
  readonly sliceMs?: number | undefined;
  readonly newApprovalId: () => string;
};

function restoreGovernor(start: GovernorStart): Governor {
  const { config, policies, agents, budgets, states, nowMs, sliceMs } = start;
  const tracker = new BudgetTracker(policies.budget, nowMs, usageLimitsFor(usableMemoryMib()), {
    ofOrg: config.SVC_MAX_ORG_BUDGETS,
    ofAll: ORGS_WORTH * config.SVC_MAX_ORG_BUDGETS,
    forRegistered: 2 * config.SVC_MAX_AGENTS, // each with its team
  });
  if (sliceMs !== undefined) tracker.useLedger(new BudgetGrants(sliceMs), policies.budget, nowMs);
  const limitRows: LimitRow[] = [];
  tracker.restore(withoutLimits(budgets.load(), limitRows), nowMs);
  const redacted = redactedKeys([...DEFAULT_REDACTED_KEYS, ...config.SVC_AUDIT_REDACT]);
  const governor = new Governor({
    policies,
    budgets: tracker,
    maxOps: config.SVC_MAX_OPS,
    maxOrgOps: config.SVC_MAX_ORG_OPS,
    maxAgents: config.SVC_MAX_AGENTS,
    maxOrgAgents: config.SVC_MAX_ORG_AGENTS,
    sweepTtlMs: config.SVC_OPS_TTL_SECS * 1000,
    hashKey: randomHashKey(),
    maxLimitStates: config.SVC_MAX_LIMIT_STATES,
    sessionTtlMs: config.SVC_SESSION_TTL_SECS * 1000,
    grants: sliceMs === undefined ? undefined : new LimitGrants(sliceMs),
    redact: (attributes) => redactAttributes(attributes, redacted),
    newApprovalId: start.newApprovalId,
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
  });
  governor.limitsInForce = policies.limits;
  governor.limits.restore(limitRows);
  for (const registration of agents.load()) governor.restoreAgent(registration);
  for (const { row } of states.load('halts')) governor.restoreHalt(row as Halt);
  const approvals = [...states.load('approvals')].map(({ row }) => row as Approval);
  for (const approval of approvals.sort((one, other) => one.requestedAtMs - other.requestedAtMs))
    governor.restoreApproval(approval);
  return governor;
}
