/** `svc logs [--follow]`: the audit log, oldest of the shown entries first. */
import { setTimeout } from 'node:timers/promises';
import { mayPass, UnreachableError, usageError } from '../errors.ts';
import type { Globals, Invocation, Options } from '../invocation.ts';
import { Api, missingNote } from '../remote/api.ts';
import type { Query } from '../remote/http.ts';
import { chosenColumns, dim, green, note, red, showNext, showTable, writeLines } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { type Column, csvLines, type Row, textOf, valueAt } from '../terminal/table.ts';
import { timeAgo } from '../terminal/words.ts';
import { type AgentFilter, agentFilter, agentText, limitOf, moreNote } from './listing.ts';
import { OpNames } from './op-name.ts';

const POLL_MS = 1000;
const PATH = '/api/v1/logs';

export function logQuery(options: Options, nowMs: number): Query {
  const since = timeAgo('--since', options.text('since'), nowMs);
  const until = timeAgo('--until', options.text('until'), nowMs);
  if (since !== undefined && until !== undefined && Date.parse(since) >= Date.parse(until))
    throw usageError('--until must be later than --since', `They are ${until} and ${since}.`);
  return {
    ...loggedAgent(options),
    event_type: options.list('event').join(',') || undefined,
    decision: options.text('decision'),
    op_id: options.text('op'),
    actor: options.text('actor'),
    action: options.text('action'),
    resource: options.text('resource'),
    policy: options.text('policy'),
    rule_id: options.text('rule'),
    cause: options.text('cause'),
    shadow: options.text('shadow'),
    since,
    until,
  };
}

/** The log takes no search for what has no org (docs/spec.md, Audit). */
function loggedAgent(options: Options): AgentFilter {
  const filter = agentFilter(options);
  if (filter.org_id !== '' || filter.agent_id === undefined) return filter;
  throw usageError(
    'the log cannot be searched for an agent without an org',
    printable(
      `--team ${filter.team_id} --agent ${filter.agent_id} finds it, together with agents of the same name in all orgs.`,
    ),
  );
}

export async function run(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const api = await Api.of(invocation);
  const query = await withWholeId(api, logQuery(options, Date.now()));
  const head = options.isSet('follow') ? await headOf(api, query) : undefined;
  const { rows, nextCursor, incomplete } = await api.list(PATH, 'entries', { query, limit: limitOf(options) });
  const entries = [...rows].reverse();
  if (options.isSet('follow'))
    return follow({ api, query, head, first: entries, isCut: nextCursor !== null, write: entryWriter(globals) });
  await showTable(globals, {
    value: { entries, next_cursor: nextCursor },
    columns: COLUMNS,
    rows: entries,
    none: 'No entries match.',
    tint: tintOf,
  });
  // A requested count is simply obeyed, as with `tail`; the default one must not pass for the whole log.
  if (nextCursor !== null && options.text('limit') === undefined) note(moreNote(entries.length));
  if (incomplete.length > 0) note(missingNote(incomplete));
}

/** An id that the log does not have may be short for that of an operation in flight. */
export async function withWholeId(api: Api, query: Query): Promise<Query> {
  const { op_id: text, org_id } = query;
  if (typeof text !== 'string' || !text.includes(':')) return query;
  const { rows } = await api.list(PATH, 'entries', { query: { op_id: text, org_id }, limit: 1 });
  if (rows.length > 0) return query;
  const opId = await new OpNames(api, { org_id: typeof org_id === 'string' ? org_id : undefined }).find(text);
  return opId === undefined ? query : { ...query, op_id: opId };
}

/** `gateway`: of a cluster, the one that has it in its log. */
type Head = { readonly id: number; readonly timestamp: string; readonly gateway: string | undefined };

/** The newest entry of the log, whether it matches or not: while that stays, there is nothing to ask for. */
async function headOf(api: Api, { org_id }: Query): Promise<Head | undefined> {
  const {
    rows: [entry],
  } = await api.list(PATH, 'entries', { query: { org_id }, limit: 1 });
  return headIn(entry);
}

function headIn(entry: Row | undefined): Head | undefined {
  const { timestamp, gateway } = entry ?? {};
  const id = idOf(entry);
  if (id === undefined || typeof timestamp !== 'string') return undefined;
  return { id, timestamp, gateway: typeof gateway === 'string' ? gateway : undefined };
}

