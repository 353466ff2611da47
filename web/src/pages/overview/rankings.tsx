/** The leaders of a window: rules that deny, spenders, busy agents, orgs. */
import type { ComponentChildren } from 'preact';
import { count, money } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { AgentLink, Empty, OrgMark, Panel } from '../../ui/names.tsx';
import { setQuery } from '../../ui/router.ts';
import { policyPath } from '../policies/paths.ts';
import { share } from './charts.tsx';
import type { WindowStats } from './stats.ts';

const SHOWN = 8;

type PanelProps = { readonly stats: WindowStats; readonly orgId: string };

/** A row whose part of the largest is a bar behind it. */
const Bar = ({
  part,
  children,
  tone = '',
}: {
  readonly part: number;
  readonly children: ComponentChildren;
  readonly tone?: string;
}) => (
  <li class="bar-row">
    <span class={`bar ${tone}`} style={{ width: `${Math.max(1, part * 100)}%` }} aria-hidden="true" />
    {children}
  </li>
);

const Bars = ({ children }: { readonly children: ComponentChildren }) => <ol class="bars">{children}</ol>;

export function RulesPanel({ stats: { stats }, orgId }: PanelProps) {
  const rules = stats.denies.by_rule;
  const most = rules[0]?.count ?? 1;
  const causes = stats.denies.by_cause.filter(({ cause }) => cause !== 'rule');
  return (
    <Panel title="Top denied rules">
      {rules.length === 0 ? (
        <Empty>No rule has denied anything.</Empty>
      ) : (
        <Bars>
          {rules.slice(0, SHOWN).map(({ policy, rule_id: rule, count: denials }) => (
            <Bar key={`${policy} ${rule}`} part={denials / most} tone="deny">
              <a class="clip" href={policy === null ? '/policies' : policyPath(policy, rule)}>
                {policy === null ? 'no rule, or all others' : `${policy} · ${rule}`}
              </a>
              <a class="number" href={`/audit${queryOf({ decision: 'deny', policy, rule_id: rule, org_id: orgId })}`}>
                {count(denials)} <span class="sr-only">denials in the audit log</span>
              </a>
            </Bar>
          ))}
        </Bars>
      )}
      {causes.length > 0 && (
        <p class="causes">
          {causes.map(({ cause, count: times }) => (
            <a key={cause} class="chip" href={`/audit${queryOf({ decision: 'deny', cause, org_id: orgId })}`}>
              {cause.replaceAll('_', ' ')} <b>{count(times)}</b>
            </a>
          ))}
        </p>
      )}
    </Panel>
  );
}

export function SpendersPanel({ stats, orgId }: PanelProps) {
  const { spenders } = stats.stats.top;
  const most = spenders[0]?.spend_usd || 1;
  return (
    <Panel title="Top spenders" more={<a href={`/budgets${queryOf({ org_id: orgId })}`}>Budgets</a>}>
      {spenders.length === 0 ? (
        <Empty>Nobody has spent anything.</Empty>
      ) : (
        <Bars>
          {spenders.slice(0, SHOWN).map(({ spend_usd: spend, ...agent }) => (
            <Bar key={JSON.stringify(agent)} part={spend / most} tone="spend">
              <AgentLink agent={agent} />
              <span class="number">{money(spend)}</span>
            </Bar>
          ))}
        </Bars>
      )}
    </Panel>
  );
}

export function AgentsPanel({ stats }: PanelProps) {
  const { agents } = stats.stats.top;
  const most = Math.max(1, ...agents.map(({ checks }) => checks));
  return (
    <Panel title="Busiest agents">
      {agents.length === 0 ? (
        <Empty>No agent has asked for anything.</Empty>
      ) : (
        <Bars>
          {agents.slice(0, SHOWN).map(({ checks, denies, ...agent }) => (
            <Bar key={JSON.stringify(agent)} part={checks / most}>
              <AgentLink agent={agent} />
              <span class="number">
                {count(checks)} checks
                {denies > 0 && (
                  <a
                    class="bad"
                    href={`/audit${queryOf({ decision: 'deny', org_id: agent.org_id, team_id: agent.team_id, agent_id: agent.agent_id })}`}
                  >
                    {count(denies)} denied
                  </a>
                )}
              </span>
            </Bar>
          ))}
        </Bars>
      )}
    </Panel>
  );
}

export function OrgsPanel({ stats }: { readonly stats: WindowStats }) {
  const orgs = [...stats.stats.orgs].sort((one, other) => other.allow + other.deny - one.allow - one.deny);
  if (orgs.length < 2) return null;
  return (
    <Panel title="Orgs">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Org</th>
            <th scope="col" class="number">
              Checks
            </th>
            <th scope="col" class="number">
              Denied
            </th>
            <th scope="col" class="number">
              Spend
            </th>
          </tr>
        </thead>
        <tbody>
          {orgs.slice(0, SHOWN).map(({ org_id: org, allow, deny, pending, spend_usd: spend }) => (
            <tr key={org}>
              <th scope="row">
                <button type="button" class="link" onClick={() => setQuery({ org_id: org })}>
                  <OrgMark org={org} />
                  <bdi>{org || '–'}</bdi>
                </button>
              </th>
              <td class="number">{count(allow + deny + pending)}</td>
              <td class="number">{share(deny, allow + deny + pending)}</td>
              <td class="number">{money(spend)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
