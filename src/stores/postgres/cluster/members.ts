import { fail, ok, type Result } from '../../../core/base/result.ts';
import { codeOf } from '../../../core/base/text.ts';
import { RESERVATION_TTL_MS } from '../../../core/budget/reservations.ts';
import type { Fault } from '../../../core/fault.ts';
import type { Joining, Member, MemberStore, OnOutage, RunId, Stranded } from '../../../ports/cluster.ts';
import type { Postgres } from '../postgres.ts';
import { attemptAsRun } from './as-run.ts';

const MAY_STILL_RUN = 'SV003';

/** The spending of an earlier run, by owner and period: exact, since its data directory is here. */
export type Settlement = {
  readonly run: RunId;
  readonly owners: readonly string[];
  readonly periods: readonly string[];
  readonly spentMicroUsd: readonly number[];
};

export type MembersOptions = {
  /** With a single connection, for what keeps the lease: it waits for nobody else. */
  readonly postgres: Postgres;
  /** For all else. */
  readonly pool: Postgres;
  readonly run: RunId;
  readonly leaseMs: number;
  /** The last run on this data directory; undefined: there was none, or it is settled. */
  readonly settles: () => Settlement | undefined;
};

/** Accounts of one statement, which holds up those who want one of them. */
const SETTLED_AT_ONCE = 1_000;
const TIDIED_AT_ONCE = 1_000;
/** The rest is left for the next time, or another gateway. */
const MOST_STEPS = 20;

export type NodeRow = {
  readonly epoch: RunId;
  readonly node: string;
  readonly state: Member['state'];
  readonly lease_until: Date;
  readonly version: string;
  readonly protocols: readonly [number, number];
  readonly on_outage: OnOutage;
  readonly policy_version: string | null;
  readonly audit_id: string | null;
  readonly audit_hash: string | null;
  readonly skew_ms: number;
  readonly unconfirmed: number;
  readonly on_bus: boolean | null;
  readonly applied: number | string | null;
  readonly applied_mark: string | null;
};

export const memberOf = (row: NodeRow): Member => ({
  run: row.epoch,
  name: row.node,
  state: row.state,
  version: row.version,
  protocols: row.protocols,
  leaseUntilMs: row.lease_until.getTime(),
  skewMs: row.skew_ms,
  policyVersion: row.policy_version ?? undefined,
  auditHead:
    row.audit_id === null || row.audit_hash === null ? undefined : { id: Number(row.audit_id), hash: row.audit_hash },
  unconfirmed: row.unconfirmed,
  isOnBus: row.on_bus ?? undefined,
  onOutage: row.on_outage,
  applied:
    row.applied === null || row.applied_mark === null
      ? undefined
      : { seq: Number(row.applied), mark: row.applied_mark },
});

const BEAT =
  'SELECT * FROM cluster_beat($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) UNION ALL SELECT * FROM cluster_leavers($2)';

/** The tiers hold the same money, so the largest of their sums is what is stranded. */
const LIST = `
  SELECT n.*, CASE WHEN state <> 'live' THEN coalesce((SELECT max(held) FROM (
      SELECT sum(g.granted - g.spent) AS held FROM budget_grant g WHERE g.epoch = n.epoch AND g.granted > g.spent AND g.owner NOT LIKE 'limit/%'
        GROUP BY g.period, split_part(g.owner, '/', 1)) AS by_tier), 0) ELSE 0 END::bigint AS held
    FROM cluster_node n WHERE state <> 'retired' OR EXISTS (
      SELECT FROM budget_grant g WHERE g.epoch = n.epoch AND g.granted > g.spent AND g.owner NOT LIKE 'limit/%')
    ORDER BY n.node, n.seen_at DESC`;

