/** People: signing in and out, invites, resets, and looking after accounts (docs/spec.md, HTTP). */
import { z } from 'zod';
import type { SeenAccount } from '../../accounts/access.ts';
import type { ChangedAccount } from '../../accounts/admin.ts';
import type { OpenInvite } from '../../accounts/invite-admin.ts';
import { fail, ok } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { Account } from '../../core/identity/account.ts';
import type { ApiKey } from '../../core/identity/api-key.ts';
import { ROLES } from '../../core/identity/roles.ts';
import type { NamedWebhook } from '../../core/webhooks/webhook.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, HttpRequest, Route } from '../engine/route.ts';
import { optional } from '../shared/input.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { type Listing, name, optionalOr, readCascade, withBody, withListing } from './body.ts';
import {
  accountPage,
  changedAccount,
  createdAccount,
  createdInvite,
  invitePage,
  issuedReset,
  ownAccount,
  shownAccount,
} from './identity-shapes.ts';
import { signInRoutes, WAYS_TO_SIGN_IN } from './sign-in.ts';
import { pageView, rfc3339OrNull } from './views.ts';

export type AccountRouteOptions = {
  /** Whether SVC_DATABASE_URL is set. Without it every row but `methods` answers 503 to every request. */
  readonly hasAccountStore: boolean;
  /** How many logins may run or wait at once. */
  readonly maxLogins: number;
};

const registration = z.strictObject({
  email: z.string(),
  password: z.string(),
  setup_token: optional(z.string().meta({ description: 'From the setup link, for the first account.' })),
});
const role = z.enum(ROLES, `must be one of ${ROLES.join(', ')}`);
const invitation = z.strictObject({ email: z.string(), role: optionalOr(role, 'developer'), org_id: optional(name) });
const acceptance = z.strictObject({ invite_token: z.string(), password: z.string() });
const resetRequest = z.strictObject({ email: z.string() });
const resetConfirmation = z.strictObject({ reset_token: z.string(), new_password: z.string() });
const roleChange = z.strictObject({ role });

/** An account as its owner sees it right after creating it. */
const newAccountView = ({ id, email, role, orgId, createdAtMs }: Account) => ({
  id,
  email,
  role,
  org_id: orgId,
  created_at: rfc3339(createdAtMs),
});

const accountView = (account: SeenAccount) => ({
  ...newAccountView(account),
  disabled: account.disabled,
  last_login_at: rfc3339OrNull(account.lastLoginAtMs),
  locked_until: rfc3339OrNull(account.lockedUntilMs),
});

async function register(
  { body, bearer, remoteAddress }: HttpRequest<typeof registration>,
  link: Link,
): Promise<HttpReply> {
  const { email, password, setup_token: setupToken } = body;
  const registered = await link.call('register', { email, password, setupToken, bearer, address: remoteAddress });
  return registered.ok ? ok({ status: 201, body: { account: newAccountView(registered.value) } }) : registered;
}

async function invite({ principal, body }: Authorized<typeof invitation>, link: Link): Promise<HttpReply> {
  const { email, role, org_id: orgId } = body;
  const made = await link.call('invite', { principal, email, role, orgId });
  if (!made.ok) return made;
  const { inviteToken, expiresAtMs, ...rest } = made.value;
  return ok({
    status: 201,
    body: {
      invite_token: inviteToken,
      email: rest.email,
      role: rest.role,
      org_id: rest.orgId,
      expires_at: rfc3339(expiresAtMs),
    },
  });
}

async function acceptInvite({ body }: HttpRequest<typeof acceptance>, link: Link): Promise<HttpReply> {
  const accepted = await link.call('acceptInvite', { inviteToken: body.invite_token, password: body.password });
  return accepted.ok ? ok({ status: 201, body: { account: newAccountView(accepted.value) } }) : accepted;
}

async function listInvites(listing: Listing, link: Link): Promise<HttpReply> {
  const listed = await link.call('listInvites', listing);
  return listed.ok ? ok({ status: 200, body: pageView('invites', listed.value, inviteView) }) : listed;
}

const inviteView = ({ id, email, role, orgId, invitedBy, createdAtMs, expiresAtMs }: OpenInvite) => ({
  id,
  email,
  role,
  org_id: orgId,
  invited_by: invitedBy,
  created_at: rfc3339(createdAtMs),
  expires_at: rfc3339(expiresAtMs),
});

