/**
 * Who is signed in. A key is exchanged at once and forgotten; its token lives in this tab's sessionStorage. A person's
 * access token lives in memory only, and the refresh cookie, which no script can read, renews it.
 */
import { signal } from '@preact/signals';
import type { Account, Scope } from '../base/api-types.ts';
import { nowMs } from '../base/clock.ts';
import { Problem, request } from '../base/request.ts';
import { impliesScope, ROLES, type Role } from './rights.ts';

export type Session = {
  readonly kind: 'key' | 'account';
  readonly token: string;
  /** Keys expire by the gateway's clock, accounts by this browser's. */
  readonly expiresAtSecs: number;
  readonly scopes: readonly Scope[];
  /** Bound to this org; null sees all. */
  readonly orgId: string | null;
  /** The role of an account; a key has none. */
  readonly role?: Role;
  /** The name in the audit log; another tab may sign in another account. */
  readonly subject: string;
  readonly name: string;
};

const TAB_KEY = 'svc.session';
/** Set while there may be a refresh cookie, so that a first visit does not try to refresh. */
const ACCOUNT_HINT = 'svc.account';
const RENEW_BEFORE_SECS = 60;
const VISIT_ENDED = 'The session that started this has ended.';
const SOMEBODY_ELSE = 'Someone else signed in from another tab of this browser.';

export const session = signal<Session | undefined>(undefined);
/** Counts sign-outs: answers to what the last user asked must not reach the next. */
let departures = 0;
let onEnd: (reason: string, kind: Session['kind']) => void = () => undefined;
let onRoleChange: (role: string) => void = () => undefined;

/**
 * All tabs share one refresh cookie, and notify one another of its new owner (null: none). In a browser without such a
 * channel they notice when they next renew their token.
 */
const tabs = 'BroadcastChannel' in window ? new BroadcastChannel('svc.account') : undefined;
tabs?.addEventListener('message', ({ data: subject }) => {
  const mine = session.peek();
  if (mine?.kind === 'account' && mine.subject !== subject)
    leaveTo(subject === null ? 'You signed out in another tab.' : SOMEBODY_ELSE);
});

/** Sets who is called when the gateway no longer accepts the credential. */
export function whenEnded(listener: typeof onEnd): void {
  onEnd = listener;
}

/** Sets who is called when the account has been given another role. */
export function whenRoleChanged(listener: typeof onRoleChange): void {
  onRoleChange = listener;
}

export const can = (scope: Scope): boolean => impliesScope(session.value?.scopes ?? [], scope);

/** Whether the signed-in user may give somebody this role, or take it away. A key can at most be an admin. */
export const mayManage = (role: Role): boolean =>
  can('admin') && ROLES.indexOf(session.value?.role ?? 'admin') <= ROLES.indexOf(role);

/** The only org that the signed-in user sees; null: all. */
export const boundOrg = (): string | null => session.value?.orgId ?? null;

export async function signInWithKey(key: string): Promise<void> {
  const answer = await request('POST', '/api/v1/auth/token', { bearer: key }).catch((problem) => {
    throw problem.status === 401
      ? new Problem(401, {
          detail: 'This API key is unknown, expired or revoked. Check it, or ask an administrator for a new one.',
        })
      : problem;
  });
  const claims = claimsOf(answer.token);
  // The name is only shown: without it, the id will do.
  const { name } = await request('GET', '/api/v1/iam/api-keys/self', { bearer: answer.token }).catch(() => ({
    name: claims.sub,
  }));
  const opened: Session = {
    kind: 'key',
    token: answer.token,
    expiresAtSecs: answer.expires_at,
    scopes: answer.scopes,
    orgId: claims.org_id ?? null,
    name,
    subject: claims.sub,
  };
  sessionStorage.setItem(TAB_KEY, JSON.stringify(opened));
  session.value = opened;
}

export async function signInWithPassword(email: string, password: string, rememberMe: boolean): Promise<void> {
  const body = { email, password, remember_me: rememberMe };
  await acceptToken(await request('POST', '/api/v1/auth/login', { body }));
}

/** Takes up the session of this tab or of the refresh cookie. False when there is none. */
export async function restore(): Promise<boolean> {
  const kept = readKept();
  if (kept !== undefined) {
    session.value = kept;
    return true;
  }
  if (localStorage.getItem(ACCOUNT_HINT) === null) return false;
  return renew().then(
    () => true,
    (problem) => {
      if (problem.status !== 401) throw problem;
      forget(); // a link may have been opened in the tab of a user who was signed in
      return false;
    },
  );
}

export async function signOut(): Promise<void> {
  const ended = session.peek();
  forget();
  if (ended?.kind !== 'account') return;
  tabs?.postMessage(null);
  await request('POST', '/api/v1/auth/logout');
}

