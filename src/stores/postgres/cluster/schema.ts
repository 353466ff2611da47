/** Tables that several gateways share, as steps of the schema: members, and the ledger of budgets. */
import type { Migration } from '../migration.ts';

/**
 * Runs (`epoch`) of gateways (`node`). Every shared write is conditional on its own run not being retired, in the same
 * transaction: SQLSTATE SV001 says that it is, SV002 that the database does not know the run.
 */
const MEMBERSHIP = `
  CREATE TABLE cluster_node (
    epoch uuid PRIMARY KEY,
    node text COLLATE "C" NOT NULL,
    state text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'suspect', 'retired')),
    seq bigint NOT NULL DEFAULT 0,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL,
    ended_at timestamptz,
    settled boolean NOT NULL DEFAULT false,
    version text NOT NULL,
    protocols integer[] NOT NULL,
    on_outage text NOT NULL,
    policy_version text,
    audit_id bigint,
    audit_hash text,
    skew_ms integer NOT NULL DEFAULT 0,
    unconfirmed integer NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);
  CREATE UNIQUE INDEX cluster_node_by_name ON cluster_node (node) WHERE state <> 'retired';

  -- Which server grants money: another one may have forgotten what its predecessor had granted.
  CREATE TABLE cluster_server (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    started_at timestamptz NOT NULL,
    noticed_at timestamptz NOT NULL
  );
  INSERT INTO cluster_server VALUES (true, pg_postmaster_start_time(), clock_timestamp());

  -- The policy in force everywhere: budgets are granted under no other. Without a row, under any.
  CREATE TABLE policy_active (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version text NOT NULL,
    activated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    activated_by text NOT NULL
  );

  CREATE FUNCTION cluster_alive(p_epoch uuid, p_lease_ms integer) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE cluster_node SET state = 'live', seen_at = clock_timestamp(),
        lease_until = clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0)
      WHERE epoch = p_epoch AND state <> 'retired';
    IF FOUND THEN RETURN; END IF;
    IF EXISTS (SELECT FROM cluster_node WHERE epoch = p_epoch) THEN
      RAISE EXCEPTION 'this gateway was replaced' USING ERRCODE = 'SV001';
    END IF;
    RAISE EXCEPTION 'unknown run: join again' USING ERRCODE = 'SV002';
  END $$;

  CREATE FUNCTION cluster_beat(p_epoch uuid, p_lease_ms integer, p_policy text, p_audit_id bigint, p_audit_hash text,
    p_skew_ms integer, p_caught_up boolean) RETURNS SETOF cluster_node LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM cluster_alive(p_epoch, p_lease_ms);
    UPDATE cluster_node SET policy_version = p_policy, audit_id = p_audit_id, audit_hash = p_audit_hash, skew_ms = p_skew_ms,
        unconfirmed = CASE WHEN p_caught_up THEN 0 ELSE unconfirmed END
      WHERE epoch = p_epoch;
    RETURN QUERY SELECT * FROM cluster_node WHERE state <> 'retired' ORDER BY node;
  END $$;
`;

/**
 * The money of all gateways, by owner and period. `spent` is what all runs have reported, `out` what they were granted
 * beyond that: `spent + out` never exceeds the cap because of a grant. Amounts are whole micro-dollars.
 */
