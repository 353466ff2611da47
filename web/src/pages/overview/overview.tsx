/** Is it fine? And where it is not, the way to the rows behind each figure. */
import { useMemo } from 'preact/hooks';
import type { Budget, TopologyStats } from '../../base/api-types.ts';
import { count, measured, money, plural, shortTime } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { model, opsVersion, status } from '../../live/live.ts';
import { isFinished } from '../../live/op.ts';
import { boundOrg, call } from '../../session/session.ts';
import { activeHalts, openAlerts, pendingApprovals } from '../../standing/standing.ts';
import { SelectField } from '../../ui/fields.tsx';
import { Empty, PageHead } from '../../ui/names.tsx';
import { OrgFilter } from '../../ui/org-filter.tsx';
import { useResource } from '../../ui/resource.ts';
import { place, setQuery } from '../../ui/router.ts';
import { isWindow, sumsOf, WINDOW_WORDS, WINDOWS, type Window } from '../../ui/series.ts';
import { Charts, share } from './charts.tsx';
import { AlertsPanel, ApprovalsPanel, HaltsPanel } from './open-panels.tsx';
import { AgentsPanel, OrgsPanel, RulesPanel, SpendersPanel } from './rankings.tsx';
import { readStats, type WindowStats } from './stats.ts';

const RENEW_MS = 10_000;

export function OverviewPage() {
  const { query } = place.value;
  const asked = query.get('window');
  const window: Window = isWindow(asked) ? asked : '1h';
  const orgId = boundOrg() ?? query.get('org_id') ?? '';
  const stats = useResource(`${window} ${orgId}`, () => readStats(window, boundOrg() === null ? orgId : ''), {
    everyMs: RENEW_MS,
    settleMs: 50,
  });
  const fleet = useResource<TopologyStats>(
    `fleet ${orgId}`,
    () => call('GET', `/api/v1/topology/stats${queryOf({ org_id: boundOrg() === null ? orgId : '', per_page: 1 })}`),
    { everyMs: RENEW_MS },
  );
  const budget = useResource<Budget | undefined>('budget', readTopBudget, { everyMs: RENEW_MS });
  return (
    <div class="page wide">
      <PageHead title="Overview" note={<Verdict />}>
        <OrgFilter
          value={query.get('org_id') ?? ''}
          onValue={(value) => setQuery({ org_id: value.trim() })}
          list={model.orgs()}
        />
        <SelectField
          label="Window"
          value={window}
          onValue={(value) => setQuery({ window: value })}
          options={WINDOWS.map((each) => [each, WINDOW_WORDS[each]] as const)}
        />
      </PageHead>
      {stats.error !== '' && <p class="warning">{stats.error}</p>}
      <Tiles stats={stats.data} fleet={fleet.data} budget={budget.data} orgId={orgId} />
      <div class="room">
        {stats.data === undefined ? <Empty>Loading…</Empty> : <ChartsOf stats={stats.data} />}
        <Open />
      </div>
      {stats.data !== undefined && (
        <>
          <div class="panels">
            <RulesPanel stats={stats.data} orgId={orgId} />
            <SpendersPanel stats={stats.data} orgId={orgId} />
            <AgentsPanel stats={stats.data} orgId={orgId} />
            <OrgsPanel stats={stats.data} />
          </div>
          {stats.data.since !== undefined && (
            <p class="hint">
              Figures since {shortTime(stats.data.since)}, when they begin.
              {stats.data.stats.incomplete && ' A gateway has not answered: its part is missing.'}
            </p>
          )}
        </>
      )}
    </div>
  );
}

const ChartsOf = ({ stats }: { readonly stats: WindowStats }) =>
  useMemo(() => <Charts series={stats.series} />, [stats]);

/** The one that all spending counts against: of all orgs, or of the only org that is seen. */
async function readTopBudget(): Promise<Budget | undefined> {
  const { budgets } = await call('GET', '/api/v1/budgets?per_page=1');
  return budgets[0];
}