/** Calls the API as the signed-in user. */
export async function call(method: string, path: string, body?: unknown, isFile = false): Promise<any> {
  const [asked, visit] = [session.peek(), departures];
  if (asked === undefined) throw new Problem(401, { detail: 'You are not signed in.' });
  if (asked.kind === 'account' && asked.expiresAtSecs - Date.now() / 1000 < RENEW_BEFORE_SECS) await renewOrEnd();
  const ask = async () => {
    const answer = await request(method, path, { body, bearer: session.peek()?.token, isFile });
    // A secret that the last user asked for is not shown to the next.
    if (visit !== departures) throw new Problem(401, { detail: VISIT_ENDED });
    return answer;
  };
  try {
    return await ask();
  } catch (problem) {
    if (!(problem instanceof Problem) || problem.status !== 401 || visit !== departures) throw problem;
    if (asked.kind === 'key') {
      end('Your session has ended because the key expired or was revoked.');
      throw problem;
    }
    await renewOrEnd();
    return ask();
  }
}

/** As `call`, but only for as long as the present user is signed in: their work must not go on in another's name. */
export function callOfThisVisit(): typeof call {
  const visit = departures;
  return async (...asked) => {
    if (visit !== departures) throw new Problem(401, { detail: VISIT_ENDED });
    return call(...asked);
  };
}

/** Tabs share the cookie, and a cookie presented twice ends the session: so one tab at a time. */
let renewing: Promise<void> | undefined;
function renew(): Promise<void> {
  const asked = session.peek();
  const ask = async (): Promise<void> => {
    const answer = await request('POST', '/api/v1/auth/refresh');
    // A refresh must not sign in again a user who has signed out meanwhile.
    if (session.peek() !== asked) throw new Problem(401, { detail: 'Your session has ended.' });
    await acceptToken(answer);
  };
  const start = (): Promise<void> => ('locks' in navigator ? navigator.locks.request('svc.refresh', ask) : ask());
  renewing ??= start().finally(() => {
    renewing = undefined;
  });
  return renewing;
}

function renewOrEnd(): Promise<void> {
  const asked = session.peek();
  return renew().catch((problem) => {
    if (problem.status === 401 && session.peek() === asked) end('Your session has ended. Sign in again.');
    throw problem;
  });
}

type TokenAnswer = { readonly access_token: string; readonly expires_in: number; readonly scopes: readonly Scope[] };

async function acceptToken(answer: TokenAnswer): Promise<void> {
  const { sub: subject, org_id: orgId = null, role } = claimsOf(answer.access_token);
  const mine = session.peek();
  if (mine?.kind === 'account' && mine.subject !== subject) {
    leaveTo(SOMEBODY_ELSE);
    throw new Problem(401, { detail: SOMEBODY_ELSE });
  }
  const before = mine?.kind === 'account' ? mine : undefined;
  const name = before?.name ?? (await nameOf(answer.access_token));
  localStorage.setItem(ACCOUNT_HINT, '1');
  session.value = {
    kind: 'account',
    token: answer.access_token,
    expiresAtSecs: Date.now() / 1000 + answer.expires_in,
    scopes: answer.scopes,
    orgId,
    name,
    subject,
    ...(role === undefined ? {} : { role }),
  };
  tabs?.postMessage(subject);
  if (before !== undefined && role !== undefined && before.role !== role) onRoleChange(role);
}

const nameOf = (bearer: string): Promise<string> =>
  request('GET', '/api/v1/auth/me', { bearer }).then((answer: { account: Account }) => answer.account.email);

function end(reason: string): void {
  const ended = session.peek();
  if (ended === undefined) return;
  forget();
  onEnd(reason, ended.kind);
}

/** The cookie belongs to somebody else now, or to nobody: it is not ours to forget. */
function leaveTo(reason: string): void {
  session.value = undefined;
  departures += 1;
  onEnd(reason, 'account');
}

/** Removes only what this session stored: another tab may be signed in with the other kind. */
function forget(): void {
  const kind = session.peek()?.kind;
  if (kind === 'key') sessionStorage.removeItem(TAB_KEY);
  if (kind === 'account') localStorage.removeItem(ACCOUNT_HINT);
  session.value = undefined;
  departures += 1;
}

function readKept(): Session | undefined {
  const text = sessionStorage.getItem(TAB_KEY);
  if (text === null) return undefined;
  const kept = JSON.parse(text) as Session;
  return kept.expiresAtSecs > nowMs() / 1000 ? kept : undefined;
}

/** Only to know what to show: the gateway decides what is allowed. */
function claimsOf(jwt: string): { sub: string; org_id?: string; role?: Role } {
  const middle = (jwt.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
  const bytes = Uint8Array.from(atob(middle), (char) => char.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}
