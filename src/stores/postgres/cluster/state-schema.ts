/** Halts and approvals of all gateways, and the policies that are in force everywhere, as steps of the schema. */
import type { Migration } from '../migration.ts';

/**
 * Decisions of people, by kind and id. Rows of one `key` are changed one after the other: a writer holds the lock of
 * the key, has read the newest rows under it, and writes before it releases it. A removed row stays for a day, so that
 * gateways that follow the changes hear of it; `xid` is as that of `agents`.
 */
const STATES = `
  CREATE TABLE cluster_state (
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    body text NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    removed boolean NOT NULL DEFAULT false,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (kind, id)
  );
  CREATE INDEX cluster_state_by_key ON cluster_state (kind, key) WHERE NOT removed;
  CREATE INDEX cluster_state_by_change ON cluster_state (kind, xid);
  CREATE INDEX cluster_state_by_removal ON cluster_state (changed_at) WHERE removed;

  -- Begins a turn. A gateway that is stopped in the middle of one loses it, so that the others do not wait for it.
  CREATE FUNCTION state_turn(p_kind text, p_key text)
  RETURNS TABLE (id text, key text, body text, version bigint, now timestamptz) LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM set_config('lock_timeout', '2000', true), set_config('idle_in_transaction_session_timeout', '2000', true);
    PERFORM pg_advisory_xact_lock(7302005, hashtext(p_kind || ' ' || p_key));
    RETURN QUERY SELECT s.id, s.key, s.body, s.version, clock_timestamp() FROM (SELECT 1) AS always
      LEFT JOIN cluster_state s ON s.kind = p_kind AND s.key = p_key AND NOT s.removed;
  END $$;

  -- The run is looked at last: whoever waits for a turn must not hold up its own beats.
  CREATE FUNCTION state_write(p_epoch uuid, p_kind text, p_id text[], p_key text[], p_body text[], p_removed boolean[])
  RETURNS TABLE (id text, version bigint) LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  BEGIN
    PERFORM cluster_check(p_epoch);
    DELETE FROM cluster_state WHERE removed AND changed_at < clock_timestamp() - interval '1 day';
    RETURN QUERY INSERT INTO cluster_state AS s (kind, id, key, body, removed)
      SELECT p_kind, u.i, u.k, u.b, u.r FROM unnest(p_id, p_key, p_body, p_removed) u(i, k, b, r) ORDER BY u.i
      ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, removed = excluded.removed, version = s.version + 1,
        changed_at = clock_timestamp(), xid = pg_current_xact_id()
      RETURNING s.id, s.version;
  END $$;
`;

/** The function that puts a version in force; `note` writes down what else that changes. */
export const policyActivate = (
  note: string,
): string => `policy_activate(p_epoch uuid, p_version text, p_by text, p_first boolean) RETURNS text
  LANGUAGE plpgsql AS $$
  DECLARE active text;
  BEGIN
    PERFORM pg_advisory_xact_lock(7302006);
    PERFORM cluster_check(p_epoch);
    SELECT version INTO active FROM policy_active;
    IF active = p_version OR (p_first AND active IS NOT NULL) THEN RETURN active; END IF;
    INSERT INTO policy_active (one, version, activated_by) VALUES (true, p_version, p_by)
      ON CONFLICT (one) DO UPDATE SET version = p_version, activated_at = clock_timestamp(), activated_by = p_by;
${note}    RETURN p_version;
  END $$;
`;

/** Sets of documents by their version, and which one is in force: `policy_active`, which has one row at most. */
const POLICIES = `
  CREATE TABLE policy_set (
    version text COLLATE "C" PRIMARY KEY,
    documents text NOT NULL,
    published_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_by text NOT NULL
  );

  -- Which version is in force afterwards. With p_first, one that is in force already stays.
  CREATE FUNCTION ${policyActivate('')}`;

export const STATE_MIGRATIONS: readonly Migration[] = [
  { number: 11, name: 'halts and approvals of a cluster', sql: STATES },
  { number: 12, name: 'policies of a cluster', sql: POLICIES },
];
