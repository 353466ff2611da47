/** The gateway's metrics as one table: the rows of `/metrics`. */

import type { Witnesses, WitnessStatus } from '../audit-log/witness/witnesses.ts';
import type { ClusterMeasures } from '../cluster/measures.ts';
import { microToUsd } from '../core/base/money.ts';
import type { Governor } from '../core/governor.ts';
import { OP_STATES } from '../core/ops/op-state.ts';
import { BUCKET_SECS, sumOfDurations } from '../core/stats/durations.ts';
import type { Stats } from '../core/stats/stats.ts';
import type { RateLimiter } from '../fairness/rate-limit.ts';
import type { StoreOutage } from '../stores/embedded/outage.ts';
import type { Histogram, Metric } from '../system/metrics.ts';
import type { OpenFiles } from '../system/open-files.ts';
import type { TlsFiles } from '../system/tls-files.ts';
import type { AuditLink } from '../threads/audit/audit-link.ts';
import type { AuditSinksLink } from '../threads/audit-sinks/sinks-link.ts';
import type { CryptoPool } from '../threads/crypto/pool.ts';
import type { EffectRunner } from '../threads/main/effect-runner.ts';
import type { IoThreads } from '../threads/main/io-threads.ts';
import type { Recorder } from '../threads/main/recorder.ts';
import type { IoStats } from '../threads/protocol.ts';
import type { Supervisor } from '../threads/supervisor.ts';
import type { TelemetryLink } from '../threads/telemetry/telemetry-link.ts';
import type { ListedSink } from '../use-cases/audit-sinks.ts';
import type { PolicyKeeper } from '../use-cases/policies.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';

export type Measured = {
  readonly governor: Governor;
  readonly threads: IoThreads;
  readonly recorder: Recorder;
  readonly effectRunner: EffectRunner;
  readonly supervisor: Supervisor;
  readonly audit: AuditLink;
  readonly witnesses: Witnesses;
  readonly sinks: AuditSinksLink;
  readonly crypto: CryptoPool;
  readonly policies: PolicyKeeper;
  readonly webhooks: Webhooks;
  readonly stats: Stats;
  readonly storeOutage: StoreOutage;
  readonly openFiles: OpenFiles;
  /** Undefined: without TLS. */
  readonly tls: TlsFiles | undefined;
  /** Undefined for a gateway alone. */
  readonly cluster: ClusterMeasures | undefined;
  /** Undefined without an account store. */
  readonly isDatabaseAway: (() => boolean) | undefined;
  /** Undefined for a gateway alone. */
  readonly isOnBus: (() => boolean) | undefined;
  readonly limiters: Readonly<Record<string, RateLimiter>>;
  /** Undefined: it is off. */
  readonly telemetry: TelemetryLink | undefined;
  readonly version: string;
};

const DOORS = ['http', 'connect', 'grpc'] as const;

const gauge = (name: string, help: string, read: Metric['read'], labels: readonly string[] = []): Metric => ({
  name,
  type: 'gauge',
  help,
  read,
  labels,
});

const counter = (name: string, help: string, read: Metric['read'], labels: readonly string[] = []): Metric => ({
  name,
  type: 'counter',
  help,
  read,
  labels,
});

const by = (label: string, counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }));

export const metricsOf = (measured: Measured): readonly (Metric | Histogram)[] => [
  ...ofDecisions(measured),
  ...ofRecords(measured),
  ...ofRequests(measured),
  ...ofSystem(measured),
  ...ofWebhooks(measured),
  ...(measured.sinks.sinks.length === 0 ? [] : ofSinks(measured.sinks)),
  ...ofStats(measured),
  ...(measured.tls === undefined ? [] : ofTls(measured.tls)),
  ...(measured.telemetry === undefined ? [] : ofTelemetry(measured.telemetry)),
  ...ofNames(measured),
  ...(measured.cluster === undefined ? [] : ofCluster(measured.cluster)),
];

