/** The audit log: a page of it, or all of it as a stream (docs/spec.md, Audit). */
import { setTimeout as pause } from 'node:timers/promises';
import { AUDIT_EVENTS, type AuditFilter } from '../../core/audit/audit.ts';
import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { LogText } from '../../use-cases/logs.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import { type Authorized, type HttpReply, QUERY, type QueryName, type Route } from '../engine/route.ts';
import { readGlobs, readNames, readPage, readTime, readWord, readWords } from './body.ts';
import { logPage } from './shapes.ts';

const FILTERS: readonly QueryName[] = [
  'org_id',
  'team_id',
  'agent_id',
  'event_type',
  'decision',
  'op_id',
  'actor',
  'action',
  'resource',
  'policy',
  'rule_id',
  'cause',
  'shadow',
  'since',
  'until',
];

function readFilter(query: URLSearchParams): Result<AuditFilter, Fault> {
  const eventTypes = readWords(query, 'event_type', AUDIT_EVENTS);
  if (!eventTypes.ok) return eventTypes;
  const decision = readWord(query, 'decision', QUERY.decision.options);
  if (!decision.ok) return decision;
  const since = readTime(query, 'since');
  if (!since.ok) return since;
  const until = readTime(query, 'until');
  if (!until.ok) return until;
  const cause = readWord(query, 'cause', QUERY.cause.options);
  if (!cause.ok) return cause;
  const shadow = readWord(query, 'shadow', QUERY.shadow.options);
  if (!shadow.ok) return shadow;
  const names = readNames(query, ['team_id', 'agent_id', 'op_id', 'actor', 'policy', 'rule_id']);
  if (!names.ok) return names;
  const globs = readGlobs(query, ['action', 'resource']);
  if (!globs.ok) return globs;
  const { team_id: teamId, agent_id: agentId, op_id: opId, actor, policy, rule_id: ruleId } = names.value;
  return ok({
    orgId: query.get('org_id') ?? undefined,
    teamId,
    agentId,
    opId,
    actor,
    ...globs.value,
    policy,
    ruleId,
    cause: cause.value,
    shadow: shadow.value,
    eventTypes: eventTypes.value,
    decision: decision.value,
    sinceMs: since.value,
    untilMs: until.value,
  });
}

async function list({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const page = readPage(query);
  if (!page.ok) return page;
  const filter = readFilter(query);
  if (!filter.ok) return filter;
  const read = await link.call('readLog', { principal, filter: filter.value, format: 'page', ...page.value });
  return read.ok ? ok({ status: 200, text: { type: 'application/json', content: read.value.text } }) : read;
}

const EXPORTS = {
  ndjson: { type: 'application/x-ndjson', fileName: 'audit.ndjson' },
  csv: { type: 'text/csv; charset=utf-8', fileName: 'audit.csv' },
} as const;

/** Entries in one piece: the most that one slow reader can make the gateway hold. */
const ENTRIES_PER_PIECE = 500;

/** Reads what follows the cursor; without one, from the newest entry on. */
type ReadPiece = (cursor?: string) => Promise<Result<LogText, Fault>>;

async function exportAll({ principal, query, bearer = '' }: Authorized, link: Link): Promise<HttpReply> {
  const filter = readFilter(query);
  if (!filter.ok) return filter;
  const chosen = readWord(query, 'format', QUERY.format.options);
  if (!chosen.ok) return chosen;
  const format = chosen.value ?? 'ndjson';
  const read: ReadPiece = (cursor) =>
    link.call('readLog', { principal, filter: filter.value, format, perPage: ENTRIES_PER_PIECE, cursor });
  const readWhileValid: ReadPiece = async (cursor) => {
    const known = await link.call('authenticate', { bearer });
    return known.ok ? read(cursor) : known;
  };
  const first = await read();
  if (!first.ok) return first;
  const { type, fileName } = EXPORTS[format];
  const { incomplete = [] } = first.value;
  return ok({
    status: 200,
    headers: [
      ['Content-Disposition', `attachment; filename="${fileName}"`],
      ...(incomplete.length === 0 ? [] : ([['svc-incomplete', incomplete.join(', ')]] as const)),
    ],
    stream: { type, chunks: pieces(first.value, readWhileValid) },
  });
}

/** Each piece is asked for after the one before has left. */
async function* pieces(first: LogText, read: ReadPiece): AsyncGenerator<Result<Uint8Array, Fault>> {
  let piece = first;
  for (;;) {
    if (piece.text.length > 0) yield ok(piece.text);
    const cursor = piece.next;
    if (cursor === undefined) return;
    const next = await patiently(() => read(cursor));
    if (!next.ok) return yield next;
    piece = next.value;
  }
}

/**
 * How often a piece is asked for while the reader of the log has no time. An export that was cut has to begin anew,
 * which takes more of it.
 */
const MAX_TRIES = 5;
const RETRY_MS = 1_000;
/** Also a gateway of a cluster that is paused for a moment. */
const PASSING: ReadonlySet<Fault['kind']> = new Set(['overloaded', 'unreachable_gateway']);

async function patiently(read: () => Promise<Result<LogText, Fault>>): Promise<Result<LogText, Fault>> {
  for (let attempt = 1; ; attempt += 1) {
    const piece = await read();
    if (piece.ok || !PASSING.has(piece.fault.kind) || attempt === MAX_TRIES) return piece;
    await pause(RETRY_MS);
  }
}

export const logRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/logs',
    access: { scope: 'read' },
    summary: 'Lists audit entries, newest first',
    query: [...FILTERS, 'per_page', 'cursor'],
    answers: { 200: logPage },
    handle: list,
  },
  {
    method: 'get',
    path: '/api/v1/logs/export',
    access: { scope: 'read' },
    summary: 'Streams all matching audit entries, newest first',
    query: [...FILTERS, 'format'],
    answers: { 200: { mediaTypes: ['application/x-ndjson', 'text/csv'] } },
    headers: ['Content-Disposition', 'svc-incomplete'],
    handle: exportAll,
  },
];
