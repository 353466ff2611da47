/** Whether a database has what the migrations made: a backup may have been put back in part, a fail-over may lead to an empty one. */
import type { Queryable } from './postgres.ts';

/** The columns of each table whose values are unique in it, but for those that the database numbers itself. A later migration adds its own. */
export const UNIQUE_COLUMNS = {
  svc_migrations: ['number'],
  accounts: ['id', 'email_key'],
  sign_in_failures: ['attempts_digest'],
  sessions: ['id'],
  refresh_tokens: ['digest'],
  invites: ['digest', 'id'],
  password_resets: ['digest'],
  api_keys: ['id', 'digest'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

const TABLES = Object.keys(UNIQUE_COLUMNS);
const KEYS = Object.entries(UNIQUE_COLUMNS).flatMap(([table, columns]) => columns.map((column) => ({ table, column })));

type Lacking = { readonly tables: readonly string[]; readonly keys: readonly string[]; readonly rights: readonly string[]; readonly role: string };

/** What is missing, and what to do. Undefined when nothing is. */
export async function schemaTrouble(on: Queryable): Promise<string | undefined> {
  const { rows: [row] } = await on.query<Lacking>(
    `SELECT ARRAY(SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL) AS tables,
       ARRAY(SELECT name || '.' || col FROM unnest($2::text[], $3::text[]) AS key (name, col) WHERE to_regclass(name) IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
          WHERE indrelid = to_regclass(name) AND attname = col AND indnkeyatts = 1 AND indisunique AND indisvalid AND indpred IS NULL)) AS keys,
       ARRAY(SELECT name FROM unnest($1::text[]) AS name WHERE NOT (has_table_privilege(to_regclass(name), 'SELECT') AND (name = 'svc_migrations' OR (
         has_table_privilege(to_regclass(name), 'INSERT') AND has_table_privilege(to_regclass(name), 'UPDATE') AND has_table_privilege(to_regclass(name), 'DELETE'))))) AS rights,
       current_user::text AS role`,
    [TABLES, KEYS.map(({ table }) => table), KEYS.map(({ column }) => column)],
  );
  return row === undefined ? undefined : troubleOf(row);
}

function troubleOf({ tables, keys, rights, role }: Lacking): string | undefined {
  if (tables.length === TABLES.length) return 'it has no tables; put a backup back, or restart the gateway to begin with an empty database';
  if (tables.length > 0) return `it lacks the table ${tables.join(', ')}; put a whole backup back`;
  if (keys.length > 0) return `it lacks the unique index on ${keys.join(', ')}; put a whole backup back, and if it is one of an older release, restart the gateway`;
  if (rights.length > 0) return `permission denied for table ${rights.join(', ')}; grant SELECT, INSERT, UPDATE and DELETE on all tables to ${role}`;
  return undefined;
}
