/** The sets of policies that were in force, how they differ, and the set that is tried (docs/spec.md, HTTP). */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { ok, type Result } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import type { PolicyChange } from '../../core/policy/diff.ts';
import { viewOfReplay } from '../../core/policy/replay.ts';
import type { ListedVersion } from '../../use-cases/policy-history.ts';
import { DEFAULT_SHADOW_SECS, MAX_SHADOW_SECS } from '../../use-cases/policy-shadow.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { optional } from '../shared/input.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { name, optionalOr, readNames, readPage, time, withBody } from './body.ts';
import { policyFiles, textsOf } from './policies.ts';
import { policyDiff, policyVersion, policyVersions, shadowStarted, shadowStatus } from './policy-shapes.ts';
import { cursorView } from './views.ts';

const shadowing = z.strictObject({
  files: policyFiles,
  expires_in_secs: optionalOr(
    z.int().min(1).max(MAX_SHADOW_SECS).meta({ description: 'When it ends by itself.' }),
    DEFAULT_SHADOW_SECS,
  ),
});

const replaying = z.strictObject({
  files: optional(policyFiles),
  version: optional(z.string()).meta({ description: 'Of a set that the gateway keeps, in place of `files`.' }),
  since: optional(time),
  until: optional(time),
  org_id: optional(z.string()).meta({ description: 'Only checks of this org.' }),
  team_id: optional(name),
  agent_id: optional(name),
});

const versionView = ({ version, state, sinceMs, untilMs, by, documents, rules }: ListedVersion) => ({
  version,
  state,
  since: rfc3339(sinceMs),
  until: untilMs === undefined ? null : rfc3339(untilMs),
  by,
  documents,
  rules,
});

const changeView = ({ kind, document, scope, ruleId, before, after }: PolicyChange) => ({
  kind,
  document,
  scope,
  rule_id: ruleId ?? null,
  before: before ?? null,
  after: after ?? null,
});

