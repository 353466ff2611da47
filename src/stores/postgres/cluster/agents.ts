import type { AgentRegistration } from '../../../core/agents/agents.ts';
import { type AgentKey, agentKeyOf, type SecretDigest } from '../../../core/base/ids.ts';
import { fail, ok, type Result } from '../../../core/base/result.ts';
import type { Fault } from '../../../core/fault.ts';
import type { AgentChange, RunId, SharedAgents } from '../../../ports/cluster.ts';
import { dateOf } from '../account-rows.ts';
import type { Postgres } from '../postgres.ts';
import type { Queryable } from '../queryable.ts';
import { attemptAsRun } from './as-run.ts';

/** A few megabytes of rows. */
const LOADED_AT_ONCE = 20_000;
const ADOPTED_AT_ONCE = 5_000;
/** Removed registrations are kept for a day. Whoever has not followed for so long reads everything. */
const FOLLOWS_FOR_MS = 12 * 3_600_000;
/** Any number that no other advisory lock of the gateway has. */
const ADOPTION_LOCK = 7_302_004;

type AgentRow = {
  readonly key: AgentKey;
  readonly org: string;
  readonly team: string;
  readonly agent: string;
  readonly credential: SecretDigest | null;
  readonly parent: AgentKey | null;
  readonly registered_at: Date;
};
const COLUMNS = 'key, org, team, agent, credential, parent, registered_at';

const registrationOf = ({ org, team, agent, credential, parent, registered_at }: AgentRow): AgentRegistration => ({
  identity: { orgId: org, teamId: team, agentId: agent },
  credential: credential as SecretDigest,
  registeredAtMs: registered_at.getTime(),
  parent: parent ?? undefined,
});

const CREDENTIAL_TAKEN: Fault = {
  kind: 'conflict',
  detail: 'this credential token is already in use; choose another, or omit it to have one generated',
};
const OWN_DESCENDANT: Fault = { kind: 'conflict', detail: 'an agent cannot descend from itself' };

/** `steadyMs`: a clock that nobody sets. */
export function createPostgresAgents(postgres: Postgres, run: RunId, steadyMs: () => number): SharedAgents {
  /** Every transaction below it is known here; undefined: none is. */
  let seenThere: Seen | undefined;
  let seenAtMs = steadyMs();
  const asRun = async <T>(work: (on: Queryable) => Promise<T>): Promise<Result<T, Fault>> => {
    const done = await attemptAsRun(postgres, work);
    if (done.ok || (done.fault.kind !== 'replaced' && done.fault.kind !== 'unknown_run'))
      return done as Result<T, Fault>;
    return fail({ kind: 'store_unreachable', retryAfterSecs: 1 }); // the membership deals with it
  };
  const loadAll = async (on: Queryable): Promise<readonly AgentRegistration[]> => {
    const loaded: AgentRegistration[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const { rows }: { readonly rows: readonly AgentRow[] } = await on.query<AgentRow>(
        `SELECT ${COLUMNS} FROM agents WHERE key > $1 AND NOT removed ORDER BY key LIMIT $2`,
        [after, LOADED_AT_ONCE],
      );
      for (const row of rows) loaded.push(registrationOf(row));
      after = rows.length < LOADED_AT_ONCE ? undefined : rows.at(-1)?.key;
    }
    return loaded;
  };
  const seen = (there: Seen): void => {
    seenThere = there;
    seenAtMs = steadyMs();
  };
  return {
    load: () =>
      postgres.attempt(async (on) => {
        const there = await oldestRunning(on);
        const loaded = await loadAll(on);
        seen(there);
        return loaded;
      }),
    adopt: (registrations) =>
      postgres.transact(async (on) => {
        await on.query('SELECT pg_advisory_xact_lock($1)', [ADOPTION_LOCK]);
        const { rowCount } = await on.query('SELECT 1 FROM agents LIMIT 1');
        if (rowCount > 0) return ok(0);
        for (let at = 0; at < registrations.length; at += ADOPTED_AT_ONCE)
          await insertAll(on, registrations.slice(at, at + ADOPTED_AT_ONCE));
        return ok(registrations.length);
      }),
    save: async ({ identity, credential, registeredAtMs, parent }) => {
      const { orgId, teamId, agentId } = identity;
      const saved = await asRun(async (on) => {
        // What was there before: a statement does not see what its own functions have written.
        const { rows } = await on.query<{ problem: 'credential' | 'parent' | null; before: SecretDigest | null }>(
          `SELECT agent_save($1, $2, $3, $4, $5, $6, $7, $8) AS problem,
             (SELECT credential FROM agents WHERE key = $2 AND NOT removed) AS before`,
          [run, agentKeyOf(identity), orgId, teamId, agentId, credential, dateOf(registeredAtMs), parent ?? null],
        );
        return rows[0]!;
      });
      if (!saved.ok) return saved;
      const { problem, before } = saved.value;
      if (problem === null) return ok(before !== null && before !== credential);
      return fail(problem === 'parent' ? OWN_DESCENDANT : CREDENTIAL_TAKEN);
    },
    remove: (key) => asRun(async (on) => void (await on.query('SELECT agent_remove($1, $2)', [run, key]))),
    find: (credentials) =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<AgentRow>(`SELECT ${COLUMNS} FROM agents WHERE credential = ANY ($1)`, [
          credentials,
        ]);
        return rows.map(registrationOf);
      }),
    changes: () =>
      postgres.attempt(async (on) => {
        if (seenThere !== undefined && steadyMs() - seenAtMs < FOLLOWS_FOR_MS) {
          const found = await changesSince(on, seenThere.xid);
          const { changes, ...now } = found.server === seenThere.server ? found : await changesSince(on, EVERY_XID);
          // It runs backwards only where a backup was put back.
          if (BigInt(now.xid) >= BigInt(seenThere.xid)) return { changes, isWhole: false, seen: () => seen(now) };
        }
        const there = await oldestRunning(on);
        const changes = (await loadAll(on)).map((registration) => ({
          key: agentKeyOf(registration.identity),
          registration,
        }));
        return { changes, isWhole: true, seen: () => seen(there) };
      }),
  };
}

