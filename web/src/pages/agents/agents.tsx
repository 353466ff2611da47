/** Agents as a tree: orgs, their teams, and who started whom. */
import { useState } from 'preact/hooks';
import type { AgentName, TreeNode, TreeOrg } from '../../base/api-types.ts';
import { agentName, agentPath, count, plural } from '../../base/format.ts';
import { askHalt } from '../../control/halt-dialog.tsx';
import { boundOrg, can } from '../../session/session.ts';
import { ListNote } from '../../ui/data-table.tsx';
import { TextField } from '../../ui/fields.tsx';
import { Ago, OrgMark, PageHead } from '../../ui/names.tsx';
import { OrgFilter } from '../../ui/org-filter.tsx';
import { pageReader } from '../../ui/read.ts';
import { useEvents, usePages } from '../../ui/resource.ts';
import { place, setQuery } from '../../ui/router.ts';
import { askRegistration } from './registration.tsx';
import { filterTree } from './tree.ts';

const RENEW_MS = 15_000;
const FILTERS = ['team_id', 'agent_id'] as const;
const LABELS = { team_id: 'Team', agent_id: 'Agent' };

export function AgentsPage() {
  const { query } = place.value;
  const orgId = boundOrg() === null ? (query.get('org_id') ?? '').trim() : '';
  const pages = usePages<TreeOrg>(`tree ${orgId}`, pageReader('/api/v1/topology/tree', 'orgs', { org_id: orgId }), {
    perPage: 1_000,
    everyMs: RENEW_MS,
    settleMs: 200,
  });
  useEvents('agent', () => void pages.reload());
  const orgs = filterTree(merged(pages.rows), query.get('team_id') ?? '', query.get('agent_id') ?? '');
  return (
    <div class="page">
      <PageHead title="Agents">
        {can('write') && (
          <button type="button" class="solid" onClick={() => askRegistration(pages.reload)}>
            Register agent
          </button>
        )}
      </PageHead>
      <search class="filters">
        <OrgFilter value={query.get('org_id') ?? ''} onValue={(value) => setQuery({ org_id: value })} />
        {FILTERS.map((name) => (
          <TextField
            key={name}
            label={LABELS[name]}
            type="search"
            placeholder={`Part of the ${LABELS[name].toLowerCase()}’s name`}
            value={query.get(name) ?? ''}
            onValue={(value) => setQuery({ [name]: value })}
          />
        ))}
      </search>
      {orgs.map((org) => (
        <Org key={org.org_id} org={org} />
      ))}
      <div class={orgs.length === 0 ? 'panel' : ''}>
        <ListNote pages={{ ...pages, rows: orgs }} empty={emptyText(query)} />
      </div>
    </div>
  );
}

const emptyText = (query: URLSearchParams): string =>
  [...query.values()].some((value) => value !== '')
    ? 'No agents match the filter.'
    : `No agents yet.${can('write') ? ' Use “Register agent” to add one.' : ''}`;

/** A page may end within an org, which the next page names again. */
function merged(orgs: readonly TreeOrg[]): readonly TreeOrg[] {
  const byId = new Map<string, TreeOrg>();
  for (const org of orgs) {
    const known = byId.get(org.org_id);
    if (known === undefined) byId.set(org.org_id, org);
    else {
      const teams = new Map(known.teams.map((team) => [team.team_id, team]));
      for (const team of org.teams) {
        const before = teams.get(team.team_id);
        teams.set(
          team.team_id,
          before === undefined ? team : { ...before, agents: [...before.agents, ...team.agents] },
        );
      }
      byId.set(org.org_id, { ...known, teams: [...teams.values()] });
    }
  }
  return [...byId.values()];
}

function Org({ org: { org_id: org, teams } }: { readonly org: TreeOrg }) {
  return (
    <section class="panel org" aria-label={`Org ${org || 'none'}`}>
      <header>
        <h2>
          <OrgMark org={org} />
          <bdi>{org || 'Without an org'}</bdi>
        </h2>
        {can('admin') && org !== '' && (
          <button
            type="button"
            class="ghost danger"
            aria-label={`Halt org ${org}`}
            onClick={() => askHalt({ org_id: org })}
          >
            Halt
          </button>
        )}
      </header>
      {teams.map((team) => (
        <Team key={team.team_id} org={org} teamId={team.team_id} agents={team.agents as readonly TreeNode[]} />
      ))}
    </section>
  );
}

type TeamProps = { readonly org: string; readonly teamId: string; readonly agents: readonly TreeNode[] };

const total = (nodes: readonly TreeNode[]): number => nodes.reduce((sum, { children }) => sum + 1 + total(children), 0);
const active = (nodes: readonly TreeNode[]): number =>
  nodes.reduce((sum, { children, active_ops: own }) => sum + own + active(children), 0);

function Team({ org, teamId, agents }: TeamProps) {
  const [isOpen, setOpen] = useState(true);
  const running = active(agents);
  return (
    <details class="team" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <strong>
          <bdi>{teamId}</bdi>
        </strong>
        <span class="hint">
          {plural(total(agents), 'agent')}
          {running > 0 && ` · ${count(running)} in flight`}
        </span>
      </summary>
      <Nodes nodes={agents} />
      {can('admin') && (
        <button
          type="button"
          class="ghost danger team-halt"
          aria-label={`Halt team ${org} / ${teamId}`}
          onClick={() => askHalt({ org_id: org, team_id: teamId })}
        >
          Halt
        </button>
      )}
    </details>
  );
}

const Nodes = ({ nodes }: { readonly nodes: readonly TreeNode[] }) => (
  <ul class="tree">
    {nodes.map((node) => (
      <li key={agentPath(node)}>
        <a href={agentPath(node)} title={agentName(node)}>
          <bdi>{node.agent_id}</bdi>
        </a>
        <span class="hint">
          {node.active_ops > 0 && <b class="in-flight">{count(node.active_ops)} in flight</b>} seen{' '}
          <Ago at={node.last_seen_at} />
        </span>
        {node.children.length > 0 && <Nodes nodes={node.children} />}
        {node.truncated && <a href={agentPath(node)}>More of what it started…</a>}
      </li>
    ))}
  </ul>
);

export type { AgentName };
