/** Routes for limits of use (docs/spec.md, Limits of use). */
import { ok } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import { LIMIT_PERS } from '../../core/limits/limit.ts';
import type { LimitStatus } from '../../core/limits/status.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { limitPage } from './approval-shapes.ts';
import { readNames, readPage, readWord } from './body.ts';
import { pageView } from './views.ts';

async function list({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const page = readPage(query);
  if (!page.ok) return page;
  const names = readNames(query, ['org_id']);
  if (!names.ok) return names;
  const per = readWord(query, 'per', LIMIT_PERS);
  if (!per.ok) return per;
  const found = await link.call('listLimits', {
    principal,
    orgId: names.value.org_id,
    per: per.value,
    policy: query.get('policy') ?? undefined,
    limit: query.get('limit') ?? undefined,
    ...page.value,
  });
  return found.ok ? ok({ status: 200, body: pageView('limits', found.value, limitView) }) : found;
}

const limitView = ({ orgId, resetsAtMs, ...status }: LimitStatus) => ({
  policy: status.policy,
  id: status.id,
  per: status.per,
  key: status.key,
  org_id: orgId === '' ? null : orgId,
  unit: status.unit,
  used: status.used,
  reserved: status.reserved,
  max: status.max,
  raised: status.raised,
  resets_at: resetsAtMs === undefined ? null : rfc3339(resetsAtMs),
});

export const limitRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/limits',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Shows what limits have counted, the fullest first',
    query: ['org_id', 'per', 'policy', 'limit', 'per_page', 'cursor'],
    answers: { 200: limitPage },
    handle: list,
  },
];
