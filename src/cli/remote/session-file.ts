/** `~/.svc/credentials.yaml`: one session per context (docs/spec.md, Login). */
import { isMapping } from '../../core/base/mapping.ts';
import { changePrivateFile, readPrivateFile, warnIfOpen } from '../files/private-folder.ts';

const FILE = 'credentials.yaml';

export type Session = {
  /** The gateway that gave the token; it is shown to no other. */
  readonly apiUrl: string;
  readonly token: string;
  readonly expiresAtSecs: number;
  readonly scopes: readonly string[];
  /** The API key the token was minted from, kept to mint the next one. */
  readonly sourceKey: string;
};

/**
 * The session kept under this name for this gateway. A file or an entry that is corrupt holds none (docs/spec.md,
 * Login).
 */
export async function readSession(name: string, apiUrl: string): Promise<Session | undefined> {
  const session = (await readSessions()).get(name);
  return session?.apiUrl === apiUrl ? session : undefined;
}

export async function readSessions(): Promise<ReadonlyMap<string, Session>> {
  const sessions = await sessionsIn(await readPrivateFile(FILE));
  if (sessions.size > 0) await warnIfOpen(FILE, 'a session and its API key');
  return sessions;
}

export const putSession = (name: string, session: Session): Promise<void> =>
  changeSessions((sessions) => void sessions.set(name, session));

/** Renews a session, unless it has been removed or replaced by another login meanwhile. */
export const renewSession = (name: string, { sourceKey, apiUrl }: Session, next: Session): Promise<void> =>
  changeSessions((sessions) => {
    const present = sessions.get(name);
    if (present?.sourceKey !== sourceKey || present.apiUrl !== apiUrl) return false;
    sessions.set(name, next);
    return true;
  });

/** Returns whether there was one. */
export async function removeSession(name: string): Promise<boolean> {
  // Checked first: a logout where nobody ever logged in should not create a folder.
  if (!(await readSessions()).has(name)) return false;
  let wasThere = false;
  await changeSessions((sessions) => (wasThere = sessions.delete(name)));
  return wasThere;
}

/** A change that answers false writes nothing. */
const changeSessions = (change: (sessions: Map<string, Session>) => boolean | void): Promise<void> =>
  changePrivateFile(FILE, async (text) => {
    const sessions = await sessionsIn(text);
    return change(sessions) === false ? undefined : await textOf(sessions);
  });

async function textOf(sessions: ReadonlyMap<string, Session>): Promise<string> {
  const { stringify } = await import('yaml');
  const rows = [...sessions].map(([name, { apiUrl, token, expiresAtSecs, scopes, sourceKey }]) => [
    name,
    { api_url: apiUrl, token, expires_at: expiresAtSecs, scopes, source_key: sourceKey },
  ]);
  return stringify({ sessions: Object.fromEntries(rows) }, { lineWidth: 0, aliasDuplicateObjects: false });
}

async function sessionsIn(text: string | undefined): Promise<Map<string, Session>> {
  const file = text === undefined ? undefined : await yamlIn(text);
  const sessions = isMapping(file) && isMapping(file.sessions) ? file.sessions : {};
  return new Map(
    Object.entries(sessions).flatMap(([name, raw]) => {
      const session = sessionIn(raw);
      return session === undefined ? [] : [[name, session] as const];
    }),
  );
}

function sessionIn(raw: unknown): Session | undefined {
  if (!isMapping(raw)) return undefined;
  const { api_url: apiUrl, token, expires_at: expiresAtSecs, scopes, source_key: sourceKey } = raw;
  if (typeof apiUrl !== 'string' || !isSecret(token) || !isSecret(sourceKey)) return undefined;
  if (typeof expiresAtSecs !== 'number' || !Number.isFinite(expiresAtSecs)) return undefined;
  if (!Array.isArray(scopes) || !scopes.every((scope) => typeof scope === 'string')) return undefined;
  return { apiUrl, token, expiresAtSecs, scopes, sourceKey };
}

/** Tells whether the value fits a header. */
export const isSecret = (raw: unknown): raw is string => typeof raw === 'string' && /^[\x21-\x7e]{1,8192}$/.test(raw);

async function yamlIn(text: string): Promise<unknown> {
  const { parse } = await import('yaml');
  try {
    return parse(text, { logLevel: 'silent' });
  } catch {
    return undefined; // Corrupt is the same as absent, and the next login replaces it.
  }
}