/** Checks, operations, agents. */
function ofDecisions({
  governor,
  threads,
  recorder,
  effectRunner,
  version,
}: Measured): readonly (Metric | Histogram)[] {
  const { tally } = effectRunner;
  return [
    gauge('svc_info', 'Always 1; the version is a label.', () => [{ labels: { version }, value: 1 }], ['version']),
    counter(
      'svc_checks_total',
      'Policy checks answered, by decision; error: refused without a decision.',
      () => by('decision', recorder.checks),
      ['decision'],
    ),
    {
      name: 'svc_check_duration_seconds',
      type: 'histogram',
      help: 'Time from a policy check to its answer, including the write to the audit log.',
      buckets: BUCKET_SECS,
      read: () => {
        const { counts, sumMs } = sumOfDurations(threads.stats.map(({ checks }) => checks));
        return { counts, sum: sumMs / 1000 };
      },
    },
    counter('svc_violations_total', 'Agent tokens presented for another agent.', () => tally.violations),
    gauge(
      'svc_ops',
      'Operations in the registry, by state.',
      () => OP_STATES.map((state) => ({ labels: { state }, value: governor.ops.counts[state] })),
      ['state'],
    ),
    gauge('svc_agents_registered', 'Registered agents.', () => governor.agents.registeredCount),
    gauge('svc_orgs', 'Orgs with a registered agent.', () => governor.agents.groups.registeredOrgs),
  ];
}

/** The audit log, budgets, policies and rate limits. */
function ofRecords({ governor, audit, effectRunner, policies, limiters }: Measured): readonly (Metric | Histogram)[] {
  const { tally } = effectRunner;
  return [
    counter('svc_audit_entries_total', 'Entries sent to the audit log since startup.', () => audit.entriesTotal),
    counter(
      'svc_audit_write_failures_total',
      'Batches of entries that could not be written.',
      () => audit.failuresTotal,
    ),
    counter(
      'svc_audit_entries_lost_total',
      'Entries missing from the log because it could not be written; with SVC_AUDIT_ON_FAILURE=allow, these include allowed checks.',
      () => audit.entriesLost,
    ),
    gauge('svc_audit_entries_in_flight', 'Entries not yet known to be written.', () => audit.entriesInFlight),
    gauge('svc_audit_writable', '1 while the audit log can be written.', () => (audit.isWritable ? 1 : 0)),
    counter(
      'svc_budget_alerts_total',
      'Times spend reached this percentage of a cap.',
      () => by('percent', tally.budgetAlerts),
      ['percent'],
    ),
    counter('svc_budget_exceeded_total', 'Checks denied and usage recorded over a cap.', () => tally.budgetExceeded),
    gauge(
      'svc_budget_reservations',
      'Operations with a budget reservation.',
      () => governor.budgets.reservations.count,
    ),
    gauge('svc_budget_reserved_usd', 'Money reserved for operations, across all orgs.', () =>
      microToUsd(governor.budgets.reservations.microUsd),
    ),
    gauge(
      'svc_budget_owners',
      'Orgs, teams and agents whose spend is counted by itself.',
      () => governor.budgets.owners,
    ),
    counter(
      'svc_budget_overflow_total',
      'Usage records counted in wider tiers only, because the org is at SVC_MAX_ORG_BUDGETS.',
      () => governor.budgets.overflows,
    ),
    gauge(
      'svc_limit_states',
      'Sessions, lineages, agents, teams and orgs that limits count for.',
      () => governor.limits.size,
    ),
    counter(
      'svc_limit_alerts_total',
      'Times use reached this percentage of a limit.',
      () => by('percent', tally.limitAlerts),
      ['percent'],
    ),
    counter(
      'svc_limit_overflow_total',
      'Usage that no limit counted, because there were SVC_MAX_LIMIT_STATES already.',
      () => governor.limits.overflows,
    ),
    counter('svc_policy_reloads_total', 'Policy reloads, by result.', () => by('result', policies.reloads), ['result']),
    counter(
      'svc_rate_limited_total',
      'Requests refused by a rate limit.',
      () => Object.entries(limiters).map(([limit, { refused }]) => ({ labels: { limit }, value: refused })),
      ['limit'],
    ),
  ];
}

/** Metrics of the I/O threads. */
function ofRequests({ threads }: Measured): readonly (Metric | Histogram)[] {
  const sumOfThreads = (read: (stats: IoStats) => number) => (): number =>
    threads.stats.reduce((sum, stats) => sum + read(stats), 0);
  return [
    counter(
      'svc_requests_total',
      'Requests, by interface.',
      () => DOORS.map((door) => ({ labels: { door }, value: sumOfThreads(({ requests }) => requests[door])() })),
      ['door'],
    ),
    gauge(
      'svc_requests_pending',
      'Requests awaiting an answer.',
      sumOfThreads(({ pendingRequests }) => pendingRequests),
    ),
    counter(
      'svc_requests_refused_total',
      'Requests, and checks in batches and streams, refused because too many were awaiting an answer.',
      sumOfThreads(({ refusedRequests }) => refusedRequests),
    ),
    gauge(
      'svc_websockets',
      'Open WebSockets.',
      sumOfThreads(({ webSockets }) => webSockets),
    ),
    gauge(
      'svc_control_streams',
      'Open control streams of agents.',
      sumOfThreads(({ controlStreams }) => controlStreams),
    ),
    counter(
      'svc_events_dropped_total',
      'Events missed by slow clients.',
      sumOfThreads(({ droppedEvents }) => droppedEvents),
    ),
  ];
}

