/** Spending, reservations, the rest, and the end of each period; the nearest to its end first. */
import type { Budget } from '../../base/api-types.ts';
import { dateTime, money, plural } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { boundOrg } from '../../session/session.ts';
import { budgetOwner, NEAR } from '../../standing/alert.ts';
import { Chart } from '../../ui/chart.tsx';
import { DataTable } from '../../ui/data-table.tsx';
import { SelectField } from '../../ui/fields.tsx';
import { AgentLink, Empty, OrgMark, PageHead, Tag } from '../../ui/names.tsx';
import { OrgFilter } from '../../ui/org-filter.tsx';
import { readAll } from '../../ui/read.ts';
import { useResource } from '../../ui/resource.ts';
import { place, setQuery } from '../../ui/router.ts';
import { isWindow, sumsOf, WINDOW_WORDS, WINDOWS, type Window } from '../../ui/series.ts';
import { readStats } from '../overview/stats.ts';
import { Gauge } from './gauge.tsx';
import { LimitsPanel } from './limits.tsx';
import { byNearest, nearestOf } from './projection.ts';

const RENEW_MS = 10_000;
/** More than that nobody reads. */
const MAX_SHOWN = 200;
const TIERS = ['global', 'org', 'team', 'agent'];

export function BudgetsPage() {
  const { query } = place.value;
  const orgId = boundOrg() === null ? (query.get('org_id') ?? '').trim() : '';
  const { data, error } = useResource<readonly Budget[]>(
    `budgets ${orgId}`,
    () => readAll<Budget>('/api/v1/budgets', 'budgets', { org_id: orgId }),
    { everyMs: RENEW_MS, settleMs: 200 },
  );
  const tier = query.get('tier') ?? '';
  const isNear = query.get('show') === 'near';
  const found = byNearest(data ?? []).filter(
    (row) => (tier === '' || row.tier === tier) && (!isNear || nearestOf(row) >= NEAR),
  );
  return (
    <div class="page">
      <PageHead title="Budgets" note={resetsOf(data)} />
      <SpendChart orgId={orgId} />
      <LimitsPanel orgId={orgId} />
      <search class="filters">
        <OrgFilter value={query.get('org_id') ?? ''} onValue={(value) => setQuery({ org_id: value })} />
        <SelectField
          label="Tier"
          value={tier}
          onValue={(value) => setQuery({ tier: value })}
          options={[['', 'All tiers'], ...TIERS.map((each) => [each, each] as const)]}
        />
        <SelectField
          label="Show"
          value={isNear ? 'near' : ''}
          onValue={(value) => setQuery({ show: value })}
          options={[
            ['', 'All budgets'],
            ['near', '80 % used or more'],
          ]}
        />
      </search>
      <div class="panel scroll">
        {found.length > 0 && <BudgetTable rows={found.slice(0, MAX_SHOWN)} />}
        {found.length > MAX_SHOWN && (
          <p class="empty">and {plural(found.length - MAX_SHOWN, 'budget')} that are farther from their end.</p>
        )}
        {found.length === 0 && <Empty>{data === undefined ? error || 'Loading…' : emptyText(orgId, isNear)}</Empty>}
      </div>
    </div>
  );
}

function emptyText(orgId: string, isNear: boolean): string {
  if (isNear) return 'No budget is 80 % used or more.';
  return orgId === ''
    ? 'No spending yet. Budgets appear here when agents report costs.'
    : 'No budgets match. Enter the full name of the org.';
}

const resetsOf = (budgets: readonly Budget[] | undefined): string =>
  budgets?.[0] === undefined
    ? 'Nearest to its end first.'
    : `Nearest to its end first. Daily budgets reset ${dateTime(budgets[0].daily.reset)}, monthly ones ${dateTime(budgets[0].monthly.reset)}.`;

const BudgetTable = ({ rows }: { readonly rows: readonly Budget[] }) => (
  <DataTable
    label="Budgets"
    rows={rows}
    keyOf={(row) => `${row.tier} ${budgetOwner(row)}`}
    columns={[
      { title: 'Applies to', isName: true, cell: (row) => <Owner row={row} /> },
      { title: 'Tier', cell: ({ tier }) => <Tag>{tier}</Tag> },
      {
        title: 'Today',
        class: 'gauge-cell',
        cell: (row) => <Gauge label="Today" period={row.daily} reserved={row.reserved_usd} isLabelHidden />,
      },
      {
        title: 'This month',
        class: 'gauge-cell',
        cell: (row) => <Gauge label="This month" period={row.monthly} reserved={row.reserved_usd} isLabelHidden />,
      },
      {
        title: 'Reserved',
        class: 'number',
        cell: ({ reserved_usd: reserved }) => (reserved > 0 ? money(reserved) : ''),
      },
    ]}
  />
);

function Owner({ row }: { readonly row: Budget }) {
  if (row.tier === 'agent') return <AgentLink agent={row} />;
  const href =
    row.tier === 'global' ? '/operations' : `/operations${queryOf({ org_id: row.org_id, team_id: row.team_id })}`;
  return (
    <a class="agent" href={href}>
      <OrgMark org={row.org_id} />
      <bdi>{row.tier === 'global' ? 'All orgs' : budgetOwner(row)}</bdi>
    </a>
  );
}

function SpendChart({ orgId }: { readonly orgId: string }) {
  const asked = place.value.query.get('window');
  const window: Window = isWindow(asked) ? asked : '24h';
  const { data } = useResource(`spend ${window} ${orgId}`, () => readStats(window, orgId), {
    everyMs: RENEW_MS,
    settleMs: 200,
  });
  const steps = data?.series.steps ?? [];
  const sum = sumsOf(steps).spendUsd;
  return (
    <div class="chart-with-control">
      <Chart
        title="Spend"
        atMs={steps.map(({ atMs }) => atMs)}
        format={money}
        figure={money(sum)}
        lines={[{ label: 'spend', colour: '--chart-3', kind: 'bars', values: steps.map(({ spendUsd }) => spendUsd) }]}
        empty={data !== undefined && sum === 0 ? 'No spend in this window' : undefined}
      />
      <SelectField
        label="Window"
        value={window}
        onValue={(value) => setQuery({ window: value })}
        options={WINDOWS.map((each) => [each, WINDOW_WORDS[each]] as const)}
      />
    </div>
  );
}
