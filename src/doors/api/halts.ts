/** Halts: a stop that stays in force (docs/spec.md, Halts). */
import { z } from 'zod';
import { ok } from '../../core/base/result.ts';
import { HALT_MODES, HALT_SCOPE_FORMS, MAX_HALT_ACTIONS, MAX_HALT_REASON } from '../../core/halts/halt.ts';
import { haltView } from '../../core/halts/view.ts';
import { MAX_GLOB_LENGTH } from '../../core/policy/glob.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { optional } from '../shared/input.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { optionalOr, readPage, readWord, ruled, time, withBody } from './body.ts';
import { haltCreated, haltPage, haltReleased } from './shapes.ts';
import { pageView } from './views.ts';

const REASON_RULE = `must be a text of 1 to ${MAX_HALT_REASON} characters`;
const reason = ruled((text) => text.trim() !== '' && text.length <= MAX_HALT_REASON, REASON_RULE);
const ACTIONS_RULE = `must be a list of 1 to ${MAX_HALT_ACTIONS} patterns, each of 1 to ${MAX_GLOB_LENGTH} characters`;

const newHalt = z.strictObject({
  scope: z.string().meta({ description: HALT_SCOPE_FORMS, examples: ['org:acme'] }),
  reason,
  mode: optionalOr(z.enum(HALT_MODES, `must be one of ${HALT_MODES.join(', ')}`), 'terminate'),
  actions: optionalOr(
    z
      .array(
        ruled((text) => text !== '' && text.length <= MAX_GLOB_LENGTH, ACTIONS_RULE),
        ACTIONS_RULE,
      )
      .min(1, ACTIONS_RULE)
      .max(MAX_HALT_ACTIONS, ACTIONS_RULE),
    ['*'],
  ),
  expires_at: optional(time),
});

const release = z.strictObject({ reason });

async function create({ principal, body }: Authorized<typeof newHalt>, link: Link): Promise<HttpReply> {
  const { expires_at: expiresAtMs, ...halt } = body;
  const created = await link.call('createHalt', { principal, halt: { ...halt, expiresAtMs } });
  if (!created.ok) return created;
  const { halt: made, opsAffected, match } = created.value;
  return ok({
    status: 201,
    headers: unconfirmedHeaders(created),
    body: {
      halt: haltView(made),
      ops_affected: opsAffected,
      agents_matched: match.agents,
      nearest_scope: match.nearest ?? null,
    },
  });
}

async function list({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const page = readPage(query);
  if (!page.ok) return page;
  const active = readWord(query, 'active', ['true', 'false']);
  if (!active.ok) return active;
  const isActive = active.value === undefined ? undefined : active.value === 'true';
  const { reply } = await link.ask({ type: 'list-halts', principal, active: isActive, ...page.value });
  return reply.ok ? ok({ status: 200, body: pageView('halts', reply.value, haltView) }) : reply;
}

async function releaseOne({ principal, params, body }: Authorized<typeof release>, link: Link): Promise<HttpReply> {
  const released = await link.call('releaseHalt', { principal, id: params.id ?? '', reason: body.reason });
  if (!released.ok) return released;
  return ok({ status: 200, headers: unconfirmedHeaders(released), body: { halt: haltView(released.value.halt) } });
}

export const haltRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/halts',
    access: { scope: 'admin' },
    summary: 'Stops everything in a scope, until the halt is released',
    answers: { 201: haltCreated },
    refusals: [409],
    ...withBody(newHalt, create),
  },
  {
    method: 'get',
    path: '/api/v1/halts',
    access: { scope: 'read' },
    summary: 'Lists halts: those in force, then those released, each newest first',
    answers: { 200: haltPage },
    query: ['active', 'per_page', 'cursor'],
    handle: list,
  },
  {
    method: 'post',
    path: '/api/v1/halts/:id/release',
    access: { scope: 'admin' },
    summary: 'Releases a halt, and resumes the operations it had paused',
    answers: { 200: haltReleased },
    ...withBody(release, releaseOne),
  },
];