/** Tells in one sentence whether anything waits for a person. */
function Verdict() {
  const [alerts, approvals, halts] = [openAlerts.value.length, pendingApprovals.value.length, activeHalts.value.length];
  if (status.value === 'waiting') return <span class="verdict bad">The gateway cannot be reached.</span>;
  if (alerts + approvals + halts === 0) return <span class="verdict good">All is well: nothing waits for you.</span>;
  const parts = [
    ...(alerts > 0 ? [plural(alerts, 'alert')] : []),
    ...(approvals > 0 ? [`${plural(approvals, 'request')} for an approval`] : []),
    ...(halts > 0 ? [`${plural(halts, 'halt')} in force`] : []),
  ];
  return <span class={`verdict ${alerts > 0 ? 'bad' : 'wait'}`}>{parts.join(' · ')}</span>;
}

type TilesProps = {
  readonly stats: WindowStats | undefined;
  readonly fleet: TopologyStats | undefined;
  readonly budget: Budget | undefined;
  readonly orgId: string;
};

function Tiles({ stats, fleet, budget, orgId }: TilesProps) {
  opsVersion.value;
  const sums = stats === undefined ? undefined : sumsOf(stats.series.steps);
  const checks = sums === undefined ? 0 : sums.allow + sums.deny + sums.pending;
  const inFlight = model.list({ org_id: boundOrg() === null ? orgId : '' }).filter(({ state }) => !isFinished(state));
  const running = inFlight.filter(({ state }) => state === 'running').length;
  const p99 = stats?.stats.latency_ms?.p99;
  return (
    <div class="tiles">
      <Tile
        title="Running operations"
        href={`/operations${queryOf({ state: 'running', org_id: orgId })}`}
        note={`${count(inFlight.length)} in flight`}
      >
        {count(running)}
      </Tile>
      <Tile
        title="Agents seen"
        href={`/agents${queryOf({ org_id: orgId })}`}
        note={`of ${count(fleet?.agent_count ?? 0)}, last 5 min`}
      >
        {count(fleet?.agents_seen ?? 0)}
      </Tile>
      <Tile
        title="Checks"
        href={`/audit${queryOf({ org_id: orgId })}`}
        note={sums === undefined ? '' : `${count(sums.allow)} allowed`}
      >
        {count(checks)}
      </Tile>
      <Tile
        title="Denied"
        href={`/audit${queryOf({ decision: 'deny', org_id: orgId })}`}
        note={count(sums?.deny ?? 0)}
        tone={checks > 0 && (sums?.deny ?? 0) / checks > 0.2 ? 'bad' : ''}
      >
        {share(sums?.deny ?? 0, checks)}
      </Tile>
      <Tile title="Latency p99" href="/cluster" note={`p50 ${ms(stats?.stats.latency_ms?.p50)}`}>
        {ms(p99)}
      </Tile>
      <SpendTile spendUsd={sums?.spendUsd ?? 0} budget={budget} orgId={orgId} />
    </div>
  );
}

const ms = (value: number | null | undefined): string => (value == null ? '–' : `${measured(value)} ms`);

function SpendTile({
  spendUsd,
  budget,
  orgId,
}: {
  readonly spendUsd: number;
  readonly budget: Budget | undefined;
  readonly orgId: string;
}) {
  const daily = budget?.daily;
  const limit = daily?.limit_usd ?? null;
  const used = daily === undefined || limit === null || limit === 0 ? 0 : daily.spent_usd / limit;
  return (
    <Tile
      title="Spend"
      href={`/budgets${queryOf({ org_id: orgId })}`}
      note={
        daily === undefined
          ? ''
          : limit === null
            ? 'no cap for all orgs'
            : `${money(daily.spent_usd)} of ${money(limit)} today`
      }
      tone={used >= 1 ? 'bad' : used >= 0.8 ? 'wait' : ''}
    >
      {money(spendUsd)}
    </Tile>
  );
}

type TileProps = {
  readonly title: string;
  readonly href: string;
  readonly note: string;
  readonly tone?: '' | 'bad' | 'wait';
  readonly children: string;
};

const Tile = ({ title, href, note, tone = '', children }: TileProps) => (
  <a class={`tile ${tone}`} href={href}>
    <span class="tile-title">{title}</span>
    <span class="tile-value">{children}</span>
    <span class="tile-note">{note}</span>
  </a>
);

function Open() {
  if (openAlerts.value.length + pendingApprovals.value.length + activeHalts.value.length === 0) return null;
  return (
    <div class="waiting-for-you">
      <HaltsPanel />
      <AlertsPanel />
      <ApprovalsPanel />
    </div>
  );
}
