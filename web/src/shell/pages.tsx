/** The pages by their paths, in the order of the navigation. */
import type { ComponentChildren } from 'preact';
import { AgentPage } from '../pages/agents/agent.tsx';
import { AgentsPage } from '../pages/agents/agents.tsx';
import { AlertsPage } from '../pages/alerts/alerts.tsx';
import { ApprovalsPage } from '../pages/approvals/approvals.tsx';
import { AuditPage } from '../pages/audit/audit.tsx';
import { BudgetsPage } from '../pages/budgets/budgets.tsx';
import { ChangesPage } from '../pages/changes/changes.tsx';
import { ClusterPage } from '../pages/cluster/cluster.tsx';
import { KeysPage } from '../pages/keys/keys.tsx';
import { OperationPage } from '../pages/operations/operation.tsx';
import { OperationsPage } from '../pages/operations/operations.tsx';
import { OverviewPage } from '../pages/overview/overview.tsx';
import { PeoplePage } from '../pages/people/people.tsx';
import { PoliciesPage } from '../pages/policies/policies.tsx';
import { WebhooksPage } from '../pages/webhooks/webhooks.tsx';
import { isCluster, openAlerts, pendingApprovals } from '../standing/standing.ts';
import { matchPath, type Params } from '../ui/router.ts';

export type PageRow = {
  readonly title: string;
  /** The first leads there; the others are of one thing. */
  readonly paths: readonly string[];
  readonly icon: string;
  readonly render: (params: Params) => ComponentChildren;
  /** Whether its link is in the navigation. */
  readonly isLinked?: () => boolean;
  /** Counts the items that wait there. */
  readonly waiting?: () => number;
  /** Begins a group. */
  readonly isFirst?: boolean;
};

/** Icons are paths on a grid of 20 by 20. */
export const PAGES: readonly PageRow[] = [
  { title: 'Overview', paths: ['/'], icon: 'M3 11l7-7 7 7M5 9.5V17h10V9.5', render: () => <OverviewPage /> },
  {
    title: 'Operations',
    paths: ['/operations', '/operations/:id'],
    icon: 'M3 5h14M3 10h9M3 15h12',
    render: ({ id }) => (id === undefined ? <OperationsPage /> : <OperationPage key={id} id={id} />),
  },
  {
    title: 'Approvals',
    paths: ['/approvals', '/approvals/:id'],
    icon: 'M4 10.5l4 4 8-9',
    render: ({ id }) => <ApprovalsPage id={id} />,
    waiting: () => pendingApprovals.value.length,
  },
  {
    title: 'Alerts',
    paths: ['/alerts'],
    icon: 'M10 3l8 14H2zM10 8v4M10 14.5v.5',
    render: () => <AlertsPage />,
    waiting: () => openAlerts.value.length,
  },
  {
    title: 'Agents',
    paths: ['/agents', '/agents/:org/:team/:agent'],
    icon: 'M10 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 17c0-3 2.7-5 6-5s6 2 6 5',
    render: ({ org, team, agent }) =>
      agent === undefined ? (
        <AgentsPage />
      ) : (
        <AgentPage
          key={`${org}/${team}/${agent}`}
          agent={{ org_id: org === '-' ? '' : (org ?? ''), team_id: team ?? '', agent_id: agent }}
        />
      ),
  },
  {
    title: 'Policies',
    paths: ['/policies'],
    icon: 'M10 3l6 2.5V10c0 4-2.7 6-6 7-3.3-1-6-3-6-7V5.5z',
    render: () => <PoliciesPage />,
    isFirst: true,
  },
  { title: 'Audit', paths: ['/audit'], icon: 'M5 3h10v14H5zM8 7h4M8 10h4M8 13h2', render: () => <AuditPage /> },
  { title: 'Budgets', paths: ['/budgets'], icon: 'M3 17h14M5 14v-4M10 14V5M15 14V8', render: () => <BudgetsPage /> },
  {
    title: 'Keys',
    paths: ['/keys'],
    icon: 'M13 4a4 4 0 1 1-3.5 6L4 15.5V17h3v-2h2v-2l1.5-1.5',
    render: () => <KeysPage />,
    isFirst: true,
  },
  {
    title: 'People',
    paths: ['/people'],
    icon: 'M7.5 10a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2.5 16c0-2.5 2.2-4 5-4s5 1.5 5 4M13 5.5a2.5 2.5 0 0 1 0 4.6M14 12.2c2 .4 3.5 1.7 3.5 3.8',
    render: () => <PeoplePage />,
  },
  { title: 'Webhooks', paths: ['/webhooks'], icon: 'M4 7h9l-3-3M16 13H7l3 3', render: () => <WebhooksPage /> },
  {
    title: 'Cluster',
    paths: ['/cluster'],
    icon: 'M10 6.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM4.5 17a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM15.5 17a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM9 6.5L5.5 13M11 6.5l3.5 6.5M6.5 15h7',
    render: () => <ClusterPage />,
    isLinked: () => isCluster.value,
  },
  {
    title: 'Changes',
    paths: ['/changes'],
    icon: 'M4 10a6 6 0 1 1 2 4.5M4 10l-1.5-2M4 10l2.3-1.3M10 7v3.5l2 1.5',
    render: () => <ChangesPage />,
    isLinked: () => false,
  },
];

export function pageAt(path: string): { readonly page: PageRow; readonly params: Params } | undefined {
  for (const page of PAGES)
    for (const pattern of page.paths) {
      const params = matchPath(pattern, path);
      if (params !== undefined) return { page, params };
    }
  return undefined;
}
