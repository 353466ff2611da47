/** Lists changes made by people and files, from the audit log (docs/spec.md, Changes). */
import type { AuditEntry } from '../../core/audit/audit.ts';
import { CHANGE_EVENTS, changeOf } from '../../core/audit/changes.ts';
import { ok } from '../../core/base/result.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { readNames, readPage, readTime } from './body.ts';
import { changesPage } from './stats-shapes.ts';

type LogPage = {
  readonly entries: readonly AuditEntry[];
  readonly next_cursor: string | null;
  readonly incomplete?: readonly string[];
};

async function list({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const page = readPage(query);
  if (!page.ok) return page;
  const since = readTime(query, 'since');
  if (!since.ok) return since;
  const until = readTime(query, 'until');
  if (!until.ok) return until;
  const names = readNames(query, ['org_id']);
  if (!names.ok) return names;
  const filter = {
    orgId: names.value.org_id,
    eventTypes: CHANGE_EVENTS,
    sinceMs: since.value,
    untilMs: until.value,
  };
  const read = await link.call('readLog', { principal, filter, format: 'page', ...page.value });
  if (!read.ok) return read;
  const { entries, next_cursor, incomplete } = JSON.parse(Buffer.from(read.value.text).toString()) as LogPage;
  const changes = entries.flatMap((entry) => {
    const change = changeOf(entry);
    if (change === undefined) return [];
    const { auditId, ...rest } = change;
    return [{ ...rest, audit_id: auditId }];
  });
  return ok({ status: 200, body: { changes, next_cursor, ...(incomplete && { incomplete }) } });
}

export const changeRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/changes',
    access: { scope: 'read' },
    summary: 'Lists changes made by people and files, newest first',
    query: ['org_id', 'since', 'until', 'per_page', 'cursor'],
    answers: { 200: changesPage },
    handle: list,
  },
];
