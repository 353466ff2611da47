/** How runs end, and what becomes of old rows, as a step of the schema. */
import type { Migration } from '../migration.ts';

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
    -- Money that nobody holds any more is freed. The grants say nothing then that the accounts do not.
    SELECT array_agg(epoch), array_agg(owner), array_agg(period) INTO runs, owners, periods FROM (
      SELECT g.epoch, g.owner, g.period FROM cluster_node n CROSS JOIN LATERAL (
          SELECT epoch, owner, period FROM budget_grant b WHERE b.epoch = n.epoch ORDER BY owner, period LIMIT p_most) g
        WHERE n.state = 'retired' AND n.settled AND n.ended_at < now() - make_interval(secs => p_ttl_ms / 1000.0)
        LIMIT p_most) AS ended;
    PERFORM 1 FROM budget_account a WHERE (a.owner, a.period) IN (SELECT o, p FROM unnest(owners, periods) u(o, p))
      ORDER BY a.owner, a.period FOR UPDATE;
    WITH ended AS (
        DELETE FROM budget_grant g USING unnest(runs, owners, periods) u(e, o, p)
          WHERE g.epoch = u.e AND g.owner = u.o AND g.period = u.p RETURNING g.owner, g.period, g.granted - g.spent AS held),
      freed AS (SELECT owner, period, sum(held) AS held FROM ended WHERE held > 0 GROUP BY owner, period)
      UPDATE budget_account a SET out = a.out - f.held FROM freed f WHERE a.owner = f.owner AND a.period = f.period;
    is_more := coalesce(cardinality(runs), 0) = p_most;
    -- Accounts of periods that are over.
    SELECT array_agg(owner), array_agg(period) INTO owners, periods FROM (SELECT owner, period FROM budget_account
      WHERE ends_at < now() - interval '2 days' ORDER BY ends_at LIMIT p_most) AS old;
    DELETE FROM budget_grant g USING unnest(owners, periods) u(o, p) WHERE g.owner = u.o AND g.period = u.p;
    DELETE FROM budget_account a USING unnest(owners, periods) u(o, p) WHERE a.owner = u.o AND a.period = u.p;
    is_more := is_more OR coalesce(cardinality(owners), 0) = p_most;
    DELETE FROM usage_id WHERE (agent, id) IN (
      SELECT agent, id FROM usage_id WHERE recorded_at < now() - interval '25 hours' LIMIT p_most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    is_more := is_more OR gone = p_most;
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
