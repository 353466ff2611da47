/** API keys in PostgreSQL, where every gateway on the same database finds them. */

import type { SecretDigest } from '../../core/base/ids.ts';
import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { type ApiKey, ENVIRONMENT_CREATOR, FIRST_KEY_CREATOR } from '../../core/identity/api-key.ts';
import type { Scope } from '../../core/identity/roles.ts';
import type { ApiKeyStore } from '../../credentials/api-key-store.ts';
import { deleteEmbeddedApiKeys } from '../embedded/api-keys.ts';
import type { EmbeddedStore } from '../embedded/store.ts';
import { dateOf, msOrNull } from './account-rows.ts';
import type { Postgres } from './postgres.ts';
import type { Queryable } from './queryable.ts';

/** Any number that no other advisory lock of the gateway has. */
const FIRST_KEY_LOCK = 7_201_554_312;

/** Deleting this many takes far less than a statement's timeout. */
const DELETED_AT_ONCE = 1000;

const COLUMNS = 'id, digest, name, hint, scopes, org_id, created_at, created_by, expires_at, revoked_at, last_used_at';

type ApiKeyRow = {
  readonly id: string;
  readonly digest: string;
  readonly name: string;
  readonly hint: string;
  readonly scopes: readonly string[];
  readonly org_id: string | null;
  readonly created_at: Date;
  readonly created_by: string;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly last_used_at: Date | null;
};

const keyOf = (row: ApiKeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  digest: row.digest as SecretDigest,
  hint: row.hint,
  scopes: row.scopes as readonly Scope[],
  orgId: row.org_id,
  createdAtMs: row.created_at.getTime(),
  createdBy: row.created_by,
  expiresAtMs: msOrNull(row.expires_at),
  revokedAtMs: msOrNull(row.revoked_at),
  lastUsedAtMs: msOrNull(row.last_used_at),
});

export function createPostgresApiKeyStore(postgres: Postgres): ApiKeyStore {
  return {
    all: () => postgres.attempt((on) => select(on, '', [])),
    notLongOver: (beforeMs) =>
      postgres.attempt((on) =>
        select(on, `WHERE created_by = ANY ($2) OR coalesce(least(revoked_at, expires_at), 'infinity') >= $1`, [
          dateOf(beforeMs),
          [FIRST_KEY_CREATOR, ENVIRONMENT_CREATOR],
        ]),
      ),
    deleteLongOver: ({ nowMs, forMs, kept }) =>
      postgres.attempt(async (on) => {
        // Both the gateway's and the server's clock must agree, in case one is ahead. Rows that another gateway is
        // deleting are skipped.
        const { rowCount } = await on.query(
          `DELETE FROM api_keys WHERE id = ANY (ARRAY(
             SELECT id FROM api_keys
              WHERE least(revoked_at, expires_at) < least($1::timestamptz, now()) - $2 * interval '1 millisecond'
                AND created_by <> ALL ($3) AND digest IS DISTINCT FROM $4
              ORDER BY least(revoked_at, expires_at) LIMIT $5 FOR UPDATE SKIP LOCKED))`,
          [dateOf(nowMs), forMs, [FIRST_KEY_CREATOR, ENVIRONMENT_CREATOR], kept, DELETED_AT_ONCE],
        );
        return rowCount < DELETED_AT_ONCE ? undefined : '';
      }),
    find: (by) =>
      postgres.attempt(
        async (on) =>
          (await ('id' in by ? select(on, 'WHERE id = $1', [by.id]) : select(on, 'WHERE digest = $1', [by.digest])))[0],
      ),
    changedWithin: (ms) =>
      postgres.attempt((on) => select(on, `WHERE changed_at >= now() - $1 * interval '1 millisecond'`, [ms])),
    insert: (key) => postgres.attempt((on) => insert(on, key)),
    insertFirst: (key) =>
      postgres.transact(async (on) => {
        // Without the lock two gateways would both find the table empty.
        await on.query('SELECT pg_advisory_xact_lock($1)', [FIRST_KEY_LOCK]);
        const { rowCount } = await on.query('SELECT 1 FROM api_keys LIMIT 1');
        return ok(rowCount > 0 ? 'exists' : await insert(on, key));
      }),
    revoke: (id, revokedAtMs) =>
      postgres.attempt(
        async (on) =>
          void (await on.query(
            'UPDATE api_keys SET revoked_at = $2, changed_at = now() WHERE id = $1 AND revoked_at IS NULL',
            [id, dateOf(revokedAtMs)],
          )),
      ),
    touch: (uses) =>
      postgres.attempt(async (on) => {
        // Locked in one order everywhere: gateways that write at the same time would wait for each other.
        await on.query(
          `UPDATE api_keys SET last_used_at = greatest(last_used_at, used.at) FROM (
             SELECT id, at FROM api_keys JOIN unnest($1::text[], $2::timestamptz[]) AS noted (id, at) USING (id)
              WHERE last_used_at IS NULL OR last_used_at < at ORDER BY id FOR NO KEY UPDATE OF api_keys
           ) AS used WHERE api_keys.id = used.id`,
          [uses.map(({ id }) => id), uses.map(({ lastUsedAtMs }) => dateOf(lastUsedAtMs))],
        );
      }),
    lastUses: (ids) =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<{ id: string; last_used_at: Date }>(
          'SELECT id, last_used_at FROM api_keys WHERE id = ANY ($1) AND last_used_at IS NOT NULL',
          [ids],
        );
        return rows.map((row) => ({ id: row.id, lastUsedAtMs: row.last_used_at.getTime() }));
      }),
  };
}

