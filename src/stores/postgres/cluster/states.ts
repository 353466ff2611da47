import { ok, type Result } from '../../../core/base/result.ts';
import type { Fault } from '../../../core/fault.ts';
import type { RunId, SharedStates, StateKind, StateRow, StateWrite } from '../../../ports/cluster.ts';
import type { Postgres } from '../postgres.ts';
import type { Queryable } from '../queryable.ts';
import { EVERY_XID, oldestRunning, type Seen } from './agents.ts';
import { transactAsRun, writeAsRun } from './as-run.ts';

const LOADED_AT_ONCE = 5_000;
/** Removed rows are kept for a day. Whoever has not followed for so long reads everything. */
const FOLLOWS_FOR_MS = 12 * 3_600_000;
/** Any number that no other advisory lock of the gateway has. */
const ADOPTION_LOCK = 7_302_007;

/** `version` is a bigint, which the driver hands over as text. */
type Row = { readonly id: string; readonly key: string; readonly body: string | null; readonly version: string };
const COLUMNS = 'id, key, CASE WHEN removed THEN NULL ELSE body END AS body, version';

const rowOf = ({ id, key, body, version }: Row): StateRow => ({
  id,
  key,
  body: body === null ? undefined : (JSON.parse(body) as unknown),
  version: Number(version),
});

/** `steadyMs`: a clock that nobody sets. */
export function createPostgresStates(postgres: Postgres, run: RunId, steadyMs: () => number): SharedStates {
  /** Every transaction below it is known here. */
  const seen = new Map<StateKind, Seen & { readonly atMs: number }>();
  const see = (kind: StateKind, at: Seen): void => void seen.set(kind, { ...at, atMs: steadyMs() });
  return {
    load: (kind) =>
      postgres.attempt(async (on) => {
        const now = await oldestRunning(on);
        const rows = await loadAll(on, kind);
        see(kind, now);
        return rows;
      }),
    adopt: (kind, rows) =>
      postgres.transact(async (on) => {
        await on.query('SELECT pg_advisory_xact_lock($1)', [ADOPTION_LOCK]);
        const { rowCount } = await on.query('SELECT 1 FROM cluster_state WHERE kind = $1 LIMIT 1', [kind]);
        if (rowCount > 0 || rows.length === 0) return ok(0);
        await on.query(
          'INSERT INTO cluster_state (kind, id, key, body) SELECT $1, u.i, u.k, u.b FROM unnest($2::text[], $3::text[], $4::text[]) u(i, k, b)',
          [kind, rows.map(({ id }) => id), rows.map(({ key }) => key), rows.map(({ body }) => JSON.stringify(body))],
        );
        return ok(rows.length);
      }),
    find: (kind, id) =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<Row>(
          `SELECT ${COLUMNS} FROM cluster_state WHERE kind = $1 AND id = $2 AND NOT removed`,
          [kind, id],
        );
        return rows[0] && rowOf(rows[0]);
      }),
    changes: (kind) =>
      postgres.attempt(async (on) => {
        const last = seen.get(kind);
        if (last !== undefined && steadyMs() - last.atMs < FOLLOWS_FOR_MS) {
          const found = await changesSince(on, kind, last.xid);
          const { rows, ...now } = found.server === last.server ? found : await changesSince(on, kind, EVERY_XID);
          // It runs backwards only where a backup was put back.
          if (BigInt(now.xid) >= BigInt(last.xid)) return { rows, isWhole: false, seen: () => see(kind, now) };
        }
        const now = await oldestRunning(on);
        return { rows: await loadAll(on, kind), isWhole: true, seen: () => see(kind, now) };
      }),
    turn: (kind, key, decide) => takeTurn(postgres, run, kind, key, decide),
    put: (kind, writes) => writeAsRun(postgres, (on) => write(on, run, kind, writes)),
  };
}

async function takeTurn(
  postgres: Postgres,
  run: RunId,
  kind: StateKind,
  key: string,
  decide: Parameters<SharedStates['turn']>[2],
): Promise<Result<readonly StateRow[], Fault>> {
  return transactAsRun(postgres, async (on) => {
    const { rows } = await on.query<(Row | { readonly id: null }) & { readonly now: Date }>(
      'SELECT * FROM state_turn($1, $2)',
      [kind, key],
    );
    const known = rows.flatMap((row) => (row.id === null ? [] : [rowOf(row)]));
    // Of one row, the last word.
    const writes = new Map(decide(known, rows[0]!.now.getTime()).map((write) => [write.id, write]));
    return ok(await write(on, run, kind, [...writes.values()]));
  });
}

async function write(
  on: Queryable,
  run: RunId,
  kind: StateKind,
  writes: readonly StateWrite[],
): Promise<readonly StateRow[]> {
  if (writes.length === 0) return [];
  const { rows } = await on.query<Pick<Row, 'id' | 'version'>>('SELECT * FROM state_write($1, $2, $3, $4, $5, $6)', [
    run,
    kind,
    writes.map(({ id }) => id),
    writes.map(({ key }) => key),
    writes.map(({ body }) => JSON.stringify(body ?? null)),
    writes.map(({ body }) => body === undefined),
  ]);
  const versions = new Map(rows.map(({ id, version }) => [id, Number(version)]));
  return writes.map((each) => ({ ...each, version: versions.get(each.id) ?? 0 }));
}

async function loadAll(on: Queryable, kind: StateKind): Promise<readonly StateRow[]> {
  const loaded: StateRow[] = [];
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { rows }: { readonly rows: readonly Row[] } = await on.query<Row>(
      `SELECT ${COLUMNS} FROM cluster_state WHERE kind = $1 AND id > $2 AND NOT removed ORDER BY id LIMIT $3`,
      [kind, after, LOADED_AT_ONCE],
    );
    for (const row of rows) loaded.push(rowOf(row));
    after = rows.length < LOADED_AT_ONCE ? undefined : rows.at(-1)?.id;
  }
  return loaded;
}

async function changesSince(
  on: Queryable,
  kind: StateKind,
  xid: string,
): Promise<Seen & { readonly rows: readonly StateRow[] }> {
  // In one statement, so that both are of one snapshot.
  const { rows } = await on.query<{ readonly seen: string; readonly server: string } & (Row | Record<keyof Row, null>)>(
    `SELECT seen::text, pg_postmaster_start_time()::text AS server, ${COLUMNS} FROM pg_snapshot_xmin(pg_current_snapshot()) AS seen
       LEFT JOIN cluster_state ON kind = $1 AND xid >= $2::text::xid8`,
    [kind, xid],
  );
  const { seen, server } = rows[0]!;
  return { xid: seen, server, rows: rows.flatMap((row) => (row.id === null ? [] : [rowOf(row)])) };
}