function ofWebhooks({ webhooks }: Measured): readonly Metric[] {
  return [
    gauge('svc_webhooks', 'Webhooks, by state.', () => by('state', webhooks.counts), ['state']),
    gauge('svc_webhook_messages_waiting', 'Messages of webhooks that have not arrived yet.', () => webhooks.waiting),
    counter(
      'svc_webhook_messages_total',
      'Calls of webhooks that arrived or failed, and messages dropped since too many waited.',
      () => by('result', webhooks.tally),
      ['result'],
    ),
  ];
}

const ofTls = (tls: TlsFiles): readonly Metric[] => [
  gauge(
    'svc_tls_certificate_expiry_timestamp_seconds',
    'When the certificate ends that clients are shown.',
    () => tls.endMs / 1000,
  ),
  gauge('svc_tls_files_valid', '0 while the TLS files are invalid and the previous ones stay in force.', () =>
    tls.fault === undefined ? 1 : 0,
  ),
];

const ofStats = ({ stats }: Measured): readonly Metric[] => [
  counter('svc_denies_total', 'Checks denied, by cause.', () => by('cause', stats.causes), ['cause']),
  counter('svc_spend_usd_total', 'Spend that agents have reported.', () => microToUsd(stats.total.spentMicroUsd)),
];

/** Bounded: the rules and orgs that statistics count by themselves. */
const ofNames = ({ stats }: Measured): readonly Metric[] =>
  [
    counter(
      'svc_rule_denies_total',
      'Checks denied by a rule; without labels, those of all rules beyond the first 500.',
      () =>
        [...stats.rules.entries(), ['', '', stats.rules.others] as const].map(([policy, ruleId, [value = 0]]) => ({
          labels: { policy, rule_id: ruleId },
          value,
        })),
      ['policy', 'rule_id'],
    ),
    counter(
      'svc_org_checks_total',
      'Checks of orgs that were active in the last 24 hours, by decision.',
      () =>
        stats.orgTotals.flatMap(({ orgId, allow, deny, pending }) =>
          Object.entries({ allow, deny, pending }).map(([decision, value]) => ({
            labels: { org_id: orgId, decision },
            value,
          })),
        ),
      ['org_id', 'decision'],
    ),
    counter(
      'svc_org_spend_usd_total',
      'Spend of orgs that were active in the last 24 hours.',
      () =>
        stats.orgTotals.map(({ orgId, spentMicroUsd }) => ({
          labels: { org_id: orgId },
          value: microToUsd(spentMicroUsd),
        })),
      ['org_id'],
    ),
  ].map((metric) => ({ ...metric, isNaming: true }));

/** Stores and threads. */
function ofSystem({
  crypto,
  openFiles,
  storeOutage,
  isDatabaseAway,
  isOnBus,
  supervisor,
  witnesses,
}: Measured): readonly (Metric | Histogram)[] {
  return [
    gauge('svc_crypto_pending', 'Tasks of the crypto threads, queued or running.', () => by('lane', crypto.pending()), [
      'lane',
    ]),
    gauge('svc_store_writable', '0 while keys, registrations and spend cannot be written to the data directory.', () =>
      storeOutage.isOn ? 0 : 1,
    ),
    gauge('svc_files_available', '0 while the process has as many files and connections open as it may.', () =>
      openFiles.areAllInUse ? 0 : 1,
    ),
    ...(witnesses.status.length === 0 ? [] : ofWitnesses(witnesses)),
    ...(isDatabaseAway === undefined
      ? []
      : [gauge('svc_database_reachable', '0 while the database is unreachable.', () => (isDatabaseAway() ? 0 : 1))]),
    ...(isOnBus === undefined
      ? []
      : [
          gauge(
            'svc_cluster_bus_connected',
            '0 while messages cannot be exchanged with the other gateways of the cluster.',
            () => (isOnBus() ? 1 : 0),
          ),
        ]),
    counter(
      'svc_threads_restarted_total',
      'Threads restarted after a crash.',
      () => supervisor.restarts + crypto.restarts(),
    ),
    counter(
      'svc_door_defects_total',
      'Defects of the gateway that ended a request, call or stream.',
      () => supervisor.doorDefects,
    ),
    counter(
      'svc_thread_busy_seconds_total',
      'Time a thread was busy (event loop utilization); a rate near 1 means saturated or stuck.',
      () => Object.entries(supervisor.busyMs()).map(([thread, ms]) => ({ labels: { thread }, value: ms / 1000 })),
      ['thread'],
    ),
  ];
}

