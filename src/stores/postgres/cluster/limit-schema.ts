/** Limits of use in the ledger of a cluster, as a step of the schema. */
import type { Migration } from '../migration.ts';

/**
 * Accounts of limits stand beside those of budgets, under owners that begin with `limit/`. The period `span` is that of
 * a span that slides: what a run has used falls as time passes, and what a run that is gone has used leaves the span
 * all at once, as long after its end as it may count (`lasts`). The period `life` is that of a session or lineage: it
 * ends when no run has used it for long enough. `raised` is the part of the maximum that people have added, and when.
 */
const LIMITS = `
  ALTER TABLE budget_account ADD COLUMN lasts interval, ADD COLUMN raised bigint NOT NULL DEFAULT 0,
    ADD COLUMN raised_at bigint NOT NULL DEFAULT 0;

  -- Takes over what an earlier run on the same data directory has used, as it counts it itself from now on. Answers
  -- whether there is more: at most p_most accounts at once.
  CREATE FUNCTION limit_adopt(p_epoch uuid, p_from uuid, p_most integer) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE moved integer;
  BEGIN
    UPDATE budget_grant g SET epoch = p_epoch FROM (
        SELECT owner, period FROM budget_grant b WHERE b.epoch = p_from AND b.owner LIKE 'limit/%' AND NOT EXISTS (
          SELECT FROM budget_grant o WHERE o.epoch = p_epoch AND o.owner = b.owner AND o.period = b.period) LIMIT p_most) u
      WHERE g.epoch = p_from AND g.owner = u.owner AND g.period = u.period;
    GET DIAGNOSTICS moved = ROW_COUNT;
    RETURN moved = p_most;
  END $$;

  -- A session that no run has used for long enough has ended, unless one of those that may go on holds some of it.
  -- One that was cut off, and has used it all the while, goes on with it.
  CREATE FUNCTION limit_end_lives(p_epoch uuid, p_owner text[], p_period text[], p_to timestamptz[], p_ttl_ms integer)
  RETURNS void LANGUAGE sql AS $$
    WITH ended AS (
        UPDATE budget_account a SET spent = 0, out = 0, alerted = 0, raised = 0, raised_at = 0
          FROM unnest(p_owner, p_period, p_to) u(o, p, t)
          WHERE a.owner = u.o AND a.period = u.p AND a.period = 'life' AND a.ends_at <= clock_timestamp()
            AND (u.t <= clock_timestamp() OR NOT EXISTS (
              SELECT FROM budget_grant b WHERE b.epoch = p_epoch AND b.owner = a.owner AND b.period = a.period))
            AND NOT EXISTS (SELECT FROM budget_grant g JOIN cluster_node n USING (epoch)
              WHERE g.owner = a.owner AND g.period = a.period AND g.granted > g.spent AND g.epoch <> p_epoch
                AND n.lease_until > clock_timestamp() - make_interval(secs => p_ttl_ms / 1000.0))
          RETURNING a.owner, a.period)
      DELETE FROM budget_grant g USING ended e WHERE g.owner = e.owner AND g.period = e.period;
  $$;

  -- One at a time, by cluster_tidy. Answers whether there is more to do.
  CREATE FUNCTION limit_tidy(p_ttl_ms integer, p_most integer) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE runs uuid[]; owners text[]; is_more boolean; ttl constant interval := make_interval(secs => p_ttl_ms / 1000.0);
  BEGIN
    -- A run that is not settled may have used something until it stopped by itself, for want of the database.
    SELECT array_agg(epoch), array_agg(owner) INTO runs, owners FROM (
      SELECT n.epoch, g.owner FROM cluster_node n CROSS JOIN LATERAL (
          SELECT b.owner FROM budget_grant b JOIN budget_account a USING (owner, period)
            WHERE b.epoch = n.epoch AND b.period = 'span'
              AND CASE WHEN n.settled THEN n.ended_at ELSE greatest(n.lease_until, n.ended_at) + ttl END + a.lasts < now()
            LIMIT p_most) g
        WHERE n.state <> 'live' LIMIT p_most) AS gone;
    is_more := coalesce(cardinality(runs), 0) = p_most;
    PERFORM 1 FROM budget_account WHERE owner = ANY (owners) AND period = 'span' ORDER BY owner FOR UPDATE;
    WITH gone AS (
        DELETE FROM budget_grant g USING unnest(runs, owners) u(e, o) WHERE g.epoch = u.e AND g.owner = u.o AND g.period = 'span'
          RETURNING g.owner, g.spent, greatest(g.granted - g.spent, 0) AS held),
      sums AS (SELECT owner, sum(spent) AS spent, sum(held) AS held FROM gone GROUP BY owner)
      UPDATE budget_account a SET spent = a.spent - s.spent, out = a.out - s.held FROM sums s
        WHERE a.owner = s.owner AND a.period = 'span';
    -- What a settled run held of a session is freed once its reservations would have expired.
    SELECT array_agg(epoch), array_agg(owner) INTO runs, owners FROM (
      SELECT n.epoch, g.owner FROM cluster_node n CROSS JOIN LATERAL (
          SELECT b.owner FROM budget_grant b
            WHERE b.epoch = n.epoch AND b.period = 'life' AND b.granted > b.spent LIMIT p_most) g
        WHERE n.state = 'retired' AND n.settled AND n.ended_at + ttl < now() LIMIT p_most) AS holding;
    is_more := is_more OR coalesce(cardinality(runs), 0) = p_most;
    PERFORM 1 FROM budget_account WHERE owner = ANY (owners) AND period = 'life' ORDER BY owner FOR UPDATE;
    WITH freed AS (
        UPDATE budget_grant g SET granted = g.spent FROM unnest(runs, owners) u(e, o)
          JOIN budget_grant b ON b.epoch = u.e AND b.owner = u.o AND b.period = 'life'
          WHERE g.epoch = b.epoch AND g.owner = b.owner AND g.period = b.period
          RETURNING g.owner, b.granted - b.spent AS held),
      sums AS (SELECT owner, sum(held) AS held FROM freed GROUP BY owner)
      UPDATE budget_account a SET out = a.out - s.held FROM sums s WHERE a.owner = s.owner AND a.period = 'life';
    -- Accounts in which nothing counts any more.
    SELECT array_agg(owner) INTO owners FROM (SELECT a.owner FROM budget_account a
      WHERE a.lasts IS NOT NULL AND a.ends_at < now() - ttl AND NOT EXISTS (
        SELECT FROM budget_grant g JOIN cluster_node n USING (epoch) WHERE g.owner = a.owner AND g.period = a.period
          AND (a.period = 'span' OR g.granted > g.spent) AND n.lease_until > now() - ttl)
      ORDER BY a.owner LIMIT p_most FOR UPDATE OF a) AS old;
    DELETE FROM budget_grant WHERE owner = ANY (owners);
    DELETE FROM budget_account WHERE owner = ANY (owners);
    RETURN is_more OR coalesce(cardinality(owners), 0) = p_most;
  END $$;

  -- As before, with accounts of limits.
  DROP FUNCTION budget_exchange(uuid, bigint, integer, text, text[], text[], timestamptz[], timestamptz[], bigint[],
    bigint[], bigint[], bigint[], bigint[]);
  CREATE FUNCTION budget_exchange(p_epoch uuid, p_seq bigint, p_lease_ms integer, p_policy text, p_ttl_ms integer,
    p_owner text[], p_period text[], p_from timestamptz[], p_to timestamptz[], p_cap bigint[], p_keep bigint[],
    p_spent bigint[], p_need bigint[], p_want bigint[], p_raised bigint[], p_raised_at bigint[])
  RETURNS TABLE (owner text, period text, granted bigint, spent_all bigint, out_all bigint, alert integer, raised bigint,
    raised_at bigint, over boolean)
  LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  DECLARE live integer; frozen boolean; server cluster_server; none constant bigint := 9007199254740991;
    has_limits constant boolean := 'span' = ANY (p_period) OR 'life' = ANY (p_period);
  BEGIN
    UPDATE cluster_node SET seq = p_seq, state = 'live', seen_at = clock_timestamp(),
        lease_until = clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0)
      WHERE epoch = p_epoch AND seq < p_seq AND state <> 'retired';
    IF NOT FOUND THEN
      IF EXISTS (SELECT FROM cluster_node WHERE epoch = p_epoch AND state <> 'retired') THEN RETURN; END IF;
      IF NOT EXISTS (SELECT FROM cluster_node WHERE epoch = p_epoch) THEN
        RAISE EXCEPTION 'unknown run: join again' USING ERRCODE = 'SV002';
      END IF;
      RAISE EXCEPTION 'this gateway was replaced' USING ERRCODE = 'SV001';
    END IF;
    SELECT * INTO server FROM cluster_server;
    IF server.started_at IS DISTINCT FROM pg_postmaster_start_time() THEN
      INSERT INTO cluster_server VALUES (true, pg_postmaster_start_time(), clock_timestamp())
        ON CONFLICT (one) DO UPDATE SET started_at = excluded.started_at, noticed_at = excluded.noticed_at
        WHERE cluster_server.started_at <> excluded.started_at;
      SELECT * INTO server FROM cluster_server;
    END IF;
    -- A server that took over may have forgotten grants: none is made until every run has said again what it keeps.
    SELECT count(*) FILTER (WHERE state = 'live'),
        bool_or(stated_to IS DISTINCT FROM server.started_at)
          AND clock_timestamp() < server.noticed_at + make_interval(secs => p_lease_ms / 1000.0)
      INTO live, frozen FROM cluster_node WHERE state <> 'retired';
    frozen := frozen OR EXISTS (SELECT FROM policy_active WHERE version <> p_policy);
    INSERT INTO budget_account (owner, period, ends_at) SELECT u.o, u.p, u.t FROM unnest(p_owner, p_period, p_to) u(o, p, t)
      ORDER BY 1, 2 ON CONFLICT DO NOTHING;
    PERFORM 1 FROM budget_account a JOIN unnest(p_owner, p_period) u(o, p) ON a.owner = u.o AND a.period = u.p
      ORDER BY a.owner, a.period FOR UPDATE OF a;
    IF has_limits THEN PERFORM limit_end_lives(p_epoch, p_owner, p_period, p_to, p_ttl_ms); END IF;
    RETURN QUERY
    WITH said AS (
      -- Use of a session that has ended counts no more.
      SELECT u.*, coalesce(b.granted, 0) AS granted0, coalesce(b.spent, 0) AS spent0, u.p IN ('span', 'life') AS limited,
        u.p = 'life' AND b.epoch IS NULL AND u.s > 0 AND u.t <= clock_timestamp() AS over
      FROM unnest(p_owner, p_period, p_from, p_to, p_cap, p_keep, p_spent, p_need, p_want, p_raised, p_raised_at)
        u(o, p, f, t, cap, k, s, n, w, raised, raised_at)
      LEFT JOIN budget_grant b ON b.epoch = p_epoch AND b.owner = u.o AND b.period = u.p
    ), told AS (
      SELECT said.*, CASE WHEN over THEN 0 ELSE s END AS s1, CASE WHEN over THEN 0 ELSE k END AS keep,
        CASE WHEN over THEN 0 ELSE n END AS need, CASE WHEN over THEN 0 ELSE w END AS want,
        -- A period that is counted again has the greatest of what was said of it.
        CASE WHEN over THEN 0 WHEN limited THEN s ELSE greatest(s, spent0) END AS s2
      FROM said
    ), calc AS (
      SELECT u.*, a.alerted, a.spent + u.s2 - u.spent0 AS spent1,
        a.out - greatest(u.granted0 - u.spent0, 0) + greatest(u.keep - u.s1, 0) AS out1,
        u.limited OR clock_timestamp() BETWEEN u.f - interval '1 hour' AND u.t + interval '1 hour' AS current,
        CASE WHEN NOT over AND (u.raised_at, u.raised) > (a.raised_at, a.raised) THEN u.raised ELSE a.raised END AS raised1,
        CASE WHEN over THEN a.raised_at ELSE greatest(a.raised_at, u.raised_at) END AS raised_at1
      FROM told u JOIN budget_account a ON a.owner = u.o AND a.period = u.p
    ), give AS (
      SELECT c.*, greatest(c.keep, c.s1) AS kept,
        CASE WHEN frozen OR NOT c.current OR c.cap = none OR c.cap - c.spent1 - c.out1 < greatest(c.need, 1) THEN 0
          ELSE greatest(c.need, least(c.want, (c.cap - c.spent1 - c.out1) / (2 * greatest(live, 1)))) END AS raise,
        -- A raised cap makes an alert due again.
        CASE WHEN c.cap = none OR c.spent1 = 0 THEN 0 WHEN c.spent1 >= c.cap THEN 100
          WHEN c.spent1 * 5 >= c.cap * 4 THEN 80 ELSE 0 END AS level
      FROM calc c
    ), grants AS (
      INSERT INTO budget_grant (epoch, owner, period, granted, spent) SELECT p_epoch, o, p, kept - s1 + s2 + raise, s2 FROM give
        ON CONFLICT (epoch, owner, period) DO UPDATE SET granted = excluded.granted, spent = excluded.spent
    ), accounts AS (
      UPDATE budget_account a SET spent = g.spent1, out = g.out1 + g.raise, alerted = g.level, raised = g.raised1,
          raised_at = g.raised_at1, ends_at = CASE WHEN g.limited THEN greatest(a.ends_at, g.t) ELSE a.ends_at END,
          lasts = CASE WHEN g.limited THEN g.t - g.f END
        FROM give g WHERE a.owner = g.o AND a.period = g.p
    )
    SELECT o, p, kept + raise, spent1, out1 + raise, CASE WHEN level > alerted THEN level END, raised1, raised_at1, over
      FROM give;
    IF has_limits THEN
      DELETE FROM budget_grant g USING unnest(p_owner, p_period) u(o, p)
        WHERE g.epoch = p_epoch AND g.owner = u.o AND g.period = u.p AND u.p IN ('span', 'life') AND g.granted = 0 AND g.spent = 0;
    END IF;
  END $$;

  DO $$
  DECLARE tidying text := pg_get_functiondef('cluster_tidy(integer, integer)'::regprocedure);
  BEGIN
    tidying := replace(tidying, 'WHERE b.epoch = n.epoch ORDER BY', 'WHERE b.epoch = n.epoch AND b.owner NOT LIKE ''limit/%'' ORDER BY');
    tidying := replace(tidying, 'WHERE ends_at < now() - interval ''2 days'' ORDER BY',
      'WHERE ends_at < now() - interval ''2 days'' AND lasts IS NULL ORDER BY');
    EXECUTE replace(tidying, 'DELETE FROM usage_id', 'is_more := limit_tidy(p_ttl_ms, p_most) OR is_more;
    DELETE FROM usage_id');
    -- Calls and tokens are no money.
    EXECUTE replace(pg_get_functiondef('cluster_forget'::regproc), 'GROUP BY period, split_part', 'AND owner NOT LIKE ''limit/%'' GROUP BY period, split_part');
  END $$;
`;

export const LIMIT_MIGRATIONS: readonly Migration[] = [{ number: 26, name: 'limits of a cluster', sql: LIMITS }];