const LEDGER = `
  CREATE TABLE budget_account (
    owner text COLLATE "C" NOT NULL,
    period text COLLATE "C" NOT NULL,
    spent bigint NOT NULL DEFAULT 0,
    out bigint NOT NULL DEFAULT 0,
    alerted smallint NOT NULL DEFAULT 0,
    ends_at timestamptz NOT NULL,
    PRIMARY KEY (owner, period)
  ) WITH (fillfactor = 70);
  CREATE INDEX budget_account_by_end ON budget_account (ends_at);

  CREATE TABLE budget_grant (
    epoch uuid NOT NULL REFERENCES cluster_node,
    owner text COLLATE "C" NOT NULL,
    period text COLLATE "C" NOT NULL,
    granted bigint NOT NULL,
    spent bigint NOT NULL,
    PRIMARY KEY (epoch, owner, period)
  ) WITH (fillfactor = 70);
  CREATE INDEX budget_grant_by_account ON budget_grant (owner, period);

  -- Usage ids that were counted, and by which run: a retry counts once at whichever gateway it arrives.
  CREATE TABLE usage_id (
    agent text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    epoch uuid NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (agent, id)
  );
  CREATE INDEX usage_id_by_age ON usage_id (recorded_at);

  -- Retires the earlier run of this name, and settles the run whose data directory this one has: what that run has spent
  -- is known exactly then, and what it held besides is freed once the reservations of its operations would have expired.
  CREATE FUNCTION cluster_join(p_epoch uuid, p_node text, p_lease_ms integer, p_version text, p_protocols integer[],
    p_on_outage text, p_settle uuid, p_owner text[], p_period text[], p_spent bigint[]) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    -- Two that join under one name at once: the later one waits for the earlier, and replaces it.
    PERFORM pg_advisory_xact_lock(7302002, hashtext(p_node));
    IF EXISTS (SELECT FROM cluster_node WHERE epoch = p_epoch) THEN RETURN; END IF;
    UPDATE cluster_node SET state = 'retired', ended_at = clock_timestamp() WHERE node = p_node AND state <> 'retired';
    UPDATE cluster_node SET state = 'retired', ended_at = clock_timestamp(), settled = true
      WHERE epoch = p_settle AND NOT settled;
    IF FOUND THEN
      -- Spent, and never reported.
      INSERT INTO budget_account (owner, period, ends_at)
        SELECT u.o, u.p, clock_timestamp() + interval '40 days' FROM unnest(p_owner, p_period) u(o, p) ORDER BY 1, 2
        ON CONFLICT DO NOTHING;
      INSERT INTO budget_grant (epoch, owner, period, granted, spent)
        SELECT p_settle, u.o, u.p, 0, 0 FROM unnest(p_owner, p_period) u(o, p) ON CONFLICT DO NOTHING;
      PERFORM 1 FROM budget_account a JOIN budget_grant g USING (owner, period)
        WHERE g.epoch = p_settle ORDER BY a.owner, a.period FOR UPDATE OF a;
      UPDATE budget_account a SET spent = a.spent + greatest(u.s - g.spent, 0),
          out = a.out - greatest(g.granted - g.spent, 0) + greatest(g.granted - greatest(u.s, g.spent), 0)
        FROM budget_grant g JOIN unnest(p_owner, p_period, p_spent) u(o, p, s) ON g.owner = u.o AND g.period = u.p
        WHERE g.epoch = p_settle AND a.owner = g.owner AND a.period = g.period;
      UPDATE budget_grant g SET spent = greatest(u.s, g.spent), granted = greatest(g.granted, u.s)
        FROM unnest(p_owner, p_period, p_spent) u(o, p, s)
        WHERE g.epoch = p_settle AND g.owner = u.o AND g.period = u.p;
    END IF;
    INSERT INTO cluster_node (epoch, node, lease_until, version, protocols, on_outage)
      VALUES (p_epoch, p_node, clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0), p_version, p_protocols, p_on_outage);
  END $$;

  -- What a run was granted and has not spent goes back; the caller holds no lock yet.
  CREATE FUNCTION cluster_free(p_epoch uuid) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM 1 FROM budget_account a JOIN budget_grant g USING (owner, period)
      WHERE g.epoch = p_epoch ORDER BY a.owner, a.period FOR UPDATE OF a;
    UPDATE budget_account a SET out = a.out - (g.granted - g.spent) FROM budget_grant g
      WHERE g.epoch = p_epoch AND g.owner = a.owner AND g.period = a.period AND g.granted > g.spent;
    UPDATE budget_grant SET granted = spent WHERE epoch = p_epoch AND granted > spent;
  END $$;

  -- A run that ends in order has returned what it held.
  CREATE FUNCTION cluster_leave(p_epoch uuid) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE cluster_node SET state = 'retired', ended_at = clock_timestamp(), settled = true
      WHERE epoch = p_epoch AND state <> 'retired';
    IF FOUND THEN PERFORM cluster_free(p_epoch); END IF;
  END $$;

  -- Any gateway calls it; one at a time.
  CREATE FUNCTION cluster_tidy(p_ttl_ms integer) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE run record;
  BEGIN
    IF NOT pg_try_advisory_xact_lock(7302001) THEN RETURN; END IF;
    UPDATE cluster_node SET state = 'suspect' WHERE state = 'live' AND lease_until < clock_timestamp();
    FOR run IN SELECT epoch FROM cluster_node n WHERE state = 'retired' AND settled
        AND ended_at < clock_timestamp() - make_interval(secs => p_ttl_ms / 1000.0)
        AND EXISTS (SELECT FROM budget_grant g WHERE g.epoch = n.epoch AND g.granted > g.spent) LOOP
      PERFORM cluster_free(run.epoch);
    END LOOP;
    DELETE FROM budget_grant g USING budget_account a
      WHERE a.owner = g.owner AND a.period = g.period AND a.ends_at < clock_timestamp() - interval '2 days';
    DELETE FROM budget_account WHERE ends_at < clock_timestamp() - interval '2 days';
    DELETE FROM usage_id WHERE (agent, id) IN (
      SELECT agent, id FROM usage_id WHERE recorded_at < clock_timestamp() - interval '25 hours' LIMIT 10000);
    DELETE FROM cluster_node n WHERE state = 'retired' AND ended_at < clock_timestamp() - interval '2 days'
      AND NOT EXISTS (SELECT FROM budget_grant g WHERE g.epoch = n.epoch);
  END $$;

  -- Answers how much was charged or freed; null: no such run is left. SV003: one may still run.
  CREATE FUNCTION cluster_forget(p_node text, p_free boolean, p_grace_ms integer) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE run record; total bigint; part bigint;
  BEGIN
    PERFORM pg_advisory_xact_lock(7302002, hashtext(p_node));
    IF EXISTS (SELECT FROM cluster_node WHERE node = p_node AND state <> 'retired'
        AND lease_until > clock_timestamp() - make_interval(secs => p_grace_ms / 1000.0)) THEN
      RAISE EXCEPTION 'a gateway of this name may still run' USING ERRCODE = 'SV003';
    END IF;
    FOR run IN SELECT epoch, state FROM cluster_node n WHERE node = p_node AND (state <> 'retired' OR (NOT settled
        AND ended_at < clock_timestamp() - make_interval(secs => p_grace_ms / 1000.0)
        AND EXISTS (SELECT FROM budget_grant g WHERE g.epoch = n.epoch AND g.granted > g.spent))) LOOP
      UPDATE cluster_node SET state = 'retired', ended_at = clock_timestamp(), settled = true WHERE epoch = run.epoch;
      SELECT coalesce(max(held), 0) INTO part FROM (SELECT sum(granted - spent) AS held FROM budget_grant
        WHERE epoch = run.epoch AND granted > spent GROUP BY period, split_part(owner, '/', 1)) AS by_tier;
      total := coalesce(total, 0) + part;
      IF NOT p_free THEN
        PERFORM 1 FROM budget_account a JOIN budget_grant g USING (owner, period)
          WHERE g.epoch = run.epoch ORDER BY a.owner, a.period FOR UPDATE OF a;
        UPDATE budget_account a SET spent = a.spent + (g.granted - g.spent), out = a.out - (g.granted - g.spent)
          FROM budget_grant g WHERE g.epoch = run.epoch AND g.owner = a.owner AND g.period = a.period AND g.granted > g.spent;
        UPDATE budget_grant SET spent = granted WHERE epoch = run.epoch AND granted > spent;
      ELSE
        PERFORM cluster_free(run.epoch);
      END IF;
    END LOOP;
    RETURN total;
  END $$;
`;

