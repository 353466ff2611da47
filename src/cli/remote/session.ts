/**
 * Sessions: an API key exchanged for a token, and again when that runs out (docs/spec.md, Credentials of the command
 * line).
 */

import { type Answer, isSuccess } from '../../client/answer.ts';
import type { Gateway } from '../../client/connection.ts';
import { CliError, RefusedError } from '../errors.ts';
import { note } from '../terminal/output.ts';
import { isPage, jsonOf, misspoken, NO_GATEWAY_ADVICE, problemIn, retryAfterSecsOf, send, waitAdvice } from './http.ts';
import { isSecret, renewSession, type Session } from './session-file.ts';
import type { Target } from './target.ts';

/** A token that has less than this left is renewed first: it has to live until the request arrives. */
const RENEW_AHEAD_SECS = 30;

export type Exchange =
  | { readonly kind: 'minted'; readonly session: Session }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'forbidden'; readonly detail: string };

/** `scopes` undefined asks for all that the key holds. */
export async function exchangeKey(
  gateway: Gateway,
  key: string,
  scopes: readonly string[] | undefined,
): Promise<Exchange> {
  const { apiUrl } = gateway;
  const answer = await send(gateway, { method: 'POST', path: '/api/v1/auth/token', body: { scopes } }, key);
  if (isPage(answer) && !isSuccess(answer)) throw noSession(answer);
  if (answer.status === 401) return { kind: 'rejected' };
  if (answer.status === 403) return { kind: 'forbidden', detail: problemIn(answer).detail };
  if (!isSuccess(answer)) throw noSession(answer);
  const session = sessionFrom(apiUrl, key, jsonOf(apiUrl, answer));
  if (session === undefined) throw misspoken(apiUrl);
  return { kind: 'minted', session };
}

function noSession(answer: Answer): CliError {
  const { status, code, detail } = problemIn(answer);
  const advice = waitAdvice(answer) ?? (code === undefined ? NO_GATEWAY_ADVICE : undefined);
  return new RefusedError(
    `the gateway did not create a session: ${detail}`,
    advice ?? (status === 429 ? 'Wait a moment and try again.' : undefined),
    { status, code, retryAfterSecs: retryAfterSecsOf(answer) },
  );
}

function sessionFrom(apiUrl: string, sourceKey: string, raw: unknown): Session | undefined {
  const { token, expires_at: expiresAtSecs, scopes } = (raw ?? {}) as Readonly<Record<string, unknown>>;
  const isWhole =
    isSecret(token) &&
    typeof expiresAtSecs === 'number' &&
    Array.isArray(scopes) &&
    scopes.every((scope) => typeof scope === 'string');
  return isWhole ? { apiUrl, token, expiresAtSecs, scopes, sourceKey } : undefined;
}

export const isRunningOut = ({ expiresAtSecs }: Session, nowMs: number): boolean =>
  nowMs / 1000 >= expiresAtSecs - RENEW_AHEAD_SECS;

/** Mints the next token of a session and keeps it. Rejects as not logged in when its key is no longer good. */
export async function renew(target: Target, session: Session): Promise<Session> {
  const { label } = target;
  const exchange = await exchangeKey(target, session.sourceKey, session.scopes);
  switch (exchange.kind) {
    case 'rejected':
      throw notLoggedIn(
        label,
        'the session has ended because its API key was revoked or rotated, or has expired',
        target.apiKey === undefined || target.apiKey === session.sourceKey
          ? undefined
          : 'Run `svc login` to begin one with the API key that you gave: a session takes precedence over it.',
      );
    case 'forbidden':
      throw new CliError(`the session for ${label} cannot be renewed: ${exchange.detail}`, 'Run `svc login` again.');
    case 'minted':
      await keepRenewed(label, session, exchange.session);
      return exchange.session;
  }
}

/**
 * If the file cannot be written, the command goes on with the session it has, and every next one will renew it again.
 */
async function keepRenewed(label: string, session: Session, next: Session): Promise<void> {
  try {
    await renewSession(label, session, next);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    note(`warning: the renewed session cannot be stored: ${error.message}`);
  }
}

export const notLoggedIn = (label: string, why: string, advice = 'Run `svc login` first.'): CliError =>
  new CliError(`not logged in to ${label}: ${why}`, advice);
