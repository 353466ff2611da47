/** How runs end, and what becomes of old rows, as a step of the schema. */
import type { Migration } from '../migration.ts';
import { FREEING } from './ended-runs-schema.ts';

/** The function with which any gateway tidies; `removal` counts in `gone` what it has removed of something last. */
export const tidying = (removal: string): string => `
  -- Any gateway calls it; one at a time. Answers whether there is more to do: at most p_most rows of a kind go at once.
  -- Runs are remembered for longer than a period lasts: one that was stopped for as long and goes on is still refused.
  CREATE OR REPLACE FUNCTION cluster_tidy(p_ttl_ms integer, p_most integer) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE runs uuid[]; owners text[]; periods text[]; gone integer; is_more boolean;
  BEGIN
    IF NOT pg_try_advisory_xact_lock(7302001) THEN RETURN false; END IF;
    UPDATE cluster_node SET state = 'suspect' WHERE state = 'live' AND lease_until < clock_timestamp();
    -- One that has been away for a day and holds nothing is not waited for any more.
    UPDATE cluster_node SET state = 'retired', ended_at = now() WHERE epoch = ANY (ARRAY(
      SELECT epoch FROM cluster_node n WHERE state = 'suspect' AND lease_until < now() - interval '1 day' AND NOT EXISTS (
        SELECT FROM budget_grant g WHERE g.epoch = n.epoch AND g.granted > g.spent) LIMIT p_most));
${FREEING}    is_more := is_more OR gone = p_most;
${removal}    DELETE FROM cluster_node n WHERE state = 'retired' AND ended_at < now() - interval '40 days'
      AND NOT EXISTS (SELECT FROM budget_grant g WHERE g.epoch = n.epoch);
    RETURN is_more OR gone = p_most;
  END $$;
`;

/** All gateways that follow the changes have heard of these. */
const REMOVED_ROWS = `    DELETE FROM cluster_state WHERE (kind, id) IN (
      SELECT kind, id FROM cluster_state WHERE removed AND changed_at < now() - interval '1 day' LIMIT p_most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    is_more := is_more OR gone = p_most;
    DELETE FROM agents WHERE key IN (
      SELECT key FROM agents WHERE removed AND changed_at < now() - interval '1 day' LIMIT p_most);
    GET DIAGNOSTICS gone = ROW_COUNT;
`;

/**
 * A run that leaves has said what it has spent, and what its operations may still spend: those go on. The latter is
 * freed once their reservations would have expired, as for a run that is settled. Old rows are removed by whoever
 * tidies, some at a time, and by no write that somebody waits for.
 */
const ENDINGS = `
  CREATE OR REPLACE FUNCTION cluster_leave(p_epoch uuid) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE cluster_node SET state = 'retired', ended_at = clock_timestamp(), settled = true
      WHERE epoch = p_epoch AND state <> 'retired';
  END $$;

  -- Retired runs that may go on all the same: nobody has seen them end, and their lease may last.
  CREATE FUNCTION cluster_leavers(p_lease_ms integer) RETURNS SETOF cluster_node LANGUAGE sql AS $$
    SELECT * FROM cluster_node WHERE state = 'retired' AND NOT settled
      AND lease_until > clock_timestamp() - make_interval(secs => p_lease_ms / 2000.0);
  $$;

${tidying(REMOVED_ROWS)}

  DO $$
  DECLARE writes text;
  BEGIN
    FOREACH writes IN ARRAY ARRAY['agent_remove', 'state_write'] LOOP
      EXECUTE regexp_replace(pg_get_functiondef(writes::regproc), 'DELETE FROM [a-z_]+ WHERE removed[^;]*;', '');
    END LOOP;
  END $$;
`;

export const TIDY_MIGRATIONS: readonly Migration[] = [
  { number: 21, name: 'endings of runs', sql: ENDINGS, toleratedSince: 14 },
];
