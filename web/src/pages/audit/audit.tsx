/** The audit log, newest first, and as it grows. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { AUDIT_EVENTS } from '../../../../src/core/audit/audit.ts';
import { DECISION_CAUSES } from '../../../../src/core/check/cause.ts';
import type { AuditEntry } from '../../base/api-types.ts';
import { count, ZONE } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { boundOrg } from '../../session/session.ts';
import { readiness } from '../../standing/standing.ts';
import { Check, SelectField, TextField, TimeField } from '../../ui/fields.tsx';
import { useHold } from '../../ui/hold.ts';
import { useMedia } from '../../ui/media.ts';
import { Empty, PageHead } from '../../ui/names.tsx';
import { OrgFilter } from '../../ui/org-filter.tsx';
import { pageReader } from '../../ui/read.ts';
import { type Pages, usePages } from '../../ui/resource.ts';
import { place, setQuery } from '../../ui/router.ts';
import { EntryCard } from './entry-card.tsx';

import { ExportButton } from './export.tsx';
import { chainOf } from './sentence.ts';

const FOLLOW_MS = 2_000;

const FILTERS = [
  'event_type',
  'decision',
  'cause',
  'org_id',
  'team_id',
  'agent_id',
  'op_id',
  'action',
  'resource',
  'policy',
  'rule_id',
  'shadow',
  'actor',
  'since',
  'until',
] as const;
type Filter = Readonly<Partial<Record<(typeof FILTERS)[number], string>>>;

function filterFrom(query: URLSearchParams): Filter {
  const filter = Object.fromEntries(FILTERS.map((name) => [name, (query.get(name) ?? '').trim()]));
  return boundOrg() === null ? filter : { ...filter, org_id: '' };
}

const keyOf = ({ gateway = '', id }: AuditEntry): string => `${gateway} ${id}`;

export function AuditPage() {
  const filter = filterFrom(place.value.query);
  const [isFollowing, setFollowing] = useState(true);
  const list = useRef<HTMLDivElement>(null);
  const isHeld = useHold(list);
  const isFixed = (filter.until ?? '') !== '';
  const pages = usePages<AuditEntry>(`logs ${queryOf(filter)}`, pageReader('/api/v1/logs', 'entries', filter), {
    settleMs: 300,
    ...(isFollowing && !isFixed ? { everyMs: FOLLOW_MS } : {}),
  });
  const { rows, waiting, showNewest } = useHeldRows(pages.rows, queryOf(filter), isHeld);
  return (
    <div class="page">
      <PageHead title="Audit" note={<ChainState pages={pages} />}>
        {waiting > 0 && (
          <button type="button" class="held" onClick={showNewest}>
            Show {count(waiting)} new
          </button>
        )}
        <Check label="Follow" checked={isFollowing} onChecked={setFollowing} />
        <ExportButton filter={filter} />
        <a class="button" href="/changes">
          What changed
        </a>
      </PageHead>
      <Filters filter={filter} />
      <div class="panel entries" ref={list}>
        <Entries rows={rows} />
        <Note pages={pages} filter={filter} />
      </div>
    </div>
  );
}

/** Newer entries stay out of the way of a hand among the rows. */
function useHeldRows(found: readonly AuditEntry[], key: string, isHeld: () => boolean) {
  const shown = useRef<{ key: string; rows: readonly AuditEntry[] }>({ key, rows: [] });
  const [, redraw] = useState(0);
  const isSame = shown.current.key === key && shown.current.rows.length > 0 && found.length > 0;
  const newest = shown.current.rows[0];
  const fresh = newest === undefined ? 0 : found.findIndex((entry) => keyOf(entry) === keyOf(newest));
  const mayShow = !isSame || fresh <= 0 || !isHeld() || found.length > shown.current.rows.length + fresh;
  if (mayShow) shown.current = { key, rows: found };
  return {
    rows: shown.current.rows,
    waiting: mayShow ? 0 : fresh,
    showNewest: () => {
      shown.current = { key, rows: found };
      redraw((times) => times + 1);
    },
  };
}

function Entries({ rows }: { readonly rows: readonly AuditEntry[] }) {
  const asked = place.value.query.get('entry');
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const entry = rows.find(({ id }) => String(id) === asked);
    if (entry !== undefined) setOpen((before) => new Set([...before, keyOf(entry)]));
  }, [asked, rows.length === 0]);
  const toggle = (key: string) => (isOpen: boolean) =>
    setOpen((before) => new Set(isOpen ? [...before, key] : [...before].filter((each) => each !== key)));
  return (
    <>
      {rows.map((entry) => (
        <EntryCard key={keyOf(entry)} entry={entry} isOpen={open.has(keyOf(entry))} onToggle={toggle(keyOf(entry))} />
      ))}
    </>
  );
}

