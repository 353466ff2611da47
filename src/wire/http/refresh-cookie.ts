/** The cookie that carries the refresh token (spec: Authentication 5). */
import type { Header } from '../http-answer.ts';

export const REFRESH_COOKIE = 'svc_refresh';

/**
 * Sent only over TLS (or to localhost), from pages of this site, to the authentication endpoints. No script can read
 * it.
 */
const ATTRIBUTES = 'Path=/api/v1/auth; HttpOnly; Secure; SameSite=Strict';

export const setRefreshCookie = (token: string, lifetimeMs: number): Header => [
  'Set-Cookie',
  `${REFRESH_COOKIE}=${token}; Max-Age=${Math.floor(lifetimeMs / 1000)}; ${ATTRIBUTES}`,
];

export const clearRefreshCookie = (): Header => ['Set-Cookie', `${REFRESH_COOKIE}=; Max-Age=0; ${ATTRIBUTES}`];

export function readRefreshCookie(headers: ReadonlyMap<string, string>): string | undefined {
  for (const pair of headers.get('cookie')?.split(';') ?? []) {
    const [name, value] = pair.split('=', 2);
    if (name?.trim() === REFRESH_COOKIE) return value?.trim();
  }
  return undefined;
}
