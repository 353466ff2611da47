/** Changes made by people and files, over any time: the first question of every incident. */
import type { Change } from '../../base/api-types.ts';
import { nowMs } from '../../base/clock.ts';
import { dateTime, plural, shortTime } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { boundOrg } from '../../session/session.ts';
import { ListNote } from '../../ui/data-table.tsx';
import { SelectField, TimeField } from '../../ui/fields.tsx';
import { Actor, PageHead, Tag } from '../../ui/names.tsx';
import { OrgFilter } from '../../ui/org-filter.tsx';
import { pageReader } from '../../ui/read.ts';
import { usePages } from '../../ui/resource.ts';
import { place, setQuery } from '../../ui/router.ts';
import { ruleLines } from './rule-lines.ts';
import { runsOf } from './runs.ts';

const HOUR_MS = 3_600_000;
const KINDS = ['policy', 'key', 'account', 'halt', 'webhook', 'shadow', 'settings', 'agent'];

/** A day ago, to the hour, so that the question stays the same while it is looked at. */
const dayAgo = (): string => new Date(Math.floor(nowMs() / HOUR_MS - 24) * HOUR_MS).toISOString();

export function ChangesPage() {
  const { query } = place.value;
  const since = query.get('since') ?? dayAgo();
  const until = query.get('until') ?? '';
  const orgId = boundOrg() === null ? (query.get('org_id') ?? '').trim() : '';
  const kind = query.get('kind') ?? '';
  const pages = usePages<Change>(
    `changes ${since} ${until} ${orgId}`,
    pageReader('/api/v1/changes', 'changes', { since, until, org_id: orgId }),
    { settleMs: 200 },
  );
  const rows = pages.rows.filter((change) => kind === '' || change.kind === kind);
  return (
    <div class="page">
      <PageHead
        title="What changed"
        note="What people and files changed: policies, keys, accounts, halts, webhooks, settings and agents."
      />
      <search class="filters">
        <TimeField label="From" value={since} onValue={(value) => setQuery({ since: value })} />
        <TimeField label="To" value={until} onValue={(value) => setQuery({ until: value })} />
        <SelectField
          label="Kind"
          value={kind}
          onValue={(value) => setQuery({ kind: value })}
          options={[['', 'All kinds'], ...KINDS.map((each) => [each, each] as const)]}
        />
        <OrgFilter value={query.get('org_id') ?? ''} onValue={(value) => setQuery({ org_id: value })} />
      </search>
      <div class="panel">
        <ul class="rows">
          {runsOf(rows).map((run) =>
            run.length === 1 ? run.map(changeRow) : <Run key={`run ${run[0]?.audit_id}`} run={run} />,
          )}
        </ul>
        <ListNote pages={{ ...pages, rows }} empty="Nothing was changed in this time." />
      </div>
    </div>
  );
}

const changeRow = (change: Change) => <ChangeRow key={`${change.audit_id} ${change.at}`} change={change} />;

function Run({ run }: { readonly run: readonly Change[] }) {
  const [newest] = run;
  if (newest === undefined) return null;
  return (
    <li class="run">
      <details class="group">
        <summary>
          <Tag>{newest.kind}</Tag> <strong>{plural(run.length, 'change')}</strong>{' '}
          <span class="hint">
            by <bdi>{newest.by}</bdi>, the last {shortTime(newest.at)}: {newest.summary}
          </span>
        </summary>
        <ul class="rows">{run.map(changeRow)}</ul>
      </details>
    </li>
  );
}

function ChangeRow({ change: { at, kind, summary, by, audit_id: id, details } }: { readonly change: Change }) {
  const until = new Date(Date.parse(at) + 1).toISOString();
  return (
    <li>
      <div>
        <p>
          <Tag>{kind}</Tag>{' '}
          <strong>
            <a href={`/audit${queryOf({ since: at, until, entry: id })}`}>{summary}</a>
          </strong>
        </p>
        <ul class="plain-list mono">
          {ruleLines(details).map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
        <p class="hint">
          by <Actor name={by} />
        </p>
      </div>
      <time class="hint nowrap" dateTime={at} title={dateTime(at)}>
        {shortTime(at)}
      </time>
    </li>
  );
}