export function createPostgresMembers({ postgres, pool, run, leaseMs, settles }: MembersOptions): MemberStore {
  const join = async ({ name, version, protocols, onOutage }: Joining): Promise<Result<void, Fault>> => {
    const before = settles();
    // A run that joins again, since the database has forgotten it, has nothing to settle but its own.
    const settled = before === undefined || before.run === run ? ok(undefined) : await settle(pool, before);
    if (!settled.ok) return settled;
    const joined = await postgres.attempt(async (on) => {
      const nothing = [null, [], [], []];
      await on.query('SELECT cluster_join($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)', [
        ...[run, name, leaseMs, version, protocols, onOutage, ...nothing],
      ]);
    });
    return !joined.ok || before === undefined || before.run === run ? joined : adopt(pool, run, before.run);
  };
  return {
    join,
    now: () =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<{ now: Date }>('SELECT clock_timestamp() AS now');
        return rows[0]!.now.getTime();
      }),
    beat: ({ policyVersion, auditHead, skewMs, isOnBus, isCaughtUp, applied }) =>
      attemptAsRun(postgres, async (on) => {
        const { rows } = await on.query<NodeRow>(BEAT, [
          run,
          leaseMs,
          policyVersion ?? null,
          auditHead?.id ?? null,
          auditHead?.hash ?? null,
          skewMs,
          isCaughtUp,
          isOnBus,
          applied.seq,
          applied.mark,
        ]);
        return rows.map(memberOf);
      }),
    tidy: () =>
      pool.attempt(async (on) => {
        for (let step = 0; step < MOST_STEPS; step += 1) {
          const values = [RESERVATION_TTL_MS, TIDIED_AT_ONCE];
          const { rows } = await on.query<{ more: boolean }>('SELECT cluster_tidy($1, $2) AS more', values);
          if (!rows[0]!.more) return;
        }
      }),
    noteUnconfirmed: (runs) =>
      pool.attempt(
        async (on) =>
          void (await on.query('UPDATE cluster_node SET unconfirmed = unconfirmed + 1 WHERE epoch = ANY ($1)', [runs])),
      ),
    list: () =>
      pool.attempt(async (on) => {
        const { rows } = await on.query<NodeRow & { readonly held: string }>(LIST);
        const gone = rows.filter(({ state }) => state !== 'live');
        const stranded: Stranded = new Map(gone.map(({ epoch, held }) => [epoch, Number(held)]));
        return { members: rows.map(memberOf), stranded };
      }),
    forget: (name, unspent) => forget(pool, name, unspent === 'free'),
    leave: () => postgres.attempt(async (on) => void (await on.query('SELECT cluster_leave($1)', [run]))),
  };
}

/** Whether any gateway has joined a cluster in this database, as far as it remembers. */
export const hasMembers = (postgres: Postgres): Promise<Result<boolean, Fault>> =>
  postgres.attempt(async (on) => {
    const { rows } = await on.query<{ any: boolean }>('SELECT EXISTS (SELECT FROM cluster_node) AS any');
    return rows[0]!.any;
  });

/** In steps, the last of which says that it is the last: what was cut off in between is done anew by the next start. */
function settle(pool: Postgres, { run, owners, periods, spentMicroUsd }: Settlement): Promise<Result<void, Fault>> {
  return pool.attempt(async (on) => {
    for (let at = 0; at === 0 || at < owners.length; at += SETTLED_AT_ONCE) {
      const end = at + SETTLED_AT_ONCE;
      const [theirs, inPeriods, spent] = [owners, periods, spentMicroUsd].map((each) => each.slice(at, end));
      await on.query('SELECT cluster_settle($1, $2, $3, $4, $5)', [
        run,
        theirs,
        inPeriods,
        spent,
        end >= owners.length,
      ]);
    }
  });
}

/** The counts of limits on this data directory are this run's from now on. What is left out lapses by itself. */
function adopt(pool: Postgres, run: RunId, before: RunId): Promise<Result<void, Fault>> {
  return pool.attempt(async (on) => {
    for (let isMore = true; isMore; ) {
      const values = [run, before, SETTLED_AT_ONCE];
      const { rows } = await on.query<{ more: boolean }>('SELECT limit_adopt($1, $2, $3) AS more', values);
      isMore = rows[0]!.more;
    }
  });
}

async function forget(
  postgres: Postgres,
  name: string,
  isFreed: boolean,
): Promise<Result<{ readonly microUsd: number }, Fault>> {
  try {
    const forgotten = await postgres.attempt(async (on) => {
      const { rows } = await on.query<{ total: string | null }>('SELECT cluster_forget($1, $2, $3) AS total', [
        name,
        isFreed,
        RESERVATION_TTL_MS,
      ]);
      return rows[0]!.total;
    });
    if (!forgotten.ok) return forgotten;
    return forgotten.value === null
      ? fail({ kind: 'not_found', what: `gateway ${name}` })
      : ok({ microUsd: Number(forgotten.value) });
  } catch (error) {
    if (codeOf(error) !== MAY_STILL_RUN) throw error;
    const detail = `gateway ${name} may still run: stop it, and wait until its lease has been over for 10 minutes`;
    return fail({ kind: 'conflict', detail });
  }
}