/** Whether the log still has the entry: one that began anew may be longer than the old one was. */
async function isThere(api: Api, { org_id }: Query, { id, timestamp }: Head): Promise<boolean> {
  const until = new Date(Date.parse(timestamp) + 1).toISOString();
  const { rows } = await api.list(PATH, 'entries', {
    query: { org_id, since: timestamp, until },
    isEnough: (last) => (idOf(last) ?? Infinity) <= id,
  });
  return rows.some((entry) => idOf(entry) === id);
}

/** `first` was listed after `head` was the newest entry. */
type Following = {
  readonly api: Api;
  readonly query: Query;
  readonly head: Head | undefined;
  readonly first: readonly Row[];
  /** There are older ones, which are not shown. */
  readonly isCut: boolean;
  readonly write: (entry: Row) => Promise<void>;
};

/** Ends only with the process. Each entry is one line of JSON, or one document of YAML. */
async function follow(following: Following): Promise<never> {
  const { first, write, head } = following;
  for (const entry of first) await write(entry);
  const poll = head?.gateway === undefined ? followOne(following) : followAll(following, head);
  let isAway = false;
  for (;;) {
    await setTimeout(POLL_MS);
    try {
      await poll();
      isAway = false;
    } catch (error) {
      if (!mayPass(error)) throw error;
      if (!isAway)
        note(error instanceof UnreachableError ? 'Connection lost; retrying.' : `${error.message}; retrying.`);
      isAway = true;
    }
  }
}

type Poll = () => Promise<void>;

/** The log of a gateway that is alone. */
function followOne({ api, query, head: headBefore, first, write }: Following): Poll {
  let seen = headBefore;
  let lastId = Math.max(idOf(first.at(-1)) ?? 0, headBefore?.id ?? 0);
  return async () => {
    const head = await headOf(api, query);
    if (head === undefined || (head.id === seen?.id && head.timestamp === seen.timestamp)) return;
    // The gateway has lost its data or runs on a backup: new entries are told apart by their time from those already
    // shown.
    const isAnother = seen !== undefined && (head.id <= seen.id || !(await isThere(api, query, seen)));
    if (isAnother) lastId = 0;
    const isKnown = (entry: Row): boolean => (idOf(entry) ?? Infinity) <= lastId;
    const since = laterOf(query.since, seen, isAnother ? undefined : head);
    const { rows } = await api.list(PATH, 'entries', { query: { ...query, since }, isEnough: isKnown });
    for (const entry of rows.filter((each) => (idOf(each) ?? 0) > lastId).reverse()) await write(entry);
    lastId = Math.max(lastId, head.id, idOf(rows[0]) ?? 0);
    seen = head;
  };
}

/** Entries of a cluster's gateways may come late, by their times, by no more than that. */
const CLOCKS_DIFFER_MS = 5_000;

/**
 * The logs of all gateways. Each numbers its entries by itself, so the newest that was shown is kept of each. While one
 * does not answer, all that has come since is looked through again, so that its entries are shown once it does.
 */
function followAll({ api, query, first, isCut, write }: Following, head: Head): Poll {
  const shown = new Map<string, Head>();
  const isNew = (entry: Row): boolean => {
    const found = headIn(entry);
    if (found?.gateway === undefined) return false;
    const last = shown.get(found.gateway);
    // A log that was lost has begun anew, with small ids.
    if (last !== undefined && found.id <= last.id && found.timestamp <= last.timestamp) return false;
    shown.set(found.gateway, found);
    return true;
  };
  const oldest = isCut ? headIn(first[0]) : undefined;
  for (const entry of first) isNew(entry);
  let fromMs = Math.max(Date.parse(head.timestamp) - CLOCKS_DIFFER_MS, Date.parse(oldest?.timestamp ?? '') || 0);
  let missing = '';
  return async () => {
    const from = new Date(fromMs).toISOString();
    const since = typeof query.since === 'string' && query.since > from ? query.since : from;
    const { rows, incomplete } = await api.list(PATH, 'entries', { query: { ...query, since } });
    for (const entry of [...rows].reverse()) if (isNew(entry)) await write(entry);
    const names = incomplete.join(', ');
    if (names !== '' && names !== missing) note(missingNote(incomplete));
    missing = names;
    const newestMs = Date.parse(headIn(rows[0])?.timestamp ?? '') - CLOCKS_DIFFER_MS;
    if (names === '' && newestMs > fromMs) fromMs = newestMs;
  };
}

/** Entries may be in the log out of order by their times, by less than this. */
const DISORDER_MS = 60_000;

