import { ok } from '../../../core/base/result.ts';
import type { PolicyShelf, PolicyText, RunId } from '../../../ports/cluster.ts';
import type { Postgres } from '../postgres.ts';
import { transactAsRun } from './as-run.ts';

/** Sets that can be put in force again, besides the one that is. */
const KEPT_SETS = 100;

export function createPostgresPolicies(postgres: Postgres, run: RunId): PolicyShelf {
  return {
    active: () =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<{ version: string; activated_by: string }>(
          'SELECT version, activated_by FROM policy_active',
        );
        return rows[0] && { version: rows[0].version, by: rows[0].activated_by };
      }),
    read: (version) =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<{ documents: string }>('SELECT documents FROM policy_set WHERE version = $1', [
          version,
        ]);
        return rows[0] && (JSON.parse(rows[0].documents) as readonly PolicyText[]);
      }),
    add: (version, texts, by) =>
      postgres.transact(async (on) => {
        await on.query(
          `INSERT INTO policy_set (version, documents, published_by) VALUES ($1, $2, $3)
             ON CONFLICT (version) DO UPDATE SET published_at = clock_timestamp(), published_by = $3`,
          [version, JSON.stringify(texts), by],
        );
        await on.query(
          `DELETE FROM policy_set WHERE version NOT IN (SELECT version FROM policy_active) AND version NOT IN (
             SELECT version FROM policy_set ORDER BY published_at DESC LIMIT $1)`,
          [KEPT_SETS],
        );
        return ok(undefined);
      }),
    activate: (version, by, isFirst) =>
      transactAsRun(postgres, async (on) => {
        const { rows } = await on.query<{ active: string }>('SELECT policy_activate($1, $2, $3, $4) AS active', [
          run,
          version,
          by,
          isFirst,
        ]);
        return ok(rows[0]!.active);
      }),
  };
}
