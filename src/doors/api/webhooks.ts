/** Webhooks: HTTP calls that report what people must know (docs/spec.md, Webhooks). */
import { z } from 'zod';
import { ok } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import { WEBHOOK_EVENTS, type Webhook } from '../../core/webhooks/webhook.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { optional } from '../shared/input.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { type Listing, name, readNames, withBody, withListing } from './body.ts';
import { webhookAnswer, webhookCreated, webhookPage, webhookTested } from './shapes.ts';
import { pageView, rfc3339OrNull } from './views.ts';

const EVENTS_RULE = `must be a list of one or more of ${WEBHOOK_EVENTS.join(', ')}`;
const newWebhook = z.strictObject({
  url: z.string().meta({ examples: ['https://hooks.example.com/svc'] }),
  events: z
    .array(z.enum(WEBHOOK_EVENTS, `must be one of ${WEBHOOK_EVENTS.join(', ')}`), EVENTS_RULE)
    .min(1, EVENTS_RULE)
    .max(WEBHOOK_EVENTS.length, EVENTS_RULE),
  org_id: optional(name),
});

const webhookView = (hook: Omit<Webhook, 'secret'>, waiting: number) => ({
  id: hook.id,
  url: hook.url,
  events: hook.events,
  org_id: hook.orgId,
  created_by: hook.createdBy,
  created_at: rfc3339(hook.createdAtMs),
  waiting,
  dropped: hook.dropped,
  failing_since: rfc3339OrNull(hook.failingSinceMs),
  last_error: hook.lastError ?? null,
  disabled_at: rfc3339OrNull(hook.disabledAtMs),
});

async function create({ principal, body }: Authorized<typeof newWebhook>, link: Link): Promise<HttpReply> {
  const { org_id: orgId, ...rest } = body;
  const created = await link.call('createWebhook', { principal, webhook: { ...rest, orgId } });
  if (!created.ok) return created;
  const made = { ...webhookView(created.value, 0), secret: created.value.secret };
  return ok({ status: 201, headers: unconfirmedHeaders(created), body: made });
}

async function list(listing: Listing, link: Link, { query }: Authorized): Promise<HttpReply> {
  const names = readNames(query, ['made_by']);
  if (!names.ok) return names;
  const page = await link.call('listWebhooks', { ...listing, madeBy: names.value.made_by });
  return page.ok
    ? ok({ status: 200, body: pageView('webhooks', page.value, ({ hook, waiting }) => webhookView(hook, waiting)) })
    : page;
}

async function get({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const found = await link.call('getWebhook', { principal, id: params.id ?? '' });
  if (!found.ok) return found;
  return ok({ status: 200, body: { webhook: webhookView(found.value.hook, found.value.waiting) } });
}

async function takeOver({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const taken = await link.call('takeOverWebhook', { principal, id: params.id ?? '' });
  if (!taken.ok) return taken;
  return ok({ status: 200, body: { webhook: webhookView(taken.value.hook, taken.value.waiting) } });
}

async function remove({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const removed = await link.call('deleteWebhook', { principal, id: params.id ?? '' });
  return removed.ok ? ok({ status: 204, headers: unconfirmedHeaders(removed) }) : removed;
}

async function test({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const sent = await link.call('testWebhook', { principal, id: params.id ?? '' });
  return sent.ok ? ok({ status: 202, body: { message_id: sent.value.messageId } }) : sent;
}

const ADMIN = { scope: 'admin' } as const;

export const webhookRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/webhooks',
    access: ADMIN,
    summary: 'Creates a webhook and shows its secret once',
    answers: { 201: webhookCreated },
    refusals: [409],
    ...withBody(newWebhook, create),
  },
  {
    method: 'get',
    path: '/api/v1/webhooks',
    access: ADMIN,
    summary: 'Lists webhooks, newest first',
    answers: { 200: webhookPage },
    ...withListing(['made_by'], list),
  },
  {
    method: 'get',
    path: '/api/v1/webhooks/:id',
    access: ADMIN,
    summary: 'Shows a webhook, and whether its calls arrive',
    answers: { 200: webhookAnswer },
    handle: get,
  },
  {
    method: 'delete',
    path: '/api/v1/webhooks/:id',
    access: ADMIN,
    summary: 'Deletes a webhook and its waiting messages',
    answers: { 204: 'empty' },
    handle: remove,
  },
  {
    method: 'post',
    path: '/api/v1/webhooks/:id/take-over',
    access: ADMIN,
    summary: 'Makes the caller the maker of a webhook, which no longer ends with who made it',
    answers: { 200: webhookAnswer },
    handle: takeOver,
  },
  {
    method: 'post',
    path: '/api/v1/webhooks/:id/test',
    access: ADMIN,
    summary: 'Sends a test message',
    answers: { 202: webhookTested },
    refusals: [409],
    handle: test,
  },
];