/**
 * If the log has a different head, the clock may have been set back while the gateway was stopped; if it is a different
 * log, nothing is repeated.
 */
function laterOf(since: Query[string], seen: Head | undefined, head: Head | undefined): Query[string] {
  if (seen === undefined) return since;
  const seenMs = Date.parse(seen.timestamp);
  const fromMs = head === undefined ? seenMs : Math.min(seenMs, Date.parse(head.timestamp)) - DISORDER_MS;
  return new Date(Math.max(fromMs, typeof since === 'string' ? Date.parse(since) : 0)).toISOString();
}

const idOf = (entry: Row | undefined): number | undefined => (typeof entry?.id === 'number' ? entry.id : undefined);

/** In a cluster, the gateway precedes the id. At the end: who did it, if not the agent itself. */
const COLUMNS: readonly Column[] = [
  { title: 'TIME', cell: 'timestamp', isWhole: true },
  {
    title: 'ID',
    cell: ({ id, gateway }) => (typeof gateway === 'string' ? `${gateway}:${String(id)}` : id),
    isWhole: true,
  },
  { title: 'EVENT', cell: 'event_type', isWhole: true },
  { title: 'WHO', cell: (entry) => (isOfAgent(entry) ? agentText(entry.lineage) : entry.actor) },
  { title: 'OPERATION', cell: 'op_id' },
  { title: 'WHAT', cell: whatOf },
];

const isOfAgent = ({ lineage }: Row): boolean => valueAt({ lineage }, 'lineage.agent_id') !== null;

function whatOf(entry: Row): string {
  const { reason, actor } = entry;
  const isByAnother = isOfAgent(entry) && typeof actor === 'string' && !actor.startsWith('agent:');
  return [
    ...whatHappenedIn(entry),
    ...(typeof reason === 'string' ? [printable(reason)] : []),
    ...(isByAnother ? [`by ${printable(actor)}`] : []),
  ].join('  ');
}

const tintOf = ({ decision }: Row) => (decision === 'deny' ? red : decision === 'allow' ? green : dim);

/** For a log that is followed: `2026-01-31T12:00:00.000Z  7  ActionDenied  acme/search/crawler  op:1  …` */
function entryWriter({ output, layout }: Globals): (entry: Row) => Promise<void> {
  const columns = chosenColumns(COLUMNS, layout);
  const lineOf = (entry: Row): string => tintOf(entry)(columns.map((column) => textOf(column, entry)).join('  '));
  let hasHeading = layout.hasHeading;
  return async (entry) => {
    if (layout.kind === 'csv') writeLines(csvLines(columns, [entry], hasHeading));
    else await showNext(output, entry, () => lineOf(entry));
    hasHeading = false;
  };
}

/** The call, and the other agent if it named one; for events that are not calls, the words of their payload. */
function whatHappenedIn({ payload }: Row): readonly string[] {
  if (typeof payload !== 'object' || payload === null) return [];
  const {
    action,
    method,
    resource,
    caller,
    dry_run: isDryRun,
    claimed_org_id: org_id,
    claimed_team_id: team_id,
    claimed_agent_id: agent_id,
  } = payload as Row;
  const call = [action ?? method, resource].filter((part) => typeof part === 'string' && part !== '').join(' ');
  const [callerName, claimedName] = [agentText(caller), agentText({ org_id, team_id, agent_id })];
  return [
    ...[call === '' ? wordsOf(payload as Row) : call].filter((text) => text !== '').map(printable),
    // Nothing has begun, and the agent may only have looked what it may use.
    ...(isDryRun === true ? ['dry run'] : []),
    ...(callerName === undefined ? [] : [`called by ${printable(callerName)}`]),
    ...(claimedName === undefined ? [] : [`as ${printable(claimedName)}`]),
  ];
}

const MAX_WORDS = 4;
/** Ids that say nothing at a glance, and what is shown otherwise. */
const NOT_AT_A_GLANCE = /^(account_id|session_id|token_id|caller|claimed_.*)$/;

/** `name ci, scopes read write`: what is a word or a list of words, as the dashboard shows it. */
const wordsOf = (payload: Row): string =>
  Object.entries(payload)
    .filter(
      ([name, value]) =>
        value !== '' &&
        !NOT_AT_A_GLANCE.test(name) &&
        (Array.isArray(value) ? value : [value]).every((word) => ['string', 'number', 'boolean'].includes(typeof word)),
    )
    .slice(0, MAX_WORDS)
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(' ') : String(value)}`)
    .join(', ');