function Note({ pages, filter }: { readonly pages: Pages<AuditEntry>; readonly filter: Filter }) {
  const isFiltered = Object.values(filter).some((value) => value !== '');
  const missing: readonly string[] = pages.data?.whole.incomplete ?? [];
  return (
    <>
      {missing.length > 0 && <p class="warning">{missing.join(', ')} did not answer: their entries are missing.</p>}
      {pages.error !== '' && pages.rows.length > 0 && <p class="warning">Could not load new entries. {pages.error}</p>}
      {pages.rows.length === 0 && (
        <Empty>
          {pages.error ||
            (pages.data === undefined
              ? 'Loading…'
              : isFiltered
                ? 'No entries match the filters. Enter full names and ids.'
                : 'No entries yet. They appear here when agents and people act.')}
        </Empty>
      )}
      {pages.hasMore && (
        <button type="button" class="more" aria-busy={pages.isReadingMore} onClick={pages.more}>
          {pages.isReadingMore ? 'Loading…' : 'Load more'}
        </button>
      )}
    </>
  );
}

/** Whether what is shown links, whether the log can be written, and whether its witnesses answer. */
function ChainState({ pages }: { readonly pages: Pages<AuditEntry> }) {
  const { checked, broken } = chainOf(pages.rows);
  const head = pages.rows[0];
  const { audit, audit_witness: witness } = readiness.value ?? {};
  return (
    <span class="chain">
      {broken.length > 0 ? (
        <b class="bad">The chain is broken at entry {broken.join(', ')}.</b>
      ) : checked > 0 ? (
        <span class="verdict good">{count(checked)} links of the chain hold</span>
      ) : (
        <span>Newest first</span>
      )}
      {head !== undefined && <span>newest shown: entry {count(head.id)}</span>}
      {audit === 'unwritable' && <b class="bad">cannot be written</b>}
      {witness === 'unreachable' && <b class="bad">a witness does not answer</b>}
    </span>
  );
}

const TEXTS = ['team_id', 'agent_id', 'op_id', 'action', 'resource', 'policy', 'rule_id', 'actor'] as const;
const LABELS: Readonly<Record<(typeof TEXTS)[number], readonly [label: string, placeholder: string]>> = {
  team_id: ['Team', 'All teams'],
  agent_id: ['Agent', 'All agents'],
  op_id: ['Operation', 'All operations'],
  action: ['Action', 'tool.*'],
  resource: ['Resource', 'prod/*'],
  policy: ['Policy', 'All policies'],
  rule_id: ['Rule', 'All rules'],
  actor: ['Actor', 'key:…, account:…'],
};

function Filters({ filter }: { readonly filter: Filter }) {
  const isWide = useMedia('(min-width: 761px)');
  const [isOpen, setOpen] = useState(
    TEXTS.slice(2).some((name) => filter[name]) || filter.since !== '' || filter.until !== '',
  );
  const set = (name: keyof Filter) => (value: string) => setQuery({ [name]: value, entry: '' });
  const text = (name: (typeof TEXTS)[number]) => (
    <TextField
      key={name}
      label={LABELS[name][0]}
      type="search"
      placeholder={LABELS[name][1]}
      value={place.value.query.get(name) ?? ''}
      onValue={set(name)}
    />
  );
  return (
    <search class="filters">
      <SelectField
        label="Event"
        value={filter.event_type ?? ''}
        onValue={set('event_type')}
        options={[['', 'All events'], ...AUDIT_EVENTS.map((word) => [word, word] as const)]}
      />
      <SelectField
        label="Decision"
        value={filter.decision ?? ''}
        onValue={set('decision')}
        options={[
          ['', 'All decisions'],
          ['allow', 'allow'],
          ['deny', 'deny'],
        ]}
      />
      <SelectField
        label="Cause"
        value={filter.cause ?? ''}
        onValue={set('cause')}
        options={[['', 'All causes'], ...DECISION_CAUSES.map((word) => [word, word.replaceAll('_', ' ')] as const)]}
      />
      {(isOpen || filter.shadow !== '') && (
        <SelectField
          label="Shadow"
          value={filter.shadow ?? ''}
          onValue={set('shadow')}
          options={[
            ['', 'All checks'],
            ['differs', 'differs'],
          ]}
        />
      )}
      <OrgFilter value={place.value.query.get('org_id') ?? ''} onValue={set('org_id')} />
      {(isOpen ? TEXTS : isWide ? TEXTS.slice(0, 2) : []).map(text)}
      {isOpen && (
        <>
          <TimeField label={`From (${ZONE})`} value={filter.since ?? ''} onValue={set('since')} />
          <TimeField label={`To (${ZONE})`} value={filter.until ?? ''} onValue={set('until')} />
        </>
      )}
      {!isOpen && (
        <button type="button" class="quiet" onClick={() => setOpen(true)}>
          More filters
        </button>
      )}
      {Object.values(filter).some((value) => value !== '') && (
        <button
          type="button"
          class="quiet"
          onClick={() => setQuery({ ...Object.fromEntries(FILTERS.map((name) => [name, ''])), entry: '' })}
        >
          Clear
        </button>
      )}
    </search>
  );
}