/**
 * Registrations. A removed one stays for a day, so that gateways that follow the changes hear of it. `xid` is the
 * transaction that wrote the row: whoever remembers which transactions it has seen misses none, in whichever order they
 * commit.
 */
const AGENTS = `
  -- Holds back what would retire the run until this transaction is over.
  CREATE FUNCTION cluster_check(p_epoch uuid) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM 1 FROM cluster_node WHERE epoch = p_epoch AND state <> 'retired' FOR SHARE;
    IF FOUND THEN RETURN; END IF;
    IF EXISTS (SELECT FROM cluster_node WHERE epoch = p_epoch) THEN
      RAISE EXCEPTION 'this gateway was replaced' USING ERRCODE = 'SV001';
    END IF;
    RAISE EXCEPTION 'unknown run: join again' USING ERRCODE = 'SV002';
  END $$;

  CREATE TABLE agents (
    key text COLLATE "C" PRIMARY KEY,
    org text NOT NULL,
    team text NOT NULL,
    agent text NOT NULL,
    credential text COLLATE "C",
    parent text COLLATE "C",
    registered_at timestamptz NOT NULL,
    removed boolean NOT NULL DEFAULT false,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id()
  );
  CREATE UNIQUE INDEX agents_by_credential ON agents (credential) WHERE credential IS NOT NULL;
  CREATE INDEX agents_by_change ON agents (xid);
  CREATE INDEX agents_by_removal ON agents (changed_at) WHERE removed;

  -- Answers what is in the way: another agent's credential, or a parent that descends from this agent.
  CREATE FUNCTION agent_save(p_epoch uuid, p_key text, p_org text, p_team text, p_agent text, p_credential text,
    p_registered_at timestamptz, p_parent text) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE above text := p_parent;
  BEGIN
    PERFORM cluster_check(p_epoch);
    IF p_parent IS NOT NULL THEN
      PERFORM pg_advisory_xact_lock(7302003, hashtext(p_org));
      FOR depth IN 1..1001 LOOP
        IF above = p_key OR depth = 1001 THEN RETURN 'parent'; END IF;
        SELECT parent INTO above FROM agents WHERE key = above AND NOT removed;
        EXIT WHEN above IS NULL;
      END LOOP;
    END IF;
    INSERT INTO agents (key, org, team, agent, credential, parent, registered_at)
      VALUES (p_key, p_org, p_team, p_agent, p_credential, p_parent, p_registered_at)
      ON CONFLICT (key) DO UPDATE SET credential = p_credential, parent = p_parent, registered_at = p_registered_at,
        removed = false, changed_at = clock_timestamp(), xid = pg_current_xact_id();
    RETURN NULL;
  EXCEPTION WHEN unique_violation THEN
    RETURN 'credential';
  END $$;

  CREATE FUNCTION agent_remove(p_epoch uuid, p_key text) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM cluster_check(p_epoch);
    UPDATE agents SET removed = true, credential = NULL, parent = NULL, changed_at = clock_timestamp(),
        xid = pg_current_xact_id()
      WHERE key = p_key AND NOT removed;
    DELETE FROM agents WHERE removed AND changed_at < clock_timestamp() - interval '1 day';
  END $$;
`;