function ofWitnesses(witnesses: Witnesses): readonly Metric[] {
  const each = (valueOf: (status: WitnessStatus) => number) => () =>
    witnesses.status.map((status) => ({ labels: { witness: status.name }, value: valueOf(status) }));
  return [
    gauge(
      'svc_audit_witness_reachable',
      '0 while a witness of the audit log does not take checkpoints.',
      each(({ isReachable }) => (isReachable ? 1 : 0)),
      ['witness'],
    ),
    gauge(
      'svc_audit_witnessed_entry',
      'The last entry that a witness has vouched for since the start.',
      each(({ witnessedId }) => witnessedId),
      ['witness'],
    ),
    counter(
      'svc_audit_witness_failures_total',
      'Attempts to hand a witness a checkpoint that failed.',
      each(({ failures }) => failures),
      ['witness'],
    ),
  ];
}

const ofTelemetry = (telemetry: TelemetryLink): readonly Metric[] => [
  counter(
    'svc_telemetry_exported_total',
    'Spans, log records and readings of metrics that the collector of OpenTelemetry has taken.',
    () => by('signal', telemetry.exported),
    ['signal'],
  ),
  counter(
    'svc_telemetry_dropped_total',
    'Spans, log records and readings of metrics that were dropped: the collector did not take them, or not in time.',
    () => by('signal', telemetry.dropped),
    ['signal'],
  ),
];

function ofSinks(sinks: AuditSinksLink): readonly Metric[] {
  const each = (valueOf: (sink: ListedSink) => number) => () =>
    sinks.sinks.map((sink) => ({ labels: { sink: sink.name }, value: valueOf(sink) }));
  return [
    gauge(
      'svc_audit_sink_lag_entries',
      'Entries of the audit log that a sink has not got yet.',
      each(({ lag }) => lag),
      ['sink'],
    ),
    gauge(
      'svc_audit_sink_reachable',
      '0 while a sink of the audit log does not take entries.',
      each(({ trouble }) => (trouble === undefined ? 1 : 0)),
      ['sink'],
    ),
    counter(
      'svc_audit_sink_entries_total',
      'Entries that a sink has taken since the start, those it was sent again included.',
      each(({ sentEntries }) => sentEntries),
      ['sink'],
    ),
    counter(
      'svc_audit_sink_failures_total',
      'Attempts to send entries to a sink that failed.',
      each(({ failures }) => failures),
      ['sink'],
    ),
    counter(
      'svc_audit_sink_lost_entries_total',
      'Entries that retention deleted before a sink had got them, since the start.',
      each(({ lostEntries }) => lostEntries),
      ['sink'],
    ),
  ];
}

/** As this gateway sees it. */
function ofCluster(cluster: ClusterMeasures): readonly (Metric | Histogram)[] {
  return [
    gauge('svc_cluster_members', 'Gateways of the cluster, by state.', () => by('state', cluster.members()), ['state']),
    {
      name: 'svc_cluster_exchange_duration_seconds',
      type: 'histogram',
      help: 'Time from a report of spending to the ledger until its answer, or its failure.',
      buckets: BUCKET_SECS,
      read: () => {
        const { counts, sumMs } = cluster.exchanges();
        return { counts, sum: sumMs / 1000 };
      },
    },
    gauge('svc_cluster_checks_parked', 'Checks that wait for a grant of the ledger.', cluster.parkedChecks),
    gauge('svc_cluster_stranded_usd', 'Money of gateways that have not returned it, as of half a minute ago.', () =>
      microToUsd(cluster.strandedMicroUsd()),
    ),
    counter(
      'svc_cluster_commands_passed_on_total',
      'Commands that were decided here for other gateways.',
      cluster.passedOn,
    ),
    counter(
      'svc_cluster_barriers_unconfirmed_total',
      'Changes made here that a gateway did not confirm in time.',
      cluster.unconfirmedBarriers,
    ),
    gauge('svc_cluster_orders_waiting', 'Orders to operations of gateways that do not answer.', cluster.waitingOrders),
  ];
}
