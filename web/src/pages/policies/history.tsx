/** The sets of policies that were in force, and what each of them changed. */
import type { PolicyChange, PolicyVersion } from '../../base/api-types.ts';
import { dateTime, plural } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { call } from '../../session/session.ts';
import { DataTable, ListNote } from '../../ui/data-table.tsx';
import { Actor, Ago, Empty, Panel, Tag } from '../../ui/names.tsx';
import { pageReader } from '../../ui/read.ts';
import { usePages, useResource } from '../../ui/resource.ts';
import { changedKeys } from './changed-keys.ts';

/** `inForce` has the list read again when it is another. */
export function HistoryPanel({ inForce, chosen }: { readonly inForce: string; readonly chosen: string | null }) {
  const pages = usePages<PolicyVersion>(`versions ${inForce}`, pageReader('/api/v1/policies/versions', 'versions'));
  if (pages.status === 403) return null; // it is of all orgs
  const at = pages.rows.findIndex(({ version }) => version === chosen);
  const shown = pages.rows[at];
  const before = pages.rows.slice(at + 1).find(({ state }) => state !== 'shadow');
  return (
    <Panel title="History">
      {pages.rows.length > 0 && (
        <DataTable
          label="Sets of policies"
          rows={pages.rows}
          keyOf={({ version }) => version}
          columns={[
            {
              title: 'Version',
              isName: true,
              cell: (row) => <VersionLink row={row} isChosen={row.version === chosen} />,
            },
            { title: 'State', cell: ({ state }) => <Tag>{STATES[state]}</Tag> },
            { title: 'Since', cell: ({ since }) => <Ago at={since} /> },
            { title: 'Changed by', cell: ({ by }) => <Actor name={by} /> },
            { title: 'Rules', class: 'number', cell: ({ rules }) => rules },
          ]}
        />
      )}
      <ListNote pages={pages} empty="No set of policies is kept yet." />
      {shown !== undefined && <Diff key={shown.version} shown={shown} before={before} />}
    </Panel>
  );
}

const STATES: Readonly<Record<PolicyVersion['state'], string>> = {
  in_force: 'in force',
  shadow: 'shadow',
  past: 'past',
};

const VersionLink = ({ row: { version }, isChosen }: { readonly row: PolicyVersion; readonly isChosen: boolean }) => (
  <a
    class="mono"
    href={`/policies${queryOf({ version: isChosen ? '' : version })}`}
    aria-expanded={isChosen}
    title={version}
  >
    {version.slice(0, 12)}
  </a>
);

type DiffProps = { readonly shown: PolicyVersion; readonly before: PolicyVersion | undefined };

function Diff({ shown, before }: DiffProps) {
  const from = before?.version;
  const { data, error } = useResource<readonly PolicyChange[]>(
    `diff ${from} ${shown.version}`,
    async () => (await call('GET', `/api/v1/policies/diff${queryOf({ from, to: shown.version })}`)).changes,
    { isOff: from === undefined },
  );
  return (
    <section class="diff" aria-label={`Changes of ${shown.version.slice(0, 12)}`}>
      <h3>
        {data === undefined ? 'Changes' : plural(data.length, 'change')} since{' '}
        {before === undefined ? 'the beginning' : <code title={before.version}>{before.version.slice(0, 12)}</code>}{' '}
        <span class="hint">
          by <Actor name={shown.by} />, {dateTime(shown.since)}
        </span>
      </h3>
      {from === undefined ? (
        <Empty>No older set is kept to compare it with.</Empty>
      ) : data === undefined ? (
        <Empty>{error || 'Loading…'}</Empty>
      ) : data.length === 0 ? (
        <Empty>They do not differ by any rule.</Empty>
      ) : (
        <ul class="rows">
          {data.map((change) => (
            <ChangedRule key={`${change.document} ${change.rule_id}`} change={change} />
          ))}
        </ul>
      )}
    </section>
  );
}

const ChangedRule = ({ change }: { readonly change: PolicyChange }) => (
  <li>
    <div>
      <p>
        <Tag>{change.kind}</Tag>{' '}
        <strong class="mono">
          <bdi>{change.document}</bdi>
          {change.rule_id !== null && (
            <>
              {' '}
              · <bdi>{change.rule_id}</bdi>
            </>
          )}
        </strong>{' '}
        <span class="hint">{change.scope}</span>
      </p>
      <dl class="changed-keys mono">
        {changedKeys(change).map(({ key, before, after }) => (
          <div key={key}>
            <dt>{key}</dt>
            {before !== undefined && (
              <dd>
                <del>{before}</del>
              </dd>
            )}
            {after !== undefined && (
              <dd>
                <ins>{after}</ins>
              </dd>
            )}
          </div>
        ))}
      </dl>
    </div>
  </li>
);
