/** Plain HTTP routes of the live stream (docs/spec.md, Live stream). */
import { fail, ok } from '../../core/base/result.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { STREAM_QUERY } from '../ws/stream.ts';
import { ticket } from './shapes.ts';

async function issueTicket({ bearer }: Authorized, link: Link): Promise<HttpReply> {
  const issued = await link.call('issueTicket', { bearer: bearer ?? '' });
  return issued.ok
    ? ok({ status: 200, body: { ticket: issued.value.ticket, expires_in: issued.value.expiresInSecs } })
    : issued;
}

/** Handles requests for the stream that are not WebSocket handshakes. */
const upgradeNeeded = async (): Promise<HttpReply> => fail({ kind: 'upgrade_required' });

export const streamRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/auth/ws-ticket',
    access: { scope: 'read' },
    summary: 'Issues a ticket that opens one stream without an Authorization header',
    answers: { 200: ticket },
    handle: issueTicket,
  },
  {
    method: 'get',
    path: '/api/v1/stream',
    access: { scope: 'read' },
    summary: 'Opens the live stream of events (WebSocket)',
    query: STREAM_QUERY,
    answers: { 101: 'empty', 200: 'empty' }, // 200 where a proxy speaks HTTP/2 (RFC 8441)
    refusals: [426],
    handle: upgradeNeeded,
  },
];