async function revokeInvite({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const revoked = await link.call('revokeInvite', { principal, inviteId: params.id ?? '' });
  return revoked.ok ? ok({ status: 204 }) : revoked;
}

async function requestPasswordReset({ body }: HttpRequest<typeof resetRequest>, link: Link): Promise<HttpReply> {
  const accepted = await link.call('requestPasswordReset', body);
  return accepted.ok ? ok({ status: 202 }) : accepted;
}

async function confirmPasswordReset({ body }: HttpRequest<typeof resetConfirmation>, link: Link): Promise<HttpReply> {
  const confirmed = await link.call('confirmPasswordReset', {
    resetToken: body.reset_token,
    newPassword: body.new_password,
  });
  return confirmed.ok ? ok({ status: 204, headers: unconfirmedHeaders(confirmed) }) : confirmed;
}

async function me({ principal }: Authorized, link: Link): Promise<HttpReply> {
  const found = await link.call('me', { principal });
  return found.ok ? ok({ status: 200, body: { account: accountView(found.value), scopes: principal.scopes } }) : found;
}

async function list(listing: Listing, link: Link): Promise<HttpReply> {
  const listed = await link.call('listAccounts', listing);
  return listed.ok ? ok({ status: 200, body: pageView('accounts', listed.value, accountView) }) : listed;
}

async function get({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const found = await link.call('getAccount', { principal, accountId: params.id ?? '' });
  return found.ok ? ok({ status: 200, body: { account: accountView(found.value) } }) : found;
}

async function changeRole(
  { principal, params, query, body }: Authorized<typeof roleChange>,
  link: Link,
): Promise<HttpReply> {
  const cascade = readCascade(query);
  if (!cascade.ok) return cascade;
  const changed = await link.call('changeRole', {
    principal,
    accountId: params.id ?? '',
    role: body.role,
    cascade: cascade.value,
  });
  return changed.ok
    ? ok({ status: 200, headers: unconfirmedHeaders(changed), body: changedView(changed.value) })
    : changed;
}

/** With the keys and webhooks that it had made, where there are any. */
const changedView = ({ made: { revoked, kept, webhooks }, ...account }: ChangedAccount) => ({
  account: accountView(account),
  ...(revoked.length > 0 && { revoked_keys: revoked.map(namedKey) }),
  ...(kept.length > 0 && { kept_keys: kept.map(namedKey) }),
  ...(webhooks.deleted.length > 0 && { deleted_webhooks: webhooks.deleted.map(namedHook) }),
  ...(webhooks.kept.length > 0 && { kept_webhooks: webhooks.kept.map(namedHook) }),
});

const namedKey = ({ id, name }: ApiKey) => ({ id, name });
const namedHook = ({ id, url }: NamedWebhook) => ({ id, url });

const setDisabled =
  (disabled: boolean) =>
  async ({ principal, params, query }: Authorized, link: Link): Promise<HttpReply> => {
    const cascade = readCascade(query);
    if (!cascade.ok) return cascade;
    const changed = await link.call('setDisabled', {
      principal,
      accountId: params.id ?? '',
      disabled,
      cascade: cascade.value,
    });
    return changed.ok
      ? ok({ status: 200, headers: unconfirmedHeaders(changed), body: changedView(changed.value) })
      : changed;
  };

async function unlock({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const unlocked = await link.call('unlock', { principal, accountId: params.id ?? '' });
  return unlocked.ok ? ok({ status: 200, body: { account: accountView(unlocked.value) } }) : unlocked;
}

async function issueReset({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const issued = await link.call('issuePasswordReset', { principal, account: params.id ?? '' });
  if (!issued.ok) return issued;
  const { resetToken, link: url, email, expiresAtMs } = issued.value;
  return ok({ status: 200, body: { reset_token: resetToken, link: url, email, expires_at: rfc3339(expiresAtMs) } });
}

/** Ends the sessions of the account in the path or, on the path without one, of the caller. */
async function revokeSessions({ principal, params }: Authorized, link: Link): Promise<HttpReply> {
  const accountId = params.id ?? principal.subject.replace(/^account:/, '');
  const revoked = await link.call('revokeSessions', { principal, accountId });
  return revoked.ok ? ok({ status: 204, headers: unconfirmedHeaders(revoked) }) : revoked;
}

const ADMIN = { scope: 'admin' } as const;
const READ = { scope: 'read' } as const;

const registrationRoutes = ({ maxLogins }: AccountRouteOptions): readonly Route[] => [
  {
    method: 'post',
    path: '/api/v1/auth/register',
    access: 'public',
    credentials: ['none', 'bearer'],
    atOnce: { limit: maxLogins, what: 'registration' },
    summary: 'Registers the first account, or any account if registration is open',
    answers: { 201: createdAccount },
    refusals: [403, 409, 422],
    ...withBody(registration, register),
  },
];

const INVITE_ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/auth/invite',
    access: ADMIN,
    summary: 'Creates an invite and shows its token once',
    answers: { 201: createdInvite },
    refusals: [409],
    ...withBody(invitation, invite),
  },
  {
    method: 'post',
    path: '/api/v1/auth/invite/accept',
    access: 'public',
    summary: 'Accepts an invite: creates the account and sets its password',
    answers: { 201: createdAccount },
    refusals: [409, 422],
    ...withBody(acceptance, acceptInvite),
  },
  {
    method: 'get',
    path: '/api/v1/auth/invites',
    access: ADMIN,
    summary: 'Lists open invites',
    answers: { 200: invitePage },
    ...withListing([], listInvites),
  },
  {
    method: 'post',
    path: '/api/v1/auth/invites/:id/revoke',
    access: ADMIN,
    summary: 'Revokes an open invite',
    answers: { 204: 'empty' },
    refusals: [409],
    handle: revokeInvite,
  },
];

/** Routes for people's own accounts. */
const OWN_ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/auth/password/reset',
    access: 'public',
    summary: 'Requests a password reset e-mail',
    answers: { 202: 'empty' },
    ...withBody(resetRequest, requestPasswordReset),
  },
  {
    method: 'post',
    path: '/api/v1/auth/password/reset/confirm',
    access: 'public',
    summary: 'Sets a new password with a reset token',
    answers: { 204: 'empty' },
    refusals: [422],
    ...withBody(resetConfirmation, confirmPasswordReset),
  },
  {
    method: 'get',
    path: '/api/v1/auth/me',
    access: READ,
    summary: 'Shows the account of the caller',
    answers: { 200: ownAccount },
    refusals: [404],
    handle: me,
  },
  {
    method: 'post',
    path: '/api/v1/auth/sessions/revoke',
    access: READ,
    summary: 'Signs the caller out everywhere',
    answers: { 204: 'empty' },
    refusals: [404],
    handle: revokeSessions,
  },
];

