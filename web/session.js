/**
 * Who is signed in. A key is exchanged at once and forgotten; its token lives in this tab's sessionStorage. A person's
 * access token lives in memory only, and the refresh cookie, which no script can read, renews it.
 */
import { Problem, request } from './api.js';
import { nowMs } from './clock.js';

/**
 * @typedef {object} Session
 * @property {'key' | 'account'} kind
 * @property {string} token
 * @property {number} expiresAtSecs of a key by the gateway's clock, of an account by this browser's
 * @property {readonly string[]} scopes
 * @property {string | null} orgId bound to this org; null sees all
 * @property {string} [role] of an account; a key has none
 * @property {string} subject the name in the audit log; another tab may sign in another account
 * @property {string} name
 */

const TAB_KEY = 'svc.session';
/** Set while there may be a refresh cookie, so that a first visit does not try to refresh. */
const ACCOUNT_HINT = 'svc.account';
const RENEW_BEFORE_SECS = 60;
const IMPLIED = { read: ['read', 'write', 'admin'], write: ['write', 'admin'], admin: ['admin'] };

/** @type {Session | undefined} */
let session;
/** Counts sign-outs: answers to what the last user asked must not reach the next. */
let departures = 0;
const VISIT_ENDED = 'The session that started this has ended.';
/** @type {(reason: string, kind: Session['kind']) => void} */
let onEnd = () => {};
/** @type {(role: string) => void} */
let onRoleChange = () => {};

/**
 * All tabs share one refresh cookie, and notify one another of its new owner (null: none). In a browser without such a
 * channel they notice when they next renew their token.
 */
const tabs = 'BroadcastChannel' in window ? new BroadcastChannel('svc.account') : undefined;
tabs?.addEventListener('message', ({ data: subject }) => {
  if (session?.kind === 'account' && session.subject !== subject)
    leaveTo(subject === null ? 'You signed out in another tab.' : SOMEBODY_ELSE);
});
const SOMEBODY_ELSE = 'Someone else signed in from another tab of this browser.';

export const current = () => session;

/**
 * @param {(reason: string, kind: Session['kind']) => void} listener called when the gateway no longer accepts the
 * credential
 */
export function whenEnded(listener) {
  onEnd = listener;
}

/** @param {(role: string) => void} listener called when the account has been given another role */
export function whenRoleChanged(listener) {
  onRoleChange = listener;
}

/** @param {'read' | 'write' | 'admin'} scope */
export const can = (scope) => session !== undefined && IMPLIED[scope].some((held) => session?.scopes.includes(held));

/** From the most powerful on. */
const ROLES = ['owner', 'admin', 'developer', 'viewer'];

/**
 * Whether the signed-in user may give somebody this role, or take it away. A key can at most be an admin. @param
 * {string} role
 */
export const mayManage = (role) => can('admin') && ROLES.indexOf(session?.role ?? 'admin') <= ROLES.indexOf(role);

/** @param {string} key */
export async function signInWithKey(key) {
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
  session = {
    kind: 'key',
    token: answer.token,
    expiresAtSecs: answer.expires_at,
    scopes: answer.scopes,
    orgId: claims.org_id ?? null,
    name,
    subject: claims.sub,
  };
  sessionStorage.setItem(TAB_KEY, JSON.stringify(session));
}

/**
 * @param {string} email
 * @param {string} password
 * @param {boolean} rememberMe
 */
export async function signInWithPassword(email, password, rememberMe) {
  const answer = await request('POST', '/api/v1/auth/login', { body: { email, password, remember_me: rememberMe } });
  await acceptToken(answer);
}