async function select(on: Queryable, where: string, values: readonly unknown[]): Promise<readonly ApiKey[]> {
  const { rows } = await on.query<ApiKeyRow>(`SELECT ${COLUMNS} FROM api_keys ${where}`, values);
  return rows.map(keyOf);
}

async function insert(on: Queryable, key: ApiKey): Promise<'inserted' | 'exists'> {
  const { rowCount } = await on.query(
    `INSERT INTO api_keys (${COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`,
    [
      key.id,
      key.digest,
      key.name,
      key.hint,
      key.scopes,
      key.orgId,
      dateOf(key.createdAtMs),
      key.createdBy,
      dateOf(key.expiresAtMs),
      dateOf(key.revokedAtMs),
      dateOf(key.lastUsedAtMs),
    ],
  );
  return rowCount > 0 ? 'inserted' : 'exists';
}

/** The database may be far away, and the keys many. */
const MOVED_AT_ONCE = 100;

/**
 * Moves the keys of the embedded store to the database: for the first start of a gateway that is given one. A key that
 * the database has already keeps what it says there, but a revocation is carried over. Resolves with how many moved;
 * stopped in the middle, the next start goes on.
 */
export async function moveApiKeys(
  embedded: EmbeddedStore,
  from: ApiKeyStore,
  to: ApiKeyStore,
): Promise<Result<number, Fault>> {
  const keys = await from.all();
  if (!keys.ok) return keys;
  for (let at = 0; at < keys.value.length; at += MOVED_AT_ONCE) {
    const moved = await Promise.all(keys.value.slice(at, at + MOVED_AT_ONCE).map((key) => move(key, to)));
    const failed = moved.find(({ ok: isMoved }) => !isMoved);
    if (failed?.ok === false) return failed;
  }
  await deleteEmbeddedApiKeys(embedded, keys.value);
  return ok(keys.value.length);
}

async function move(key: ApiKey, to: ApiKeyStore): Promise<Result<unknown, Fault>> {
  const inserted = await to.insert(key);
  if (!inserted.ok || inserted.value === 'inserted' || key.revokedAtMs === null) return inserted;
  // By its digest: the key of the environment has a different id at each gateway that set it.
  const there = await to.find({ digest: key.digest });
  return there.ok && there.value !== undefined ? to.revoke(there.value.id, key.revokedAtMs) : there;
}
