/** What the gateway measures of itself, as one table: the rows of `/metrics`. */
import type { Histogram, Metric } from './adapters/metrics.ts';
import type { Governor } from './core/governor.ts';
import { microToUsd } from './core/money.ts';
import { OP_STATES } from './core/op-state.ts';
import type { PolicyKeeper } from './gateway/policies.ts';
import type { RateLimiter } from './gateway/rate-limit.ts';
import type { AuditLink } from './threads/audit-link.ts';
import type { CryptoPool } from './threads/crypto-pool.ts';
import { BUCKET_SECS, sumOfDurations } from './threads/durations.ts';
import type { IoStats } from './threads/protocol.ts';
import type { Supervisor } from './threads/supervisor.ts';
import type { Switchboard } from './threads/switchboard.ts';
import type { StoreOutage } from './store-outage.ts';

export type Measured = {
  readonly governor: Governor;
  readonly switchboard: Switchboard;
  readonly supervisor: Supervisor;
  readonly audit: AuditLink;
  readonly crypto: CryptoPool;
  readonly policies: PolicyKeeper;
  readonly storeOutage: StoreOutage;
  /** Undefined without an account store. */
  readonly isDatabaseAway: (() => boolean) | undefined;
  readonly limiters: Readonly<Record<string, RateLimiter>>;
  readonly version: string;
};

const DOORS = ['http', 'connect', 'grpc'] as const;

export function metricsOf({ governor, switchboard, supervisor, audit, crypto, policies, storeOutage, isDatabaseAway, limiters, version }: Measured): readonly (Metric | Histogram)[] {
  const { tally } = switchboard;
  const gauge = (name: string, help: string, read: Metric['read'], labels: readonly string[] = []): Metric => ({ name, type: 'gauge', help, read, labels });
  const counter = (name: string, help: string, read: Metric['read'], labels: readonly string[] = []): Metric => ({ name, type: 'counter', help, read, labels });
  const sumOfThreads = (read: (stats: IoStats) => number) => (): number => switchboard.stats.reduce((sum, stats) => sum + read(stats), 0);
  const by = (label: string, counts: Readonly<Record<string, number>>) => Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }));
  return [
    gauge('svc_info', 'Always 1; the version as a label.', () => [{ labels: { version }, value: 1 }], ['version']),
    counter('svc_checks_total', 'Policy checks answered, by decision; error: refused as they were.', () => by('decision', tally.checks), ['decision']),
    {
      name: 'svc_check_duration_seconds', type: 'histogram', help: 'From a policy check to its answer, which waits for the audit log.', buckets: BUCKET_SECS,
      read: () => {
        const { counts, sumMs } = sumOfDurations(switchboard.stats.map(({ checks }) => checks));
        return { counts, sum: sumMs / 1000 };
      },
    },
    counter('svc_violations_total', 'Tokens presented for an agent they do not belong to.', () => tally.violations),
    gauge('svc_ops', 'Operations in the registry, by state.', () => OP_STATES.map((state) => ({ labels: { state }, value: governor.ops.counts[state] })), ['state']),
    gauge('svc_agents_registered', 'Registered agents.', () => governor.agents.registeredCount),
    gauge('svc_orgs', 'Orgs with a registered agent.', () => governor.agents.groups.registeredOrgs),
    counter('svc_audit_entries_total', 'Entries handed to the audit log since the start.', () => audit.entriesTotal),
    counter('svc_audit_write_failures_total', 'Batches of entries that could not be written.', () => audit.failuresTotal),
    counter('svc_audit_entries_lost_total', 'Entries that are not in the log because it could not be written; with SVC_AUDIT_ON_FAILURE=allow some of them were allowed checks.', () => audit.entriesLost),
    gauge('svc_audit_entries_in_flight', 'Entries not yet known to be written.', () => audit.entriesInFlight),
    gauge('svc_audit_writable', '1 while the audit log can be written.', () => (audit.isWritable ? 1 : 0)),
    counter('svc_budget_alerts_total', 'Times a cap was reached to this percentage.', () => by('percent', tally.budgetAlerts), ['percent']),
    counter('svc_budget_exceeded_total', 'Checks denied and usage recorded over a cap.', () => tally.budgetExceeded),
    gauge('svc_budget_reservations', 'Operations that hold money.', () => governor.budgets.reservations.count),
    gauge('svc_budget_reserved_usd', 'Money held for operations, over all orgs.', () => microToUsd(governor.budgets.reservations.microUsd)),
    counter('svc_policy_reloads_total', 'Policy reloads, by result.', () => by('result', policies.reloads), ['result']),
    counter('svc_rate_limited_total', 'Requests refused by a rate limit.', () => Object.entries(limiters).map(([limit, { refused }]) => ({ labels: { limit }, value: refused })), ['limit']),
    counter('svc_requests_total', 'Requests, by the door they came through.', () => DOORS.map((door) => ({ labels: { door }, value: sumOfThreads(({ requests }) => requests[door])() })), ['door']),
    gauge('svc_requests_pending', 'Requests that wait for an answer.', sumOfThreads(({ pendingRequests }) => pendingRequests)),
    counter('svc_requests_refused_total', 'Requests, and checks of a batch or stream, refused because too many waited for an answer.', sumOfThreads(({ refusedRequests }) => refusedRequests)),
    gauge('svc_websockets', 'Open WebSockets.', sumOfThreads(({ webSockets }) => webSockets)),
    gauge('svc_control_streams', 'Open control streams of agents.', sumOfThreads(({ controlStreams }) => controlStreams)),
    counter('svc_events_dropped_total', 'Events that slow readers have missed.', sumOfThreads(({ droppedEvents }) => droppedEvents)),
    gauge('svc_crypto_pending', 'Tasks of the crypto threads, waiting or worked on.', () => by('lane', crypto.pending()), ['lane']),
    gauge('svc_store_writable', '0 while the data directory takes no keys, registrations and spend.', () => (storeOutage.isOn ? 0 : 1)),
    ...(isDatabaseAway === undefined ? [] : [gauge('svc_database_reachable', '0 during an outage of the database.', () => (isDatabaseAway() ? 0 : 1))]),
    counter('svc_threads_restarted_total', 'Threads started in place of ones that died.', () => supervisor.restarts + crypto.restarts()),
    counter('svc_thread_busy_seconds_total', 'Time that the event loop of a thread was busy; a rate near 1: the thread is at its limit, or stands still.', () => Object.entries(supervisor.busyMs()).map(([thread, ms]) => ({ labels: { thread }, value: ms / 1000 })), ['thread']),
  ];
}
