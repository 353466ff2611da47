/** The page of an agent: its present work, its spending, its denials, and its family. */
import type { Agent, AgentName, AuditEntry, Budget, Lineage } from '../../base/api-types.ts';
import { agentName, count, money, shortTime } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { askHalt } from '../../control/halt-dialog.tsx';
import { call, can } from '../../session/session.ts';
import { entryPath } from '../../standing/alert.ts';
import { AgentLink, Ago, Empty, Facts, PageHead, Panel, Parts } from '../../ui/names.tsx';
import { useResource } from '../../ui/resource.ts';
import { navigate } from '../../ui/router.ts';
import { Gauge } from '../budgets/gauge.tsx';
import { OpTable } from '../operations/op-table.tsx';
import { askRemoval, askRotation, findAgent } from './registration.tsx';
import { AgentSpend } from './spend.tsx';

const RENEW_MS = 10_000;

export function AgentPage({ agent }: { readonly agent: AgentName }) {
  const known = useResource<Agent | undefined>('agent', () => findAgent(agent), { everyMs: RENEW_MS });
  const isGone = known.data === undefined && known.status === 200;
  return (
    <div class="page">
      <PageHead
        title={<Parts text={agentName(agent)} />}
        note={isGone ? 'Not registered: its checks are denied.' : known.error || undefined}
      >
        {can('admin') && (
          <button type="button" class="danger" onClick={() => askHalt(agent)}>
            Halt
          </button>
        )}
        {can('write') && known.data !== undefined && (
          <>
            <button type="button" onClick={() => askRotation(agent)}>
              New token
            </button>
            <button
              type="button"
              class="danger"
              onClick={() => askRemoval(agent, known.data?.active_ops ?? 0, () => navigate('/agents'))}
            >
              Remove
            </button>
          </>
        )}
      </PageHead>
      <OpTable
        filter={{ org_id: agent.org_id ?? '', team_id: agent.team_id, agent_id: agent.agent_id }}
        label="Operations of this agent"
      />
      <div class="panels">
        <AgentSpend agent={agent} />
        <BudgetPanel agent={agent} />
        <Denials agent={agent} />
        <Family agent={agent} known={known.data} />
      </div>
    </div>
  );
}

async function readBudget(agent: AgentName): Promise<Budget | undefined> {
  let cursor: string | null = null;
  do {
    const page: { budgets: readonly Budget[]; next_cursor: string | null } = await call(
      'GET',
      `/api/v1/budgets${queryOf({ org_id: agent.org_id, per_page: 1_000, cursor })}`,
    );
    const own = page.budgets.find(
      ({ tier, org_id, team_id, agent_id }) =>
        tier === 'agent' &&
        (org_id ?? '') === (agent.org_id ?? '') &&
        team_id === agent.team_id &&
        agent_id === agent.agent_id,
    );
    if (own !== undefined) return own;
    cursor = page.next_cursor;
  } while (cursor !== null);
  return undefined;
}

function BudgetPanel({ agent }: { readonly agent: AgentName }) {
  const { data, error, status } = useResource('budget', () => readBudget(agent), { everyMs: RENEW_MS });
  return (
    <Panel title="Budget" more={<a href={`/budgets${queryOf({ org_id: agent.org_id })}`}>All budgets</a>}>
      {data === undefined ? (
        <Empty>{error || (status === 200 ? 'It has not spent anything.' : 'Loading…')}</Empty>
      ) : (
        <div class="gauges">
          <Gauge label="Today" period={data.daily} reserved={data.reserved_usd} />
          <Gauge label="This month" period={data.monthly} reserved={data.reserved_usd} />
          {data.reserved_usd > 0 && <p class="hint">{money(data.reserved_usd)} reserved for what runs</p>}
        </div>
      )}
    </Panel>
  );
}

function Denials({ agent }: { readonly agent: AgentName }) {
  const query = { ...agent, decision: 'deny' };
  const { data, error } = useResource<readonly AuditEntry[]>(
    'denials',
    async () => (await call('GET', `/api/v1/logs${queryOf({ ...query, per_page: 8 })}`)).entries,
    { everyMs: RENEW_MS },
  );
  return (
    <Panel title="Denied of late" more={<a href={`/audit${queryOf(query)}`}>All denials</a>}>
      {data === undefined || data.length === 0 ? (
        <Empty>{error || (data === undefined ? 'Loading…' : 'Nothing was denied.')}</Empty>
      ) : (
        <ul class="rows">
          {data.map((entry) => (
            <li key={entry.id}>
              <div>
                <a href={entryPath(entry)}>
                  <span class="action">{String(entry.payload.action ?? entry.event_type)}</span>{' '}
                  <bdi class="mono">{String(entry.payload.resource ?? '')}</bdi>
                </a>
                <p class="hint">{entry.reason}</p>
              </div>
              <span class="hint nowrap">
                <Ago at={entry.timestamp} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

async function readLineage(agent: AgentName): Promise<Lineage | undefined> {
  const { lineages } = await call(
    'GET',
    `/api/v1/topology/lineage/${encodeURIComponent(agent.agent_id)}${queryOf({ org_id: agent.org_id, per_page: 1_000 })}`,
  );
  return (lineages as readonly Lineage[]).find(
    (each) => each.agent.team_id === agent.team_id && each.agent.org_id === (agent.org_id ?? ''),
  );
}

const MAX_CHILDREN = 30;

function Family({ agent, known }: { readonly agent: AgentName; readonly known: Agent | undefined }) {
  const { data } = useResource('lineage', () => readLineage(agent));
  const ancestors = data?.ancestors ?? [];
  const descendants = data?.descendants ?? [];
  return (
    <Panel title="Family">
      <Facts
        rows={[
          ['Registered', known === undefined ? '–' : shortTime(known.registered_at)],
          ['Last seen', known === undefined ? '–' : <Ago key="seen" at={known.last_seen_at} />],
          [
            'Started by',
            ancestors.length === 0
              ? 'nobody: it is the first'
              : ancestors.map((each) => (
                  <p key={agentName(each)}>
                    <AgentLink agent={each} />
                  </p>
                )),
          ],
          [
            'Started',
            descendants.length === 0 ? (
              'none'
            ) : (
              <>
                {descendants.slice(0, MAX_CHILDREN).map((each) => (
                  <p key={agentName(each)} style={{ paddingLeft: `${(each.depth - 1) * 14}px` }}>
                    <AgentLink agent={each} />
                  </p>
                ))}
                {descendants.length > MAX_CHILDREN && (
                  <p class="hint">and {count(descendants.length - MAX_CHILDREN)} more</p>
                )}
              </>
            ),
          ],
        ]}
      />
    </Panel>
  );
}
