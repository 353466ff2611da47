/** The gateways that act as one, and how each of them is. */
import type { Member, Readiness } from '../../base/api-types.ts';
import { count, money, shortId } from '../../base/format.ts';
import { call, can } from '../../session/session.ts';
import { readiness } from '../../standing/standing.ts';
import { DataTable } from '../../ui/data-table.tsx';
import { ask } from '../../ui/dialog.tsx';
import { Ago, Empty, Facts, PageHead, Panel, State } from '../../ui/names.tsx';
import { notify } from '../../ui/notices.tsx';
import { useResource } from '../../ui/resource.ts';

const RENEW_MS = 5_000;

export function ClusterPage() {
  const { data, error, status, reload } = useResource<readonly Member[]>(
    'cluster',
    async () => (await call('GET', '/api/v1/cluster')).members,
    { everyMs: RENEW_MS },
  );
  const isAlone = data?.length === 0 || status === 404 || status === 409;
  return (
    <div class="page">
      <PageHead
        title="Cluster"
        note={isAlone ? 'This gateway runs alone. With SVC_CLUSTER=on, several act as one.' : undefined}
      />
      {readiness.value !== undefined && <Health readiness={readiness.value} />}
      {data !== undefined && data.length > 0 && (
        <div class="panel scroll">
          <Members members={data} onDone={reload} />
        </div>
      )}
      {data === undefined && !isAlone && <Empty>{error || 'Loading…'}</Empty>}
    </div>
  );
}

const Health = ({
  readiness: { status, audit, audit_witness: witness, database, store, bus },
}: {
  readonly readiness: Readiness;
}) => (
  <Panel title="This gateway">
    <Facts
      rows={[
        ['Ready', <State key="ready" word={status === 'ready' ? 'active' : 'warning'} title={status} />],
        ['Audit log', audit],
        ['Witness', witness ?? 'nothing to report'],
        ['Database', database.replaceAll('_', ' ')],
        store !== undefined && ['Data folder', store],
        bus !== undefined && ['Bus', bus],
      ]}
    />
  </Panel>
);

const Members = ({
  members,
  onDone,
}: {
  readonly members: readonly Member[];
  readonly onDone: () => Promise<void>;
}) => (
  <DataTable
    label="Gateways"
    rows={members}
    keyOf={({ name, run }) => `${name} ${run}`}
    classOf={({ state }) => (state === 'retired' ? 'finished' : '')}
    columns={[
      { title: 'Gateway', isName: true, cell: ({ name }) => <strong>{name}</strong> },
      { title: 'State', cell: ({ state }) => <State word={state} /> },
      { title: 'Version', cell: ({ version }) => version },
      {
        title: 'Policies',
        class: 'mono',
        cell: ({ policy_version: version }) => (version === null ? '–' : shortId(version)),
      },
      { title: 'Audit head', class: 'number', cell: ({ audit_head: head }) => (head === null ? '–' : count(head.id)) },
      { title: 'Bus', cell: ({ bus }) => bus?.replaceAll('_', ' ') ?? '–' },
      { title: 'Clock', class: 'number', cell: ({ skew_ms: skew }) => `${skew > 0 ? '+' : ''}${count(skew)} ms` },
      { title: 'Unconfirmed', class: 'number', cell: ({ unconfirmed }) => count(unconfirmed) },
      { title: 'Granted', class: 'number', cell: ({ stranded_usd: usd }) => money(usd) },
      { title: 'Lease', class: 'nowrap', cell: ({ lease_until: until }) => <Ago at={until} /> },
      { title: 'Control', class: 'row-actions', cell: (member) => <Forget member={member} onDone={onDone} /> },
    ]}
  />
);

const Forget = ({ member, onDone }: { readonly member: Member; readonly onDone: () => Promise<void> }) =>
  can('admin') && member.state === 'suspect' ? (
    <button
      type="button"
      class="ghost danger"
      aria-label={`Forget ${member.name}`}
      onClick={() =>
        ask({
          title: 'Forget this gateway?',
          text: 'Only where it will never come back: what it was granted and has not reported counts as spent.',
          subject: member.name,
          confirm: 'Forget',
          onConfirm: async () => {
            const { unspent_usd: unspent } = await call('POST', '/api/v1/cluster/forget', { name: member.name });
            notify(`${member.name} is forgotten; ${money(unspent)} of its grants count as spent.`);
            await onDone();
          },
        })
      }
    >
      Forget
    </button>
  ) : null;
