/** Alerts: what somebody must have seen, made of what the gateway records. Pure. */
import type { AgentName, AuditEntry, Budget, Readiness } from '../base/api-types.ts';
import { money } from '../base/format.ts';
import { queryOf } from '../base/request.ts';

export type AlertKind = 'violation' | 'halt' | 'budget' | 'limit' | 'policy' | 'audit' | 'webhook';

export type Alert = {
  /** The same for as long as it is the same alert: seen once, it stays seen. */
  readonly id: string;
  readonly kind: AlertKind;
  readonly severity: 'critical' | 'warning';
  readonly title: string;
  readonly detail: string;
  /** RFC 3339; null for what is so now. */
  readonly at: string | null;
  readonly times: number;
  /** Whom it is about. */
  readonly agent?: AgentName | undefined;
  /** Who was impersonated. */
  readonly victim?: AgentName | undefined;
  /** The link to the evidence. */
  readonly href: string;
  readonly evidence: string;
};

export type LimitRow = {
  readonly policy: string;
  readonly id: string;
  readonly per: string;
  readonly key: string;
  readonly unit: string;
  readonly used: number;
  readonly reserved: number;
  readonly max: number;
  readonly resets_at: string | null;
};

export type ReloadError = {
  readonly at: string;
  readonly reason: string;
  readonly problems?: readonly string[];
  readonly by?: string;
};

export type Sources = {
  readonly violations: readonly AuditEntry[];
  readonly halts: readonly AuditEntry[];
  readonly budgets: readonly Budget[];
  readonly limits: readonly LimitRow[];
  readonly reloadError: ReloadError | undefined;
  readonly readiness: Readiness | undefined;
};

/** Shows one entry of the audit log, and opens it. */
export function entryPath({ id, event_type, timestamp }: Pick<AuditEntry, 'id' | 'event_type' | 'timestamp'>): string {
  const until = new Date(Date.parse(timestamp) + 1).toISOString();
  return `/audit${queryOf({ event_type, since: timestamp, until, entry: id })}`;
}

const named = (org: unknown, team: unknown, agent: unknown): AgentName | undefined =>
  typeof agent === 'string'
    ? { org_id: typeof org === 'string' ? org : null, team_id: String(team ?? ''), agent_id: agent }
    : undefined;

const keyOf = (agent: AgentName | undefined): string =>
  agent === undefined ? '–' : `${agent.org_id ?? ''}/${agent.team_id}/${agent.agent_id}`;

/** Groups all attempts of one agent to be another into one alert; a new attempt makes it unseen again. */
function violationAlerts(entries: readonly AuditEntry[]): Alert[] {
  const groups = new Map<string, { readonly newest: AuditEntry; times: number }>();
  for (const entry of entries) {
    const key = `${entry.actor} ${keyOf(victimOf(entry))}`;
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { newest: entry, times: 1 });
    else known.times += 1;
  }
  return [...groups.values()].map(({ newest, times }) => {
    const { lineage, payload } = newest;
    return {
      id: `violation ${newest.gateway ?? ''} ${newest.id}`,
      kind: 'violation',
      severity: 'critical',
      title: 'Impersonation',
      detail: `Asked for ${[payload.action, payload.resource].filter(Boolean).join(' ') || 'an action'}: ${newest.reason ?? ''}`,
      at: newest.timestamp,
      times,
      agent: named(lineage.org_id, lineage.team_id, lineage.agent_id),
      victim: victimOf(newest),
      href: entryPath(newest),
      evidence: 'Audit entry',
    };
  });
}

export const victimOf = ({ payload }: Pick<AuditEntry, 'payload'>): AgentName | undefined =>
  named(payload.claimed_org_id, payload.claimed_team_id, payload.claimed_agent_id);

const haltAlert = (entry: AuditEntry): Alert => ({
  id: `halt ${entry.gateway ?? ''} ${entry.id}`,
  kind: 'halt',
  severity: 'warning',
  title: `Halt of ${String(entry.payload.scope ?? 'everything')}`,
  detail: `${entry.reason ?? String(entry.payload.reason ?? '')} – by ${entry.actor}`,
  at: entry.timestamp,
  times: 1,
  href: entryPath(entry),
  evidence: 'Audit entry',
});

export const NEAR = 0.8;

/** Whose budget it is, in a few words. */
export const budgetOwner = ({
  tier,
  org_id,
  team_id,
  agent_id,
}: Pick<Budget, 'tier' | 'org_id' | 'team_id' | 'agent_id'>): string =>
  tier === 'global' ? 'all orgs' : [org_id || '–', team_id, agent_id].filter((part) => part).join(' / ');