const ACCOUNT_ROUTES: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/accounts',
    access: ADMIN,
    summary: 'Lists accounts',
    answers: { 200: accountPage },
    ...withListing([], list),
  },
  {
    method: 'get',
    path: '/api/v1/accounts/:id',
    access: ADMIN,
    summary: 'Shows an account',
    answers: { 200: shownAccount },
    handle: get,
  },
  {
    method: 'post',
    path: '/api/v1/accounts/:id/role',
    access: ADMIN,
    summary: 'Changes the role of an account; API keys that it made and may not hold any more end',
    query: ['cascade'],
    answers: { 200: changedAccount },
    refusals: [409],
    ...withBody(roleChange, changeRole),
  },
  {
    method: 'post',
    path: '/api/v1/accounts/:id/disable',
    access: ADMIN,
    summary: 'Disables an account; API keys that it made end',
    query: ['cascade'],
    answers: { 200: changedAccount },
    refusals: [409],
    handle: setDisabled(true),
  },
  {
    method: 'post',
    path: '/api/v1/accounts/:id/enable',
    access: ADMIN,
    summary: 'Enables a disabled account',
    answers: { 200: shownAccount },
    handle: setDisabled(false),
  },
  {
    method: 'post',
    path: '/api/v1/accounts/:id/unlock',
    access: ADMIN,
    summary: 'Lifts the lock that failed sign-ins have put on an account',
    answers: { 200: shownAccount },
    handle: unlock,
  },
  {
    method: 'post',
    path: '/api/v1/accounts/:id/reset',
    access: ADMIN,
    summary: 'Makes a link with which somebody sets a new password for the account; shown once',
    answers: { 200: issuedReset },
    refusals: [409],
    handle: issueReset,
  },
  {
    method: 'post',
    path: '/api/v1/accounts/:id/sessions/revoke',
    access: ADMIN,
    summary: 'Signs an account out everywhere',
    answers: { 204: 'empty' },
    handle: revokeSessions,
  },
];

const unavailable = async (): Promise<HttpReply> => fail({ kind: 'account_store_unavailable' });

export function accountRoutes(options: AccountRouteOptions): readonly Route[] {
  const native = [
    ...registrationRoutes(options),
    ...signInRoutes(options.maxLogins),
    ...INVITE_ROUTES,
    ...OWN_ROUTES,
    ...ACCOUNT_ROUTES,
  ];
  return [
    WAYS_TO_SIGN_IN,
    ...(options.hasAccountStore
      ? native
      : native.map(
          ({ atOnce: _, ...row }): Route => ({ ...row, access: 'public', isBodyIgnored: true, handle: unavailable }),
        )),
  ];
}