const EXCHANGE = `
  -- What a run keeps, has spent and wants, against what it is granted. Absolute and cumulative numbers make repeats
  -- harmless; a sequence number that is not higher than the last one of the run is one that came late.
  CREATE FUNCTION budget_exchange(p_epoch uuid, p_seq bigint, p_lease_ms integer, p_policy text, p_owner text[],
    p_period text[], p_from timestamptz[], p_to timestamptz[], p_cap bigint[], p_keep bigint[], p_spent bigint[],
    p_need bigint[], p_want bigint[])
  RETURNS TABLE (owner text, period text, granted bigint, spent_all bigint, out_all bigint, alert integer)
  LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  DECLARE live integer; frozen boolean; server cluster_server; none constant bigint := 9007199254740991;
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
        bool_or(seen_at < server.noticed_at) AND clock_timestamp() < server.noticed_at + make_interval(secs => p_lease_ms / 1000.0)
      INTO live, frozen FROM cluster_node WHERE state <> 'retired';
    frozen := frozen OR EXISTS (SELECT FROM policy_active WHERE version <> p_policy);
    INSERT INTO budget_account (owner, period, ends_at) SELECT u.o, u.p, u.t FROM unnest(p_owner, p_period, p_to) u(o, p, t)
      ORDER BY 1, 2 ON CONFLICT DO NOTHING;
    PERFORM 1 FROM budget_account a JOIN unnest(p_owner, p_period) u(o, p) ON a.owner = u.o AND a.period = u.p
      ORDER BY a.owner, a.period FOR UPDATE OF a;
    RETURN QUERY
    WITH calc AS (
      SELECT u.*, a.alerted, a.spent + u.s1 - coalesce(b.spent, 0) AS spent1,
        a.out - greatest(coalesce(b.granted, 0) - coalesce(b.spent, 0), 0) + greatest(u.keep - u.s1, 0) AS out1,
        clock_timestamp() BETWEEN u.f - interval '1 hour' AND u.t + interval '1 hour' AS current
      FROM unnest(p_owner, p_period, p_from, p_to, p_cap, p_keep, p_spent, p_need, p_want) u(o, p, f, t, cap, keep, s1, need, want)
      JOIN budget_account a ON a.owner = u.o AND a.period = u.p
      LEFT JOIN budget_grant b ON b.epoch = p_epoch AND b.owner = u.o AND b.period = u.p
    ), give AS (
      SELECT c.*, greatest(c.keep, c.s1) AS kept,
        CASE WHEN frozen OR NOT c.current OR c.cap = none OR c.cap - c.spent1 - c.out1 < greatest(c.need, 1) THEN 0
          ELSE greatest(c.need, least(c.want, (c.cap - c.spent1 - c.out1) / (2 * greatest(live, 1)))) END AS raise,
        -- A raised cap makes an alert due again.
        CASE WHEN c.cap = none OR c.spent1 = 0 THEN 0 WHEN c.spent1 >= c.cap THEN 100
          WHEN c.spent1 * 5 >= c.cap * 4 THEN 80 ELSE 0 END AS level
      FROM calc c
    ), grants AS (
      INSERT INTO budget_grant (epoch, owner, period, granted, spent) SELECT p_epoch, o, p, kept + raise, s1 FROM give
        ON CONFLICT (epoch, owner, period) DO UPDATE SET granted = excluded.granted, spent = excluded.spent
    ), accounts AS (
      UPDATE budget_account a SET spent = g.spent1, out = g.out1 + g.raise, alerted = g.level
        FROM give g WHERE a.owner = g.o AND a.period = g.p
    )
    SELECT o, p, kept + raise, spent1, out1 + raise, CASE WHEN level > alerted THEN level END FROM give;
  END $$;
`;

export const CLUSTER_MIGRATIONS: readonly Migration[] = [
  { number: 8, name: 'cluster', sql: MEMBERSHIP + LEDGER },
  { number: 9, name: 'agents of a cluster', sql: AGENTS },
  { number: 10, name: 'ledger of a cluster', sql: EXCHANGE },
];