/**
 * Of the transactions that write: all below `xid` have ended, and what they wrote is visible. A server that took over
 * may give the same ids to others, and so may one that has crashed: what was seen at another start of it is read again.
 */
export type Seen = { readonly xid: string; readonly server: string };

/** Before all of them. */
export const EVERY_XID = '0';

export async function oldestRunning(on: Queryable): Promise<Seen> {
  const { rows } = await on.query<Seen>(
    'SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xid, pg_postmaster_start_time()::text AS server',
  );
  return rows[0]!;
}

async function changesSince(on: Queryable, xid: string): Promise<Seen & { readonly changes: readonly AgentChange[] }> {
  // In one statement, so that both are of one snapshot.
  const { rows } = await on.query<
    { readonly seen: string; readonly server: string } & (AgentRow | Record<keyof AgentRow, null>)
  >(
    `SELECT seen::text, pg_postmaster_start_time()::text AS server, ${COLUMNS} FROM pg_snapshot_xmin(pg_current_snapshot()) AS seen
       LEFT JOIN agents ON xid >= $1::text::xid8`,
    [xid],
  );
  const changes = rows.flatMap((row): AgentChange[] =>
    row.key === null ? [] : [{ key: row.key, registration: row.credential === null ? undefined : registrationOf(row) }],
  );
  return { xid: rows[0]!.seen, server: rows[0]!.server, changes };
}

async function insertAll(on: Queryable, registrations: readonly AgentRegistration[]): Promise<void> {
  await on.query(
    `INSERT INTO agents (${COLUMNS})
       SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])`,
    [
      registrations.map(({ identity }) => agentKeyOf(identity)),
      registrations.map(({ identity }) => identity.orgId),
      registrations.map(({ identity }) => identity.teamId),
      registrations.map(({ identity }) => identity.agentId),
      registrations.map(({ credential }) => credential),
      registrations.map(({ parent }) => parent ?? null),
      registrations.map(({ registeredAtMs }) => dateOf(registeredAtMs)),
    ],
  );
}
