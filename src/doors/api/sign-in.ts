/** Signing in and out, and the cookies that this takes (docs/spec.md, Sessions). */
import { z } from 'zod';
import { DEVICE_MS } from '../../accounts/device.ts';
import type { SignIn } from '../../accounts/login.ts';
import { fail, ok } from '../../core/base/result.ts';
import { ACCESS_TOKEN_SECS } from '../../core/identity/account.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import { problemOf } from '../engine/reply.ts';
import type { HttpReply, HttpRequest, Route } from '../engine/route.ts';
import type { Header } from '../shared/http-answer.ts';
import { optional } from '../shared/input.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { withBody } from './body.ts';
import { signedIn, signInMethods } from './identity-shapes.ts';

/** Carries the refresh token. */
export const REFRESH_COOKIE = 'svc_refresh';

/**
 * Sent only over TLS (or to localhost), from pages of this site, to the authentication endpoints. No script can read
 * it.
 */
const ATTRIBUTES = 'Path=/api/v1/auth; HttpOnly; Secure; SameSite=Strict';

const setRefreshCookie = (token: string, lifetimeMs: number): Header => [
  'Set-Cookie',
  `${REFRESH_COOKIE}=${token}; Max-Age=${Math.floor(lifetimeMs / 1000)}; ${ATTRIBUTES}`,
];

/** By which a device is known that has signed in before (docs/spec.md, Lockout). It opens nothing. */
const DEVICE_COOKIE = 'svc_device';
const setDeviceCookie = (device: string): Header => [
  'Set-Cookie',
  `${DEVICE_COOKIE}=${device}; Max-Age=${DEVICE_MS / 1000}; Path=/api/v1/auth/login; HttpOnly; Secure; SameSite=Strict`,
];

const clearRefreshCookie = (): Header => ['Set-Cookie', `${REFRESH_COOKIE}=; Max-Age=0; ${ATTRIBUTES}`];

function readCookie(headers: ReadonlyMap<string, string>, wanted: string): string | undefined {
  for (const pair of headers.get('cookie')?.split(';') ?? []) {
    const [name, value] = pair.split('=', 2);
    if (name?.trim() === wanted) return value?.trim();
  }
  return undefined;
}

const loginRequest = z.strictObject({ email: z.string(), password: z.string(), remember_me: optional(z.boolean()) });

const signInReply = ({ access, refreshToken, refreshLifetimeMs, device }: SignIn): HttpReply =>
  ok({
    status: 200,
    headers: [
      setRefreshCookie(refreshToken, refreshLifetimeMs),
      ...(device === undefined ? [] : [setDeviceCookie(device)]),
    ],
    body: {
      access_token: access.token,
      token_type: 'Bearer',
      expires_in: ACCESS_TOKEN_SECS,
      expires_at: access.expiresAtSecs,
      scopes: access.scopes,
    },
  });

async function methods(_request: HttpRequest, link: Link): Promise<HttpReply> {
  const found = await link.call('signInMethods', {});
  if (!found.ok) return found;
  const { methods: ways, registration: state, isSetupRequired, canSendMail } = found.value;
  return ok({
    status: 200,
    body: {
      methods: ways,
      registration: state,
      ...(isSetupRequired && { setup_required: true }),
      ...(state !== undefined && { reset_by_mail: canSendMail }),
    },
  });
}

async function login(
  { body, headers, remoteAddress }: HttpRequest<typeof loginRequest>,
  link: Link,
): Promise<HttpReply> {
  const { email, password, remember_me: rememberMe = false } = body;
  const device = readCookie(headers, DEVICE_COOKIE);
  const signedIn = await link.call('login', { email, password, rememberMe, address: remoteAddress, device });
  return signedIn.ok ? signInReply(signedIn.value) : signedIn;
}

async function refresh({ headers }: HttpRequest, link: Link): Promise<HttpReply> {
  const refreshToken = readCookie(headers, REFRESH_COOKIE);
  if (refreshToken === undefined)
    return fail({ kind: 'unauthenticated', detail: 'no refresh cookie was sent; sign in' });
  const refreshed = await link.call('refresh', { refreshToken });
  if (refreshed.ok) return signInReply(refreshed.value);
  if (refreshed.fault.kind !== 'unauthenticated') return refreshed;
  // The cookie will never be valid again, so the browser may forget it.
  const problem = problemOf(refreshed.fault);
  return ok({ ...problem, headers: [...(problem.headers ?? []), clearRefreshCookie()] });
}

/** The cookie is cleared only when the session is known to be over: with the database away, the answer is 503. */
async function logout({ headers }: HttpRequest, link: Link): Promise<HttpReply> {
  const ended = await link.call('logout', { refreshToken: readCookie(headers, REFRESH_COOKIE) });
  return ended.ok ? ok({ status: 204, headers: [clearRefreshCookie(), ...unconfirmedHeaders(ended)] }) : ended;
}

export const WAYS_TO_SIGN_IN: Route = {
  method: 'get',
  path: '/api/v1/auth/methods',
  access: 'public',
  summary: 'Lists the ways to sign in',
  answers: { 200: signInMethods },
  handle: methods,
};

export const signInRoutes = (maxLogins: number): readonly Route[] => [
  {
    method: 'post',
    path: '/api/v1/auth/login',
    access: 'public',
    atOnce: { limit: maxLogins, what: 'sign-in' },
    summary: 'Signs in with e-mail and password',
    answers: { 200: signedIn },
    headers: ['Set-Cookie'],
    refusals: [401, 423],
    ...withBody(loginRequest, login),
  },
  {
    method: 'post',
    path: '/api/v1/auth/refresh',
    access: 'public',
    credentials: ['refresh_cookie'],
    summary: 'Exchanges the refresh cookie for a new access token',
    answers: { 200: signedIn },
    headers: ['Set-Cookie'],
    refusals: [401, 403, 409],
    handle: refresh,
  },
  {
    method: 'post',
    path: '/api/v1/auth/logout',
    access: 'public',
    isBodyIgnored: true,
    credentials: ['refresh_cookie', 'none'],
    summary: 'Ends the session of the refresh cookie',
    answers: { 204: 'empty' },
    headers: ['Set-Cookie'],
    refusals: [403],
    handle: logout,
  },
];