function budgetAlerts(budget: Budget): Alert[] {
  return (['daily', 'monthly'] as const).flatMap((period): Alert[] => {
    const { spent_usd: spent, limit_usd: limit, reset } = budget[period];
    if (limit === null || spent < limit * NEAR) return [];
    const isOver = spent >= limit;
    const owner = budgetOwner(budget);
    return [
      {
        id: `budget ${budget.tier} ${owner} ${period} ${reset} ${isOver ? 100 : 80}`,
        kind: 'budget',
        severity: isOver ? 'critical' : 'warning',
        title: `${period === 'daily' ? 'Daily' : 'Monthly'} budget of ${owner} ${isOver ? 'is used up' : 'is 80 % used'}`,
        detail: `${money(spent)} of ${money(limit)} spent.`,
        at: null,
        times: 1,
        agent: budget.tier === 'agent' ? named(budget.org_id, budget.team_id, budget.agent_id) : undefined,
        href: isOver
          ? `/audit${queryOf({ event_type: 'BudgetLimitExceeded', org_id: budget.org_id, agent_id: budget.agent_id })}`
          : `/budgets${queryOf({ org_id: budget.org_id })}`,
        evidence: isOver ? 'Audit entries' : 'Budget',
      },
    ];
  });
}

function limitAlerts({ policy, id, per, key, unit, used, max, resets_at }: LimitRow): Alert[] {
  if (max <= 0 || used < max * NEAR) return [];
  const isOver = used >= max;
  const shown = (value: number): string => (unit === 'usd' ? money(value) : `${value} ${unit}`);
  return [
    {
      id: `limit ${policy} ${id} ${key} ${resets_at ?? ''} ${isOver ? 100 : 80}`,
      kind: 'limit',
      severity: isOver ? 'critical' : 'warning',
      title: `Limit ${id} of ${per} ${key} ${isOver ? 'is reached' : 'is 80 % used'}`,
      detail: `${shown(used)} of ${shown(max)}, by policy ${policy}.`,
      at: null,
      times: 1,
      href: `/audit${queryOf({ cause: 'limit', policy })}`,
      evidence: 'Audit entries',
    },
  ];
}

const reloadAlert = ({ at, reason, problems = [], by }: ReloadError): Alert => ({
  id: `policy ${at}`,
  kind: 'policy',
  severity: 'critical',
  title: 'Policies could not be reloaded',
  detail: `${problems[0] ?? reason}${by === undefined ? '' : ` – by ${by}`}. The previous set stays in force.`,
  at,
  times: 1,
  href: '/policies',
  evidence: 'Policies',
});

function readinessAlerts({ audit, audit_witness: witness, store, database }: Readiness): Alert[] {
  const alert = (id: string, title: string, detail: string, severity: Alert['severity']): Alert => ({
    ...{ id: `audit ${id}`, kind: 'audit', severity, title, detail, at: null, times: 1 },
    href: '/audit?event_type=CheckpointWitnessed',
    evidence: 'Audit log',
  });
  return [
    ...(audit === 'unwritable'
      ? [alert('unwritable', 'The audit log cannot be written', 'Checks are answered but not recorded.', 'critical')]
      : []),
    ...(witness === 'unreachable'
      ? [alert('witness', 'A witness of the audit log does not answer', 'Checks are recorded as ever.', 'warning')]
      : []),
    ...(store === 'unwritable'
      ? [
          alert(
            'store',
            'The data directory cannot be written',
            'Keys, registrations and spend are kept in memory.',
            'critical',
          ),
        ]
      : []),
    ...(database === 'unreachable'
      ? [alert('database', 'The database cannot be reached', 'Checks do not need it; accounts do.', 'warning')]
      : []),
  ];
}

/** The critical first, of these the newest; present ones come first. */
export function alertsOf(sources: Sources): readonly Alert[] {
  const { violations, halts, budgets, limits, reloadError, readiness } = sources;
  const alerts = [
    ...(readiness === undefined ? [] : readinessAlerts(readiness)),
    ...(reloadError === undefined ? [] : [reloadAlert(reloadError)]),
    ...violationAlerts(violations),
    ...halts.map(haltAlert),
    ...budgets.flatMap(budgetAlerts),
    ...limits.flatMap(limitAlerts),
  ];
  const timeOf = ({ at }: Alert): number => (at === null ? Infinity : Date.parse(at));
  return alerts.sort((one, other) => {
    if (one.severity !== other.severity) return one.severity === 'critical' ? -1 : 1;
    const [mine, others] = [timeOf(one), timeOf(other)];
    return mine === others ? 0 : others - mine;
  });
}