async function listVersions({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const page = readPage(query);
  if (!page.ok) return page;
  const listed = await link.call('listPolicyVersions', { principal, ...page.value });
  if (!listed.ok) return listed;
  return ok({ status: 200, body: { versions: listed.value.items.map(versionView), ...cursorView(listed.value) } });
}

async function getVersion({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const found = await link.call('getPolicyVersion', { principal, version: params.version ?? '' });
  if (!found.ok) return found;
  const files = found.value.texts.map(({ file, text }) => ({ name: file, text }));
  return ok({ status: 200, body: { ...versionView(found.value), files } });
}

async function diff({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const names = readNames(query, ['from', 'to']);
  if (!names.ok) return names;
  const { from, to } = names.value;
  if (from === undefined) return invalid('from', 'is required: the version to compare with');
  const found = await link.call('diffPolicies', { principal, from, to });
  if (!found.ok) return found;
  return ok({ status: 200, body: { ...found.value, changes: found.value.changes.map(changeView) } });
}

async function startShadow({ principal, body }: Authorized<typeof shadowing>, link: Link): Promise<HttpReply> {
  const texts = textsOf(body.files);
  const started = await link.call('startShadow', { principal, texts, expiresInSecs: body.expires_in_secs });
  if (!started.ok) return started;
  const { version, documents, expiresAtMs, warnings } = started.value;
  const answer = { version, documents, expires_at: rfc3339(expiresAtMs), warnings };
  return ok({ status: 200, headers: unconfirmedHeaders(started), body: answer });
}

async function getShadow({ principal }: Authorized, link: Link): Promise<HttpReply> {
  const found = await link.call('getShadow', { principal });
  if (!found.ok) return found;
  const { version, sinceMs, expiresAtMs, by, checks, differing, errors, changes } = found.value;
  return ok({
    status: 200,
    body: {
      ...{ version, since: rfc3339(sinceMs), expires_at: rfc3339(expiresAtMs), by, checks, differing, errors },
      changes: changes.slice(0, MAX_SHOWN_CHANGES).map(({ from, to, policy, ruleId, count }) => ({
        ...{ from, to, policy: policy ?? null, rule_id: ruleId ?? null, count },
      })),
    },
  });
}

/** The most frequent ones. */
const MAX_SHOWN_CHANGES = 1_000;

async function stopShadow({ principal }: Authorized, link: Link): Promise<HttpReply> {
  const stopped = await link.call('stopShadow', { principal });
  return stopped.ok ? ok({ status: 204, headers: unconfirmedHeaders(stopped) }) : stopped;
}

async function replay({ principal, body, bearer = '' }: Authorized<typeof replaying>, link: Link): Promise<HttpReply> {
  const { files, version, since: sinceMs, until: untilMs } = body;
  const given = files === undefined ? version : files;
  if (given === undefined || (files !== undefined && version !== undefined))
    return invalid('files', 'give either files or the version of a set that is kept');
  const ticket = randomUUID();
  const set = typeof given === 'string' ? { version: given } : { texts: textsOf(given) };
  const filter = { orgId: body.org_id, teamId: body.team_id, agentId: body.agent_id, sinceMs, untilMs };
  const started = await link.call('startReplay', { principal, ticket, set, filter });
  if (!started.ok) return started;
  const { incomplete } = started.value;
  return ok({
    status: 200,
    headers: incomplete.length === 0 ? [] : [['svc-incomplete', incomplete.join(', ')]],
    stream: { type: 'application/x-ndjson', chunks: replayLines(ticket, bearer, link) },
  });
}

/** Ends with the result. A caller that leaves, or whose credential is revoked meanwhile, ends the replay. */
async function* replayLines(ticket: string, bearer: string, link: Link): AsyncGenerator<Result<Uint8Array, Fault>> {
  try {
    for (;;) {
      const known = await link.call('authenticate', { bearer });
      if (!known.ok) return yield known;
      const news = await link.call('nextReplay', { ticket });
      if (!news.ok) return yield news;
      const isLast = news.value.kind === 'result';
      const line =
        news.value.kind === 'result' ? { result: viewOfReplay(news.value.result) } : { progress: news.value.progress };
      yield ok(Buffer.from(`${JSON.stringify(line)}\n`));
      if (isLast) return;
    }
  } finally {
    await link.call('leaveReplay', { ticket });
  }
}

export const policyLifeRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/policies/versions',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Lists the sets of policies that were in force, newest first',
    query: ['per_page', 'cursor'],
    answers: { 200: policyVersions },
    handle: listVersions,
  },
  {
    method: 'get',
    path: '/api/v1/policies/versions/:version',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Shows a set of policies with its files',
    answers: { 200: policyVersion },
    refusals: [404],
    handle: getVersion,
  },
  {
    method: 'get',
    path: '/api/v1/policies/diff',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Compares two sets of policies, rule by rule',
    query: ['from', 'to'],
    answers: { 200: policyDiff },
    refusals: [404],
    handle: diff,
  },
  {
    method: 'put',
    path: '/api/v1/policies/shadow',
    access: { scope: 'admin' },
    summary: 'Has a second set of policies decide beside the one in force, without effect',
    answers: { 200: shadowStarted },
    refusals: [409, 503],
    ...withBody(shadowing, startShadow),
  },
  {
    method: 'get',
    path: '/api/v1/policies/shadow',
    access: { scope: 'read' },
    summary: 'Shows the shadow, and the checks it decides differently',
    answers: { 200: shadowStatus },
    refusals: [404],
    handle: getShadow,
  },
  {
    method: 'delete',
    path: '/api/v1/policies/shadow',
    access: { scope: 'admin' },
    summary: 'Ends the shadow',
    answers: { 204: 'empty' },
    refusals: [503],
    handle: stopShadow,
  },
  {
    method: 'post',
    path: '/api/v1/policies/replay',
    access: { scope: 'admin' },
    summary: 'Decides recorded checks again by another set of policies, with progress',
    answers: { 200: { mediaTypes: ['application/x-ndjson'] } },
    headers: ['svc-incomplete'],
    refusals: [404, 409, 503],
    ...withBody(replaying, replay),
  },
];
