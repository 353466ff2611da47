/** Clears ended runs in steps that hold nobody up, as a step of the schema. */
import type { Migration } from '../migration.ts';

/** The part of tidying that frees what ended runs held, and drops accounts and usage ids that are over. */
export const FREEING = `    -- Money that nobody holds any more is freed. The grants say nothing then that the accounts do not.
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
`;

/**
 * A run may have had hundreds of thousands of accounts, and a statement has seconds: what it has spent is taken over,
 * and what it held is freed, some accounts at a time. Each step may be repeated. Releases of before go on with
 * `cluster_join` and the other `cluster_tidy`, which do all of it at once.
 */
const ENDED_RUNS = `
  -- Takes over what a run of before has spent in these accounts, and keeps it from spending more. The last call, with
  -- p_done, has what it held besides freed once the reservations of its operations would have expired.
  CREATE FUNCTION cluster_settle(p_settle uuid, p_owner text[], p_period text[], p_spent bigint[], p_done boolean)
  RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE cluster_node SET state = 'retired', ended_at = clock_timestamp(), settled = p_done
      WHERE epoch = p_settle AND NOT settled;
    IF NOT FOUND THEN RETURN; END IF;
    -- Spent, and never reported.
    INSERT INTO budget_account (owner, period, ends_at)
      SELECT u.o, u.p, clock_timestamp() + interval '40 days' FROM unnest(p_owner, p_period) u(o, p) ORDER BY 1, 2
      ON CONFLICT DO NOTHING;
    INSERT INTO budget_grant (epoch, owner, period, granted, spent)
      SELECT p_settle, u.o, u.p, 0, 0 FROM unnest(p_owner, p_period) u(o, p) ON CONFLICT DO NOTHING;
    PERFORM 1 FROM budget_account a JOIN unnest(p_owner, p_period) u(o, p) ON a.owner = u.o AND a.period = u.p
      ORDER BY a.owner, a.period FOR UPDATE OF a;
    UPDATE budget_account a SET spent = a.spent + greatest(u.s - g.spent, 0),
        out = a.out - greatest(g.granted - g.spent, 0) + greatest(g.granted - greatest(u.s, g.spent), 0)
      FROM unnest(p_owner, p_period, p_spent) u(o, p, s) JOIN budget_grant g ON g.epoch = p_settle AND g.owner = u.o AND g.period = u.p
      WHERE a.owner = u.o AND a.period = u.p;
    UPDATE budget_grant g SET spent = greatest(u.s, g.spent), granted = greatest(g.granted, u.s)
      FROM unnest(p_owner, p_period, p_spent) u(o, p, s)
      WHERE g.epoch = p_settle AND g.owner = u.o AND g.period = u.p;
  END $$;

  -- Of a run that has returned everything there is nothing to lock.
  CREATE OR REPLACE FUNCTION cluster_free(p_epoch uuid) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM 1 FROM budget_account a JOIN budget_grant g USING (owner, period)
      WHERE g.epoch = p_epoch AND g.granted > g.spent ORDER BY a.owner, a.period FOR UPDATE OF a;
    UPDATE budget_account a SET out = a.out - (g.granted - g.spent) FROM budget_grant g
      WHERE g.epoch = p_epoch AND g.owner = a.owner AND g.period = a.period AND g.granted > g.spent;
    UPDATE budget_grant SET granted = spent WHERE epoch = p_epoch AND granted > spent;
  END $$;

  -- Any gateway calls it; one at a time. Answers whether there is more to do: at most p_most rows of a kind go at once.
  -- Runs are remembered for longer than a period lasts: one that was stopped for as long and goes on is still refused.
  CREATE FUNCTION cluster_tidy(p_ttl_ms integer, p_most integer) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE runs uuid[]; owners text[]; periods text[]; gone integer; is_more boolean;
  BEGIN
    IF NOT pg_try_advisory_xact_lock(7302001) THEN RETURN false; END IF;
    UPDATE cluster_node SET state = 'suspect' WHERE state = 'live' AND lease_until < clock_timestamp();
${FREEING}    DELETE FROM cluster_node n WHERE state = 'retired' AND ended_at < now() - interval '40 days'
      AND NOT EXISTS (SELECT FROM budget_grant g WHERE g.epoch = n.epoch);
    RETURN is_more OR gone = p_most;
  END $$;

  -- Whoever writes also removes what is old. With a time that may change in the middle of a statement, no index is used.
  DO $$
  DECLARE writes text;
  BEGIN
    FOREACH writes IN ARRAY ARRAY['agent_remove', 'state_write', 'webhook_write'] LOOP
      EXECUTE replace(pg_get_functiondef(writes::regproc), '_at < clock_timestamp() - interval', '_at < now() - interval');
    END LOOP;
  END $$;
`;

/**
 * A server that took over may have forgotten the latest exchanges. That a run has been heard of is not enough: it has
 * to have said again what it keeps of every account.
 */
const STATED = `
  ALTER TABLE cluster_node ADD COLUMN stated_to timestamptz;
  -- Nobody had been granted anything before this database had its tables.
  UPDATE cluster_server SET noticed_at = '-infinity';

  CREATE FUNCTION cluster_stated(p_epoch uuid, p_server timestamptz) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM cluster_check(p_epoch);
    UPDATE cluster_node SET stated_to = p_server WHERE epoch = p_epoch AND p_server = pg_postmaster_start_time();
  END $$;

  DO $$
  BEGIN
    EXECUTE replace(pg_get_functiondef('budget_exchange'::regproc), 'seen_at < server.noticed_at',
      'stated_to IS DISTINCT FROM server.started_at');
  END $$;
`;

export const ENDED_RUN_MIGRATIONS: readonly Migration[] = [
  { number: 17, name: 'ended runs of a cluster', sql: ENDED_RUNS, toleratedSince: 14 },
];

export const STATED_MIGRATIONS: readonly Migration[] = [
  { number: 19, name: 'holdings after a fail-over', sql: STATED, toleratedSince: 14 },
];