/** Takes up the session of this tab or of the refresh cookie. False when there is none. */
export async function restore() {
  const kept = readKept();
  if (kept !== undefined) {
    session = kept;
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

export async function signOut() {
  const ended = session;
  forget();
  if (ended?.kind !== 'account') return;
  tabs?.postMessage(null);
  await request('POST', '/api/v1/auth/logout');
}

/**
 * Calls the API as the signed-in user.
 *
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {boolean} [isFile]
 */
export async function call(method, path, body, isFile = false) {
  const [asked, visit] = [session, departures];
  if (asked === undefined) throw new Problem(401, { detail: 'You are not signed in.' });
  if (asked.kind === 'account' && asked.expiresAtSecs - Date.now() / 1000 < RENEW_BEFORE_SECS) await renewOrEnd();
  const ask = async () => {
    const answer = await request(method, path, { body, bearer: session?.token, isFile });
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

/**
 * As `call`, but only for as long as the present user is signed in: their work must not go on in the name of the next.
 * @returns {typeof call}
 */
export function callOfThisVisit() {
  const visit = departures;
  return async (...asked) => {
    if (visit !== departures) throw new Problem(401, { detail: VISIT_ENDED });
    return call(...asked);
  };
}

/**
 * Tabs share the cookie, and a cookie presented twice ends the session: so one tab at a time. @type {Promise<void> |
 * undefined}
 */
let renewing;
function renew() {
  const asked = session;
  const ask = async () => {
    const answer = await request('POST', '/api/v1/auth/refresh');
    // A refresh must not sign in again a user who has signed out meanwhile.
    if (session !== asked) throw new Problem(401, { detail: 'Your session has ended.' });
    await acceptToken(answer);
  };
  renewing ??= ('locks' in navigator ? navigator.locks.request('svc.refresh', ask) : ask()).finally(() => {
    renewing = undefined;
  });
  return renewing;
}

function renewOrEnd() {
  const asked = session;
  return renew().catch((problem) => {
    if (problem.status === 401 && session === asked) end('Your session has ended. Sign in again.');
    throw problem;
  });
}

/** @param {{ access_token: string, expires_in: number, scopes: string[] }} answer */
async function acceptToken(answer) {
  const { sub: subject, org_id: orgId = null, role } = claimsOf(answer.access_token);
  if (session?.kind === 'account' && session.subject !== subject) {
    leaveTo(SOMEBODY_ELSE);
    throw new Problem(401, { detail: SOMEBODY_ELSE });
  }
  const before = session?.kind === 'account' ? session : undefined;
  const name = before?.name ?? (await nameOf(answer.access_token));
  session = {
    kind: 'account',
    token: answer.access_token,
    expiresAtSecs: Date.now() / 1000 + answer.expires_in,
    scopes: answer.scopes,
    orgId,
    name,
    subject,
    ...(role === undefined ? {} : { role }),
  };
  localStorage.setItem(ACCOUNT_HINT, '1');
  tabs?.postMessage(subject);
  if (before !== undefined && role !== undefined && before.role !== role) onRoleChange(role);
}

/** @param {string} bearer @returns {Promise<string>} */
const nameOf = (bearer) => request('GET', '/api/v1/auth/me', { bearer }).then((answer) => answer.account.email);

/** @param {string} reason */
function end(reason) {
  if (session === undefined) return;
  const { kind } = session;
  forget();
  onEnd(reason, kind);
}

/** The cookie belongs to somebody else now, or to nobody: it is not ours to forget. @param {string} reason */
function leaveTo(reason) {
  session = undefined;
  departures += 1;
  onEnd(reason, 'account');
}

/** Removes only what this session stored: another tab may be signed in with the other kind. */
function forget() {
  if (session?.kind === 'key') sessionStorage.removeItem(TAB_KEY);
  if (session?.kind === 'account') localStorage.removeItem(ACCOUNT_HINT);
  session = undefined;
  departures += 1;
}

/** @returns {Session | undefined} */
function readKept() {
  const text = sessionStorage.getItem(TAB_KEY);
  if (text === null) return undefined;
  const kept = /** @type {Session} */ (JSON.parse(text));
  return kept.expiresAtSecs > nowMs() / 1000 ? kept : undefined;
}

/**
 * Only to know what to show: the gateway decides what is allowed. @param {string} jwt @returns {{ sub: string,
 * org_id?: string, role?: string }}
 */
function claimsOf(jwt) {
  const middle = (jwt.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
  const bytes = Uint8Array.from(atob(middle), (char) => char.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}
