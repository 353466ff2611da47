/** Approvals: the third answer, as people decide it (docs/spec.md, Approvals). */
import { z } from 'zod';
import { APPROVAL_STATES, type Approval, MAX_DECISION_REASON } from '../../core/approvals/approval.ts';
import { approvalView } from '../../core/approvals/view.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, FromAgent, HttpReply, Route } from '../engine/route.ts';
import { waitWhileThere } from '../rpc/departure.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { approvalAnswer, approvalPage } from './approval-shapes.ts';
import { type Listing, readWord, ruled, withBody, withListing } from './body.ts';
import { pageView } from './views.ts';

const MAX_WAIT_SECS = 60;
const REASON_RULE = `must be a text of 1 to ${MAX_DECISION_REASON} characters`;
const decision = z.strictObject({
  reason: ruled((text) => text.trim() !== '' && text.length <= MAX_DECISION_REASON, REASON_RULE),
});

const answer = (approval: Result<Approval, Fault>): HttpReply =>
  approval.ok
    ? ok({ status: 200, headers: unconfirmedHeaders(approval), body: { approval: approvalView(approval.value) } })
    : approval;

async function list(listing: Listing, link: Link, { query }: Authorized): Promise<HttpReply> {
  const state = readWord(query, 'state', APPROVAL_STATES);
  if (!state.ok) return state;
  const { reply } = await link.ask({ type: 'list-approvals', state: state.value, ...listing });
  return reply.ok ? ok({ status: 200, body: pageView('approvals', reply.value, approvalView) }) : reply;
}

async function get({ principal, params, query, caller }: Authorized, link: Link): Promise<HttpReply> {
  const waitSecs = readWait(query);
  if (!waitSecs.ok) return waitSecs;
  const id = params.id ?? '';
  if (waitSecs.value === 0) return answer((await link.ask({ type: 'get-approval', principal, id })).reply);
  return answer(
    await waitWhileThere(link, caller, { reader: { principal }, principal, id, waitMs: waitSecs.value * 1000 }),
  );
}

/** An agent waits for its own. */
async function getOwn({ voucher, params, query, caller }: FromAgent, link: Link): Promise<HttpReply> {
  const waitSecs = readWait(query);
  if (!waitSecs.ok) return waitSecs;
  const id = params.id ?? '';
  const waitMs = waitSecs.value * 1000;
  return answer(await waitWhileThere(link, caller, { reader: voucher, principal: undefined, id, waitMs }));
}

function readWait(query: URLSearchParams): Result<number, Fault> {
  const given = query.get('wait') ?? '0';
  const secs = /^\d{1,2}$/.test(given) ? Number(given) : Number.NaN;
  return secs <= MAX_WAIT_SECS
    ? ok(secs)
    : invalid('wait', `must be a whole number of seconds from 0 to ${MAX_WAIT_SECS}`);
}

const decide =
  (kind: 'approve' | 'deny') =>
  async ({ principal, params, body }: Authorized<typeof decision>, link: Link): Promise<HttpReply> =>
    answer(await link.call('decideApproval', { principal, id: params.id ?? '', kind, reason: body.reason }));

async function cancel({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  return answer((await link.ask({ type: 'cancel-approval', principal, id: params.id ?? '' })).reply);
}

const cancelOwn = async ({ voucher, params }: FromAgent, link: Link): Promise<HttpReply> =>
  answer((await link.ask({ type: 'cancel-own-approval', ...voucher, id: params.id ?? '' })).reply);

export const approvalRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/approvals',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Lists approvals, newest first',
    answers: { 200: approvalPage },
    ...withListing(['state'], list),
  },
  {
    method: 'get',
    path: '/api/v1/approvals/:id',
    access: { scope: 'read' },
    summary: 'Shows an approval; with wait, as soon as it is decided',
    answers: { 200: approvalAnswer },
    query: ['wait'],
    handle: get,
    handleOwn: getOwn,
  },
  {
    method: 'post',
    path: '/api/v1/approvals/:id/approve',
    access: { scope: 'read' },
    summary: 'Approves the request of an agent',
    answers: { 200: approvalAnswer },
    refusals: [409],
    ...withBody(decision, decide('approve')),
  },
  {
    method: 'post',
    path: '/api/v1/approvals/:id/deny',
    access: { scope: 'read' },
    summary: 'Denies the request of an agent',
    answers: { 200: approvalAnswer },
    refusals: [409],
    ...withBody(decision, decide('deny')),
  },
  {
    method: 'post',
    path: '/api/v1/approvals/:id/cancel',
    access: { scope: 'write' },
    summary: 'Withdraws a request for an approval that is not used yet',
    answers: { 200: approvalAnswer },
    refusals: [409],
    handle: cancel,
    handleOwn: cancelOwn,
  },
];
