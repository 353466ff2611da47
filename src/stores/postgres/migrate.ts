/** Brings the schema up to date. Any number of gateways may do so at once: each step is applied once. */
import type pg from 'pg';
import { BEGIN } from './commit-verdict.ts';
import type { Migration } from './migration.ts';
import { MIGRATIONS } from './migrations.ts';
import type { Queryable } from './queryable.ts';

// Whether a database has what the migrations made: a backup may have been put back in part, a fail-over may lead to an
// empty one.

/**
 * The columns of each table whose values are unique in it, but for those that the database numbers itself. A later
 * migration adds its own.
 */
export const UNIQUE_COLUMNS = {
  svc_migrations: ['number'],
  accounts: ['id', 'email_key'],
  sign_in_failures: ['attempts_digest'],
  sessions: ['id'],
  refresh_tokens: ['digest'],
  invites: ['digest', 'id'],
  password_resets: ['digest'],
  api_keys: ['id', 'digest'],
  secrets: ['name'],
  cluster_node: ['epoch'],
  cluster_server: ['one'],
  policy_active: ['one'],
  budget_account: [],
  budget_grant: [],
  usage_id: [],
  agents: ['key'],
  cluster_state: [],
  policy_set: ['version'],
  policy_shadow: ['one'],
  webhook: ['id'],
  webhook_message: ['id'],
  webhook_reported: ['id'],
  commit_mark: ['nonce'],
  cluster_head: ['one'],
  cluster_log: ['seq', 'nonce'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** The others. */
const OTHER_COLUMNS: Readonly<Record<keyof typeof UNIQUE_COLUMNS, readonly string[]>> = {
  svc_migrations: ['name', 'applied_at', 'tolerated_since'],
  accounts: [
    'sequence',
    'email',
    'password_hash',
    'role',
    'org_id',
    'disabled',
    'token_epoch',
    'tokens_revoked_at',
    'created_at',
    'last_login_at',
  ],
  sign_in_failures: ['failures', 'locked_until', 'touched_at'],
  sessions: ['account_id', 'remember_me', 'created_at', 'revoked_at'],
  refresh_tokens: ['session_id', 'expires_at', 'rotated_at'],
  invites: ['email', 'role', 'org_id', 'invited_by', 'created_at', 'expires_at', 'used_at', 'sequence', 'revoked_at'],
  password_resets: ['account_id', 'created_at', 'expires_at', 'issued_by'],
  api_keys: [
    'name',
    'hint',
    'scopes',
    'org_id',
    'created_at',
    'created_by',
    'expires_at',
    'revoked_at',
    'last_used_at',
    'changed_at',
  ],
  secrets: ['value'],
  cluster_node: [
    'node',
    'state',
    'seq',
    'seen_at',
    'lease_until',
    'ended_at',
    'settled',
    'version',
    'protocols',
    'on_outage',
    'on_bus',
    'policy_version',
    'audit_id',
    'audit_hash',
    'skew_ms',
    'unconfirmed',
    'stated_to',
    'applied',
    'applied_mark',
  ],
  cluster_server: ['started_at', 'noticed_at'],
  policy_active: ['version', 'activated_at', 'activated_by'],
  budget_account: ['owner', 'period', 'spent', 'out', 'alerted', 'ends_at', 'lasts', 'raised', 'raised_at'],
  budget_grant: ['epoch', 'owner', 'period', 'granted', 'spent'],
  usage_id: ['agent', 'id', 'epoch', 'recorded_at', 'settled'],
  agents: ['org', 'team', 'agent', 'credential', 'parent', 'registered_at', 'version'],
  cluster_state: ['kind', 'id', 'body', 'version'],
  policy_set: [
    'documents',
    'published_at',
    'published_by',
    'since',
    'till',
    'activated_by',
    'document_count',
    'rule_count',
  ],
  policy_shadow: ['version', 'since_ms', 'body'],
  webhook: [
    'sequence',
    'url',
    'events',
    'org_id',
    'secret',
    'created_by',
    'created_at',
    'failing_since',
    'failures',
    'last_error',
    'disabled_at',
    'dropped',
    'retry_at',
    'caller',
    'call_until',
  ],
  webhook_message: ['sequence', 'hook', 'body', 'size', 'held_by'],
  webhook_reported: ['reported_at'],
  commit_mark: ['at'],
  cluster_head: ['seq', 'mark'],
  cluster_log: ['mark', 'run', 'at', 'verdicts', 'entries'],
};

const TABLES = Object.keys(UNIQUE_COLUMNS);
const namesOf = (columns: Readonly<Record<string, readonly string[]>>) =>
  Object.entries(columns).flatMap(([table, names]) => names.map((column) => ({ table, column })));
const KEYS = namesOf(UNIQUE_COLUMNS);
const OTHERS = namesOf(OTHER_COLUMNS);

type Lacking = {
  readonly tables: readonly string[];
  readonly keys: readonly string[];
  readonly columns: readonly string[];
  readonly rights: readonly string[];
  readonly role: string;
};

/** Explains what is missing, and how to fix it. Undefined if nothing is. */
export async function schemaTrouble(on: Queryable): Promise<string | undefined> {
  const {
    rows: [row],
  } = await on.query<Lacking>(
    `SELECT ARRAY(SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL) AS tables,
       ARRAY(SELECT name || '.' || col FROM unnest($2::text[], $3::text[]) AS key (name, col) WHERE to_regclass(name) IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
          WHERE indrelid = to_regclass(name) AND attname = col AND indnkeyatts = 1 AND indisunique AND indisvalid AND indpred IS NULL)) AS keys,
       ARRAY(SELECT name || '.' || col FROM unnest($4::text[], $5::text[]) AS other (name, col) WHERE to_regclass(name) IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(name) AND attname = col AND NOT attisdropped)) AS columns,
       ARRAY(SELECT name FROM unnest($1::text[]) AS name WHERE NOT (has_table_privilege(to_regclass(name), 'SELECT') AND (name = 'svc_migrations' OR (
         has_table_privilege(to_regclass(name), 'INSERT') AND has_table_privilege(to_regclass(name), 'UPDATE') AND has_table_privilege(to_regclass(name), 'DELETE'))))) AS rights,
       current_user::text AS role`,
    [
      TABLES,
      ...[KEYS, OTHERS].flatMap((names) => [names.map(({ table }) => table), names.map(({ column }) => column)]),
    ],
  );
  return row === undefined ? undefined : troubleOf(row);
}

const OF_A_BACKUP = 'restore a complete backup, and if it is from an older release, restart the gateway';

function troubleOf({ tables, keys, columns, rights, role }: Lacking): string | undefined {
  if (tables.length === TABLES.length)
    return 'it has no tables; restore a backup, or restart the gateway to start with an empty database';
  if (tables.length > 0) return `it lacks the table ${tables.join(', ')}; restore a complete backup`;
  if (keys.length > 0) return `it lacks the unique index on ${keys.join(', ')}; ${OF_A_BACKUP}`;
  if (columns.length > 0) return `it lacks the column ${columns.join(', ')}; ${OF_A_BACKUP}`;
  if (rights.length > 0)
    return `permission denied for table ${rights.join(', ')}; grant SELECT, INSERT, UPDATE and DELETE on all tables to ${role}`;
  return undefined;
}

/** Any number will do, as long as every gateway uses the same one and nobody else does. */
const MIGRATION_LOCK = 7_201_554_310;

/** Waiting for another gateway's migration takes as long as that migration does. */
const MIGRATION_TIMEOUT_MS = 120_000;

/** The database cannot be used, and waiting will not help: it is newer than this gateway, or refuses a step. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

/**
 * Applies all steps in one transaction under an advisory lock; PostgreSQL undoes all of them when one fails. Rejects
 * with the driver's error when the connection fails.
 */
export async function migrate(
  client: pg.ClientBase,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<readonly number[]> {
  await client.query(BEGIN);
  try {
    await client.query(`SET LOCAL statement_timeout = ${MIGRATION_TIMEOUT_MS}; SET LOCAL lock_timeout = 0`);
    await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    // Asked first: `IF NOT EXISTS` needs the right to create even where the table exists, and a role for rows alone
    // lacks it.
    const {
      rows: [found],
    } = await client.query<{ isThere: boolean }>(`SELECT to_regclass('svc_migrations') IS NOT NULL AS "isThere"`);
    if (found?.isThere !== true) {
      await client.query(
        'CREATE TABLE svc_migrations (number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
      );
    }
    // As a field of the row, which older tables do not have.
    const { rows } = await client.query<Applied>(
      `SELECT number, (to_jsonb(m) ->> 'tolerated_since')::integer AS "toleratedSince" FROM svc_migrations m`,
    );
    const applied = new Set(rows.map((row) => row.number));
    const newest = Math.max(0, ...migrations.map((migration) => migration.number));
    const refused = rows.filter(({ number, toleratedSince }) => number > newest && newest < (toleratedSince ?? number));
    if (refused.length > 0) {
      const latest = Math.max(...refused.map(({ number }) => number));
      throw new MigrationError(
        `the database has migration ${latest}, but this gateway knows only ${newest}; run a newer gateway`,
      );
    }
    const missing = migrations.filter((migration) => !applied.has(migration.number));
    for (const migration of missing) await apply(client, migration);
    await client.query('COMMIT');
    return missing.map((migration) => migration.number);
  } catch (error) {
    // The cause is the first error; on a broken connection there is nothing left to roll back.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

type Applied = { readonly number: number; readonly toleratedSince: number | null };

async function apply(client: pg.ClientBase, { number, name, sql, toleratedSince }: Migration): Promise<void> {
  await client.query(sql);
  await client.query('INSERT INTO svc_migrations (number, name) VALUES ($1, $2)', [number, name]);
  if (toleratedSince !== undefined)
    await client.query('UPDATE svc_migrations SET tolerated_since = $2 WHERE number = $1', [number, toleratedSince]);
}
