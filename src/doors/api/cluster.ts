/** The gateways of a cluster (docs/cluster.md). */
import { z } from 'zod';
import { microToUsd } from '../../core/base/money.ts';
import { ok } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { ListedMember } from '../../use-cases/cluster.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { optionalOr, withBody } from './body.ts';
import { memberForgotten, memberList } from './shapes.ts';

const forgetting = z.strictObject({
  name: z.string().meta({ description: 'The name of the gateway.' }),
  unspent: optionalOr(z.enum(['charge', 'free'], 'must be charge or free'), 'charge').meta({
    description: 'The fate of its grants that are not reported as spent.',
  }),
});

const memberView = (member: ListedMember) => ({
  name: member.name,
  run: member.run,
  state: member.state,
  version: member.version,
  lease_until: rfc3339(member.leaseUntilMs),
  skew_ms: member.skewMs,
  policy_version: member.policyVersion ?? null,
  audit_head: member.auditHead ?? null,
  bus: member.isOnBus === undefined ? null : member.isOnBus ? 'connected' : 'cut_off',
  unconfirmed: member.unconfirmed,
  stranded_usd: microToUsd(member.strandedMicroUsd),
});

async function list({ principal }: Authorized, link: Link): Promise<HttpReply> {
  const listed = await link.call('listMembers', { principal });
  return listed.ok ? ok({ status: 200, body: { members: listed.value.members.map(memberView) } }) : listed;
}

async function forget({ principal, body }: Authorized<typeof forgetting>, link: Link): Promise<HttpReply> {
  const freesUnspent = body.unspent === 'free';
  const forgotten = await link.call('forgetMember', { principal, name: body.name, freesUnspent });
  return forgotten.ok ? ok({ status: 200, body: { unspent_usd: microToUsd(forgotten.value.microUsd) } }) : forgotten;
}

export const clusterRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/cluster',
    access: { scope: 'read' },
    summary: 'Lists the gateways of the cluster; 404 for a gateway outside one',
    answers: { 200: memberList },
    refusals: [404, 503],
    handle: list,
  },
  {
    method: 'post',
    path: '/api/v1/cluster/forget',
    access: { scope: 'admin' },
    summary: 'Forgets a gateway that will not return',
    answers: { 200: memberForgotten },
    refusals: [404, 409, 503],
    ...withBody(forgetting, forget),
  },
];
