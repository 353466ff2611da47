import { ok } from '../../../core/base/result.ts';
import type { PolicyShelf, PolicyText, RunId } from '../../../ports/cluster.ts';
import {
  KEPT_POLICY_VERSIONS,
  type KeptShadow,
  type PolicyVersions,
  type ShadowStore,
} from '../../../ports/policy-versions.ts';
import type { Postgres } from '../postgres.ts';
import { transactAsRun } from './as-run.ts';

export function createPostgresPolicies(postgres: Postgres): PolicyShelf {
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
    add: ({ version, documents, rules }, texts, by) =>
      postgres.transact(async (on) => {
        await on.query(
          `INSERT INTO policy_set (version, documents, published_by, document_count, rule_count) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (version) DO UPDATE SET published_at = clock_timestamp(), published_by = $3,
               document_count = $4, rule_count = $5`,
          [version, JSON.stringify(texts), by, documents, rules],
        );
        await on.query(
          `DELETE FROM policy_set WHERE version NOT IN (SELECT version FROM policy_active) AND version NOT IN (
             SELECT version FROM policy_set ORDER BY greatest(published_at, till) DESC LIMIT $1)`,
          [KEPT_POLICY_VERSIONS],
        );
        return ok(undefined);
      }),
  };
}

/** In a cluster, a set is entered by the step that puts it in force. */
export function createPostgresPolicyVersions(postgres: Postgres, shelf: Pick<PolicyShelf, 'read'>): PolicyVersions {
  return {
    list: () =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<VersionRow>(
          `SELECT version, since, till, activated_by, document_count, rule_count FROM policy_set
             WHERE since IS NOT NULL ORDER BY till DESC NULLS FIRST, since DESC`,
        );
        return rows.map((row) => ({
          version: row.version,
          sinceMs: row.since.getTime(),
          untilMs: row.till?.getTime(),
          by: row.activated_by,
          documents: row.document_count,
          rules: row.rule_count,
        }));
      }),
    texts: (version) => shelf.read(version),
  };
}

type VersionRow = {
  readonly version: string;
  readonly since: Date;
  readonly till: Date | null;
  readonly activated_by: string;
  readonly document_count: number;
  readonly rule_count: number;
};

export function createPostgresShadow(postgres: Postgres, run: RunId): ShadowStore {
  return {
    load: () =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<{ body: string }>('SELECT body FROM policy_shadow');
        return rows[0] && (JSON.parse(rows[0].body) as KeptShadow);
      }),
    save: (shadow) =>
      transactAsRun(postgres, async (on) => {
        await on.query('SELECT cluster_check($1)', [run]);
        await on.query(
          `INSERT INTO policy_shadow (one, version, since_ms, body) VALUES (true, $1, $2, $3)
             ON CONFLICT (one) DO UPDATE SET version = $1, since_ms = $2, body = $3`,
          [shadow.version, shadow.sinceMs, JSON.stringify(shadow)],
        );
        return ok(undefined);
      }),
    remove: ({ version, sinceMs }) =>
      transactAsRun(postgres, async (on) => {
        await on.query('SELECT cluster_check($1)', [run]);
        const { rows } = await on.query(
          'DELETE FROM policy_shadow WHERE version = $1 AND since_ms = $2 RETURNING version',
          [version, sinceMs],
        );
        return ok(rows.length > 0);
      }),
  };
}
