/** What people and files changed, over any time: the first question of every incident. */
import type { AuditEntry } from '../../base/api-types.ts';
import { nowMs } from '../../base/clock.ts';
import { dateTime, shortTime } from '../../base/format.ts';
import { Problem, queryOf } from '../../base/request.ts';
import { boundOrg, call } from '../../session/session.ts';
import { entryPath } from '../../standing/alert.ts';
import { ListNote } from '../../ui/data-table.tsx';
import { SelectField, TextField, TimeField } from '../../ui/fields.tsx';
import { Actor, PageHead, Tag } from '../../ui/names.tsx';
import { type Page, usePages } from '../../ui/resource.ts';
import { place, setQuery } from '../../ui/router.ts';
import { type Change, changeOf, EVENTS_OF_CHANGE } from './change.ts';

const DAY_MS = 24 * 3_600_000;
const KINDS = ['policy', 'key', 'account', 'halt', 'webhook', 'shadow', 'settings', 'agent'];

/** An older gateway has no list of changes, but its audit log knows most of them. */
async function fromLog(since: string, until: string, orgId: string, perPage: number): Promise<Page<Change>> {
  const pages = await Promise.all(
    EVENTS_OF_CHANGE.map((event_type) =>
      call('GET', `/api/v1/logs${queryOf({ event_type, since, until, org_id: orgId, per_page: perPage })}`),
    ),
  );
  const rows = pages
    .flatMap(({ entries }: { entries: readonly AuditEntry[] }) => entries.map(changeOf))
    .sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
  return { rows, next: null, whole: {} };
}

const reader =
  (since: string, until: string, orgId: string) =>
  async (cursor: string | undefined, perPage: number): Promise<Page<Change>> => {
    try {
      const whole = await call(
        'GET',
        `/api/v1/changes${queryOf({ since, until, org_id: orgId, per_page: perPage, cursor })}`,
      );
      return { rows: whole.changes, next: whole.next_cursor, whole };
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status !== 404) throw problem;
      return fromLog(since, until, orgId, perPage);
    }
  };

export function ChangesPage() {
  const { query } = place.value;
  // To the hour, so that the question stays the same while it is looked at.
  const since = query.get('since') ?? new Date(Math.floor((nowMs() - DAY_MS) / 3_600_000) * 3_600_000).toISOString();
  const until = query.get('until') ?? '';
  const orgId = boundOrg() === null ? (query.get('org_id') ?? '') : '';
  const kind = query.get('kind') ?? '';
  const pages = usePages<Change>(`changes ${since} ${until} ${orgId}`, reader(since, until, orgId), { settleMs: 200 });
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
        {boundOrg() === null && (
          <TextField
            label="Org"
            type="search"
            placeholder="All orgs"
            value={orgId}
            onValue={(value) => setQuery({ org_id: value.trim() })}
          />
        )}
      </search>
      <div class="panel">
        <ul class="rows">
          {rows.map((change) => (
            <ChangeRow key={`${change.at} ${change.kind} ${change.audit_id} ${change.summary}`} change={change} />
          ))}
        </ul>
        <ListNote pages={{ ...pages, rows }} empty="Nothing was changed in this time." />
      </div>
    </div>
  );
}

/** By-rule lines of a policy, or whatever else there is to read. */
function detailLines(details: unknown): readonly string[] {
  const changes = (details as { changes?: unknown } | null)?.changes;
  if (!Array.isArray(changes)) return [];
  return changes
    .slice(0, 20)
    .map((each: Record<string, unknown>) =>
      [
        each.kind,
        [each.document ?? each.name, each.rule_id].filter(Boolean).join(' · '),
        each.before !== undefined && each.after !== undefined ? `${String(each.before)} → ${String(each.after)}` : '',
      ]
        .filter(Boolean)
        .join(' '),
    );
}

function ChangeRow({ change: { at, kind, summary, by, audit_id: id, details, event } }: { readonly change: Change }) {
  const href =
    id === null
      ? undefined
      : event === undefined
        ? `/audit${queryOf({ since: at, until: new Date(Date.parse(at) + 1_000).toISOString(), entry: id })}`
        : entryPath({ id, event_type: event, timestamp: at });
  const lines = detailLines(details);
  return (
    <li>
      <div>
        <p>
          <Tag>{kind}</Tag> <strong>{href === undefined ? summary : <a href={href}>{summary}</a>}</strong>
        </p>
        {lines.length > 0 && (
          <ul class="plain-list mono">
            {lines.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        )}
        <p class="hint">
          by <Actor name={by ?? 'gateway'} />
        </p>
      </div>
      <time class="hint nowrap" dateTime={at} title={dateTime(at)}>
        {shortTime(at)}
      </time>
    </li>
  );
}
