/** Agents: register, list, deregister (docs/spec.md, HTTP). */
import { z } from 'zod';
import { redactShort } from '../../core/audit/redact-text.ts';
import { parseAgentKey } from '../../core/base/ids.ts';
import { fail, ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import { isDeclaredJson, jsonOf } from '../engine/raw-body.ts';
import type { Authorized, FromAgent, HttpReply, RawRequest, Route } from '../engine/route.ts';
import { recordRefusal, refuseOnRecord } from '../rpc/judge.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { agentCredential, CREDENTIAL_RULE, isAgentCredential } from '../rpc/requests.ts';
import { askerOf } from '../rpc/speaker.ts';
import { optional, readBody } from '../shared/input.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { agentIdentity, type Listing, readNames, ruled, withBody, withListing } from './body.ts';
import { agentPage, agentRegistered, ownAgent, recordedRefusal } from './shapes.ts';
import { agentView, identityView, pageView } from './views.ts';

const refusal = z.strictObject({
  action: z.string().meta({ description: 'The requested action, as far as it could be read.' }),
  resource: z.string(),
  reason: z.string().meta({ description: 'Why it is refused.' }),
});

const registration = z.strictObject({
  agent: agentIdentity,
  credential_token: optional(ruled(isAgentCredential, CREDENTIAL_RULE)),
  parent: optional(agentIdentity),
});

async function register({ principal, body }: Authorized<typeof registration>, link: Link): Promise<HttpReply> {
  const { agent, parent } = body;
  const { token, digest, isMinted } = agentCredential(body.credential_token);
  const { reply } = await link.ask({ type: 'register-agent', principal, agent, credential: digest, parent });
  if (!reply.ok) return reply;
  return ok({
    status: reply.value.rotated ? 200 : 201,
    headers: unconfirmedHeaders(reply),
    body: {
      agent: agentView(reply.value.agent),
      rotated: reply.value.rotated,
      ...(isMinted ? { credential_token: token } : {}),
    },
  });
}

async function list(listing: Listing, link: Link, request: Authorized): Promise<HttpReply> {
  const names = readNames(request.query, ['team_id', 'agent_id']);
  if (!names.ok) return names;
  const { team_id: teamId, agent_id: agentId } = names.value;
  const { reply } = await link.ask({ type: 'list-agents', teamId, agentId, ...listing });
  return reply.ok ? ok({ status: 200, body: pageView('agents', reply.value, agentView) }) : reply;
}

/** The owner of the token, for proxies between an agent and the gateway that have only the token. */
const own = async ({ voucher }: FromAgent): Promise<HttpReply> =>
  ok({ status: 200, body: { agent: identityView(voucher.agent) } });

/** In characters. */
const MAX_REASON = 512;

/** Records a refusal by a proxy between an agent and its target as a denied check. */
async function recordOwn(raw: RawRequest, ports: WirePorts): Promise<HttpReply> {
  const asker = await askerOf(ports, raw);
  if (!asker.ok) return asker;
  if (!isDeclaredJson(raw)) return fail({ kind: 'unsupported_media_type', expected: 'application/json' });
  const body = jsonOf(raw);
  const read = body.ok ? readBody(refusal, body.value) : body;
  if (!read.ok) return refuseOnRecord(ports, asker.value, { action: '', resource: '' }, read.fault);
  const { bearer, claimed } = asker.value;
  const { action, resource } = read.value;
  const reason = `refused on the agent's side: ${redactShort(read.value.reason, MAX_REASON)}`;
  const recorded = await recordRefusal(ports, bearer, { claimed, action, resource, reason });
  if (!recorded.ok) return recorded;
  return ok({ status: 200, body: { reason: recorded.value.reason, audit_id: recorded.value.auditId ?? null } });
}

/** A key may speak for many agents and is none. */
const none = async (): Promise<HttpReply> => fail({ kind: 'not_found', what: 'an agent whose own token this is' });

async function deregister({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  // An agent without an org has an empty first half, which a path cannot hold: there it is written as `-`.
  const orgId = params.org === '-' ? '' : (params.org ?? '');
  const agent = parseAgentKey([orgId, params.team, params.agent].join('/'));
  if (agent === undefined) return invalid('path', 'must be /api/v1/agents/{org}/{team}/{agent}');
  const { reply } = await link.ask({ type: 'deregister-agent', principal, agent });
  return reply.ok ? ok({ status: 204, headers: unconfirmedHeaders(reply) }) : reply;
}

export const agentRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/agents',
    access: { scope: 'write' },
    summary: 'Registers an agent, or rotates its token',
    answers: { 200: agentRegistered, 201: agentRegistered },
    refusals: [409],
    ...withBody(registration, register),
  },
  {
    method: 'get',
    path: '/api/v1/agents',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Lists registered agents',
    answers: { 200: agentPage },
    ...withListing(['team_id', 'agent_id'], list),
  },
  {
    method: 'get',
    path: '/api/v1/agents/self',
    access: { scope: 'read' },
    summary: "Shows the owner of the caller's token; 404 for any credential but an agent's own token",
    answers: { 200: ownAgent },
    refusals: [404],
    handle: none,
    handleOwn: own,
  },
  {
    method: 'post',
    path: '/api/v1/agents/self/refusals',
    access: 'agent',
    limit: 'none',
    summary: 'Records a refusal on the side of the agent, without a check',
    body: refusal,
    answers: { 200: recordedRefusal },
    refusals: [415],
    handle: recordOwn,
  },
  {
    method: 'delete',
    path: '/api/v1/agents/:org/:team/:agent',
    access: { scope: 'write' },
    summary: 'Deregisters an agent',
    answers: { 204: 'empty' },
    handle: deregister,
  },
];
