/** Machine credentials: the token exchange, API keys, signing keys (docs/spec.md, HTTP). */
import { z } from 'zod';
import { fail, ok } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { ApiKey } from '../../core/identity/api-key.ts';
import { SCOPES } from '../../core/identity/roles.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, HttpRequest, Route } from '../engine/route.ts';
import type { Header } from '../shared/http-answer.ts';
import { optional, readBody } from '../shared/input.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { type Listing, name, readCascade, readNames, time, withBody, withListing } from './body.ts';
import { createdKeyShape, jwkSet, keyPage, ownKey, rotatedKey, tokenShape } from './identity-shapes.ts';
import { pageView, rfc3339OrNull } from './views.ts';

const SCOPE_WORDS = SCOPES.join(', ');
/**
 * Bounded, as any list of a body must be: each wrong item is an issue, and half a million held up all others for
 * seconds.
 */
const scopes = z
  .array(z.enum(SCOPES, `must be one of ${SCOPE_WORDS}`), `must be a list of ${SCOPE_WORDS}`)
  .max(SCOPES.length, `must be a list of ${SCOPE_WORDS}, each at most once`)
  .meta({ minItems: 1 });

const exchangeRequest = z.strictObject({ scopes: optional(scopes) });

const keyRequest = z.strictObject({
  name: z.string(),
  scopes,
  org_id: optional(name),
  expires_at: optional(time),
});

const keyView = (key: ApiKey) => ({
  id: key.id,
  name: key.name,
  hint: key.hint,
  scopes: key.scopes,
  org_id: key.orgId,
  created_at: rfc3339(key.createdAtMs),
  created_by: key.createdBy,
  expires_at: rfc3339OrNull(key.expiresAtMs),
  revoked_at: rfc3339OrNull(key.revokedAtMs),
  last_used_at: rfc3339OrNull(key.lastUsedAtMs),
});

async function exchange({ bearer, body }: HttpRequest, link: Link): Promise<HttpReply> {
  if (bearer === undefined)
    return fail({ kind: 'unauthenticated', detail: 'no API key presented; send it as Authorization: Bearer <key>' });
  const asked = readBody(exchangeRequest, body);
  if (!asked.ok) return asked;
  const minted = await link.call('exchangeToken', { bearer, scopes: asked.value.scopes });
  if (!minted.ok) return minted;
  return ok({
    status: 200,
    body: { token: minted.value.token, expires_at: minted.value.expiresAtSecs, scopes: minted.value.scopes },
  });
}

async function create({ principal, body }: Authorized<typeof keyRequest>, link: Link): Promise<HttpReply> {
  const { org_id: orgId, expires_at: expiresAtMs, ...rest } = body;
  const created = await link.call('createApiKey', { principal, key: { ...rest, orgId, expiresAtMs } });
  return created.ok ? ok({ status: 201, body: { key: created.value.key, ...keyView(created.value.record) } }) : created;
}

async function list(listing: Listing, link: Link, { query }: Authorized): Promise<HttpReply> {
  const names = readNames(query, ['made_by']);
  if (!names.ok) return names;
  const listed = await link.call('listApiKeys', { ...listing, madeBy: names.value.made_by });
  return listed.ok ? ok({ status: 200, body: pageView('api_keys', listed.value, keyView) }) : listed;
}

/** Describes the key to its bearer, with no more than the bearer has to know. */
async function own({ principal }: Authorized, link: Link): Promise<HttpReply> {
  const found = await link.call('ownApiKey', { principal });
  if (!found.ok) return found;
  const { id, name, scopes, org_id, expires_at } = keyView(found.value);
  return ok({ status: 200, body: { id, name, scopes, org_id, expires_at } });
}

async function revoke({ principal, params, query }: Authorized, link: Link): Promise<HttpReply> {
  const cascade = readCascade(query);
  if (!cascade.ok) return cascade;
  const revoked = await link.call('revokeApiKey', { principal, id: params.id ?? '', cascade: cascade.value });
  if (!revoked.ok) return revoked;
  return ok({
    status: 204,
    headers: [
      ...unconfirmedHeaders(revoked),
      ...idsHeader('svc-revoked-keys', revoked.value.revoked),
      ...idsHeader('svc-kept-keys', revoked.value.kept),
      ...idsHeader('svc-deleted-webhooks', revoked.value.webhooks.deleted),
      ...idsHeader('svc-kept-webhooks', revoked.value.webhooks.kept),
    ],
  });
}

/** A header stays short; the audit log and the lists have all of them. */
const MAX_NAMED = 100;

/** The ids of what the revoked key had made. */
const idsHeader = (name: string, made: readonly { readonly id: string }[]): readonly Header[] =>
  made.length === 0
    ? []
    : [
        [
          name,
          made
            .slice(0, MAX_NAMED)
            .map(({ id }) => id)
            .join(', '),
        ],
      ];

async function rotate({ principal }: Authorized, link: Link): Promise<HttpReply> {
  const rotated = await link.call('rotateSigningKey', { principal });
  return rotated.ok ? ok({ status: 200, body: { kid: rotated.value.kid } }) : rotated;
}

async function jwks(_request: HttpRequest, link: Link): Promise<HttpReply> {
  const found = await link.call('jwks', {});
  return found.ok ? ok({ status: 200, body: found.value }) : found;
}

const ADMIN = { scope: 'admin' } as const;

/** Served with and without the version (docs/spec.md, API keys). */
const keyRoutes = (prefix: '/api/v1' | ''): readonly Route[] => [
  {
    method: 'post',
    path: `${prefix}/iam/api-keys`,
    access: ADMIN,
    summary: 'Creates an API key and shows it once',
    answers: { 201: createdKeyShape },
    refusals: [409],
    ...withBody(keyRequest, create),
  },
  {
    method: 'get',
    path: `${prefix}/iam/api-keys`,
    access: ADMIN,
    summary: 'Lists API keys, newest first',
    answers: { 200: keyPage },
    ...withListing(['made_by'], list),
  },
  {
    method: 'post',
    path: `${prefix}/iam/api-keys/:id/revoke`,
    access: ADMIN,
    summary: 'Revokes an API key, every token minted from it, and the keys and webhooks that it made',
    query: ['cascade'],
    answers: { 204: 'empty' },
    handle: revoke,
  },
];

export const credentialRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/auth/token',
    access: 'public',
    credentials: ['bearer'],
    summary: 'Exchanges an API key for a scoped access token',
    body: exchangeRequest,
    answers: { 200: tokenShape },
    refusals: [401, 403],
    handle: exchange,
  },
  {
    method: 'get',
    path: '/api/v1/iam/api-keys/self',
    access: { scope: 'read' },
    summary: 'Shows the API key of the caller',
    answers: { 200: ownKey },
    refusals: [404],
    handle: own,
  },
  ...keyRoutes('/api/v1'),
  ...keyRoutes(''),
  {
    method: 'post',
    path: '/api/v1/iam/signing-keys/rotate',
    access: ADMIN,
    summary: 'Rotates the key that signs access tokens; the previous key still verifies',
    answers: { 200: rotatedKey },
    refusals: [409],
    handle: rotate,
  },
  {
    method: 'get',
    path: '/.well-known/jwks.json',
    access: 'public',
    summary: 'Lists the public keys that verify access tokens',
    answers: { 200: jwkSet },
    handle: jwks,
  },
];
