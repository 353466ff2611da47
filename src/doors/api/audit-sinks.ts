/** Routes of the audit log's sinks (docs/audit-sinks.md). */
import { z } from 'zod';
import { ok } from '../../core/base/result.ts';
import type { ListedSink } from '../../use-cases/audit-sinks.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { withBody } from './body.ts';
import { sinkList, sinkReplayed, sinkTested } from './shapes.ts';

const FROM_RULE = 'must be the id of an entry, a whole number from 1';
const replaying = z.strictObject({
  from: z
    .int(FROM_RULE)
    .min(1, FROM_RULE)
    .meta({ description: 'The first entry to send; beyond the end: new ones only.' }),
});

const view = (sink: ListedSink) => ({
  name: sink.name,
  type: sink.type,
  format: sink.format,
  place: sink.place,
  sent_id: sink.sentId,
  lag_entries: sink.lag,
  sent_entries: sink.sentEntries,
  lost_entries: sink.lostEntries,
  failures: sink.failures,
  trouble: sink.trouble ?? null,
});

async function list({ principal }: Authorized, link: Link): Promise<HttpReply> {
  const listed = await link.call('listAuditSinks', { principal });
  return listed.ok ? ok({ status: 200, body: { sinks: listed.value.sinks.map(view) } }) : listed;
}

async function test({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const tested = await link.call('testAuditSink', { principal, name: params.name ?? '' });
  if (!tested.ok) return tested;
  const { trouble } = tested.value;
  return ok({ status: 200, body: { ok: trouble === undefined, trouble: trouble ?? null } });
}

async function replay({ principal, params, body }: Authorized<typeof replaying>, link: Link): Promise<HttpReply> {
  const replayed = await link.call('replayAuditSink', { principal, name: params.name ?? '', fromId: body.from });
  return replayed.ok ? ok({ status: 200, body: { from: body.from } }) : replayed;
}

export const auditSinkRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/audit/sinks',
    access: { scope: 'read' },
    summary: 'Lists the sinks of the audit log, and how far each is',
    answers: { 200: sinkList },
    handle: list,
  },
  {
    method: 'post',
    path: '/api/v1/audit/sinks/:name/test',
    access: { scope: 'admin' },
    summary: 'Sends a message to a sink that is no entry',
    answers: { 200: sinkTested },
    refusals: [404],
    handle: test,
  },
  {
    method: 'post',
    path: '/api/v1/audit/sinks/:name/replay',
    access: { scope: 'admin' },
    summary: 'Sends a sink everything from an entry on',
    answers: { 200: sinkReplayed },
    refusals: [404],
    ...withBody(replaying, replay),
  },
];
