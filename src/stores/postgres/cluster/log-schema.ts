/** The log that all gateways of a cluster apply in the same order, as a step of the schema. */
import type { Migration } from '../migration.ts';
import { tidying } from './tidy-schema.ts';

/** Rows are kept until all live gateways have applied them, and for longer than a server may lag behind in any case. */
const OLD_LOG = `    DELETE FROM cluster_log WHERE seq IN (SELECT seq FROM cluster_log WHERE at < now() - interval '10 minutes'
        AND seq < (SELECT seq FROM cluster_head)
        AND seq < coalesce((SELECT min(coalesce(applied, 0)) FROM cluster_node WHERE state = 'live'), 0)
      ORDER BY seq LIMIT p_most);
    GET DIAGNOSTICS gone = ROW_COUNT;
`;

/**
 * `cluster_log` has one row an append; the tables of agents and states are what they come to. A row's `version` is the
 * `seq` that has changed it last, and a mark of the log stands for all rows up to there. Releases of before write these
 * tables without the log, so none may run beside it.
 */
const LOG = `
  CREATE TABLE cluster_head (one boolean PRIMARY KEY DEFAULT true CHECK (one), seq bigint NOT NULL, mark text NOT NULL);
  CREATE TABLE cluster_log (
    seq bigint PRIMARY KEY,
    nonce uuid NOT NULL UNIQUE,
    mark text NOT NULL,
    run uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Null: it was offered again, when a server had lost it.
    verdicts jsonb,
    entries jsonb NOT NULL
  );
  CREATE INDEX cluster_log_by_age ON cluster_log (at);
  INSERT INTO cluster_head VALUES (true, 1, md5(gen_random_uuid()::text));
  INSERT INTO cluster_log (seq, nonce, mark, run, verdicts, entries)
    SELECT seq, gen_random_uuid(), mark, gen_random_uuid(), '[]', '[]' FROM cluster_head;

  DROP FUNCTION agent_save, agent_remove, state_turn, state_write, policy_activate;
  DELETE FROM agents WHERE removed;
  ALTER TABLE agents DROP COLUMN removed, DROP COLUMN xid, DROP COLUMN changed_at, ADD COLUMN version bigint NOT NULL DEFAULT 1;
  DELETE FROM cluster_state WHERE removed;
  UPDATE cluster_state SET kind = 'orders' WHERE kind = 'controls';
  ALTER TABLE cluster_state DROP COLUMN removed, DROP COLUMN xid, DROP COLUMN changed_at, DROP COLUMN key;
  UPDATE cluster_state SET version = 1;
  ALTER TABLE cluster_node ADD COLUMN applied bigint, ADD COLUMN applied_mark text;

  -- What is in the way of an entry; null: nothing.
  CREATE FUNCTION cluster_judge(p_entry jsonb) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE kind_ text := p_entry ->> 'kind'; id_ text := p_entry ->> 'id'; body_ jsonb := p_entry -> 'body';
    known bigint; above text;
  BEGIN
    IF kind_ = 'agents' THEN
      SELECT version INTO known FROM agents WHERE key = id_;
    ELSIF kind_ = 'policy' THEN
      SELECT 1 INTO known FROM policy_active;
    ELSIF kind_ <> 'notice' THEN
      SELECT version INTO known FROM cluster_state WHERE kind = kind_ AND id = id_;
    END IF;
    IF coalesce(known, 0) > (p_entry ->> 'upTo')::bigint OR coalesce(known, 0) <> (p_entry ->> 'expects')::bigint THEN
      RETURN 'changed';
    END IF;
    IF kind_ <> 'agents' OR body_ IS NULL OR jsonb_typeof(body_) = 'null' THEN RETURN NULL; END IF;
    IF EXISTS (SELECT FROM agents WHERE credential = body_ ->> 'credential' AND key <> id_) THEN RETURN 'credential'; END IF;
    above := body_ ->> 'parent';
    FOR depth IN 1..1001 LOOP
      EXIT WHEN above IS NULL;
      IF above = id_ OR depth = 1001 THEN RETURN 'parent'; END IF;
      SELECT parent INTO above FROM agents WHERE key = above;
    END LOOP;
    RETURN NULL;
  END $$;

  CREATE FUNCTION cluster_enter(p_entry jsonb, p_seq bigint) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE kind_ text := p_entry ->> 'kind'; id_ text := p_entry ->> 'id'; body_ jsonb := p_entry -> 'body';
    is_gone boolean := coalesce(jsonb_typeof(p_entry -> 'body') = 'null', true); now_ timestamptz := clock_timestamp();
  BEGIN
    IF kind_ = 'agents' AND is_gone THEN
      DELETE FROM agents WHERE key = id_;
    ELSIF kind_ = 'agents' THEN
      INSERT INTO agents (key, org, team, agent, credential, parent, registered_at, version) VALUES (id_,
          body_ #>> '{identity,orgId}', body_ #>> '{identity,teamId}', body_ #>> '{identity,agentId}', body_ ->> 'credential',
          body_ ->> 'parent', to_timestamp((body_ ->> 'registeredAtMs')::numeric / 1000), p_seq)
        ON CONFLICT (key) DO UPDATE SET credential = excluded.credential, parent = excluded.parent,
          registered_at = excluded.registered_at, version = p_seq;
    ELSIF kind_ = 'policy' THEN
      -- A set ends at the moment at which the next one begins: two looks at the clock would leave a gap.
      IF EXISTS (SELECT FROM policy_active WHERE version = body_ ->> 'version') THEN RETURN; END IF;
      UPDATE policy_set SET till = now_ WHERE version = (SELECT version FROM policy_active);
      INSERT INTO policy_active (one, version, activated_at, activated_by)
        VALUES (true, body_ ->> 'version', now_, body_ ->> 'by')
        ON CONFLICT (one) DO UPDATE SET version = excluded.version, activated_at = now_, activated_by = excluded.activated_by;
      UPDATE policy_set SET since = now_, till = NULL, activated_by = body_ ->> 'by'
        WHERE version = body_ ->> 'version';
    ELSIF kind_ = 'notice' THEN
      RETURN;
    ELSIF is_gone THEN
      DELETE FROM cluster_state WHERE kind = kind_ AND id = id_;
    ELSE
      INSERT INTO cluster_state (kind, id, body, version) VALUES (kind_, id_, p_entry ->> 'body', p_seq)
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, version = p_seq;
    END IF;
  END $$;

  -- What comes after p_applied. 'lost': this server does not have what the caller has applied; 'gap': it has removed rows
  -- that the caller has not.
  CREATE FUNCTION cluster_after(p_applied bigint, p_mark text, p_most integer, p_lease_ms integer) RETURNS jsonb
  LANGUAGE plpgsql AS $$
  DECLARE head cluster_head;
  BEGIN
    SELECT * INTO head FROM cluster_head;
    IF p_applied > head.seq OR EXISTS (SELECT FROM cluster_log WHERE seq = p_applied AND mark <> p_mark) THEN
      RETURN jsonb_build_object('lost', true);
    END IF;
    RETURN jsonb_build_object('seq', head.seq,
      'gap', NOT EXISTS (SELECT FROM cluster_log WHERE seq = p_applied),
      'now', extract(epoch FROM clock_timestamp()) * 1000,
      'rows', (SELECT coalesce(jsonb_agg(jsonb_build_object('seq', seq, 'mark', mark, 'nonce', nonce, 'run', run,
          'at', extract(epoch FROM at) * 1000, 'entries', entries) ORDER BY seq), '[]') FROM (
        SELECT * FROM cluster_log WHERE seq > p_applied ORDER BY seq LIMIT p_most) l),
      'members', (SELECT coalesce(jsonb_agg(to_jsonb(m) ORDER BY node), '[]') FROM (
        SELECT * FROM cluster_node WHERE state <> 'retired' UNION ALL SELECT * FROM cluster_leavers(p_lease_ms)) m));
  END $$;

  -- When each id was changed last after p_seq, counted from when that was entered first.
  CREATE FUNCTION cluster_changed_after(p_seq bigint) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_object_agg(id, at), '{}') FROM (
      SELECT (e ->> 'kind') || ' ' || (e ->> 'id') AS id,
          max(coalesce((e ->> 'at')::numeric, extract(epoch FROM l.at) * 1000)) AS at
        FROM cluster_log l, jsonb_array_elements(l.entries) e WHERE l.seq > p_seq GROUP BY 1) changed
  $$;

  -- One transaction: each group of entries is accepted as a whole, or refused. Sent again under its nonce it changes
  -- nothing, and is answered the same. The run is looked at after the head is locked: beats must not wait for the head.
  CREATE FUNCTION cluster_append(p_run uuid, p_nonce uuid, p_applied bigint, p_mark text, p_groups jsonb, p_most integer,
    p_lease_ms integer) RETURNS jsonb LANGUAGE plpgsql AS $$
  DECLARE head cluster_head; known cluster_log; grouped jsonb; entry jsonb; verdict text; verdicts jsonb := '[]';
    accepted jsonb := '[]'; answer jsonb; changed jsonb; now_ timestamptz;
  BEGIN
    SELECT * INTO head FROM cluster_head FOR UPDATE;
    PERFORM cluster_check(p_run);
    answer := cluster_after(p_applied, p_mark, 0, p_lease_ms);
    IF answer ? 'lost' THEN RETURN answer; END IF;
    SELECT * INTO known FROM cluster_log WHERE nonce = p_nonce;
    IF NOT FOUND THEN
      -- What is offered again comes after the place that the caller and this server have in common; once rows after it
      -- are gone, nobody can say what is newer.
      IF jsonb_path_exists(p_groups, '$[*][*].at') THEN
        IF (answer -> 'gap')::boolean THEN RETURN answer; END IF;
        changed := cluster_changed_after(p_applied);
      END IF;
      FOR grouped IN SELECT * FROM jsonb_array_elements(p_groups) LOOP
        verdict := NULL;
        FOR entry IN SELECT * FROM jsonb_array_elements(grouped) LOOP
          IF (changed ->> ((entry ->> 'kind') || ' ' || (entry ->> 'id')))::numeric >= (entry ->> 'at')::numeric THEN
            verdict := coalesce(verdict, 'changed');
          END IF;
          verdict := coalesce(verdict, cluster_judge(entry));
        END LOOP;
        verdicts := verdicts || to_jsonb(coalesce(verdict, 'accepted'));
        CONTINUE WHEN verdict IS NOT NULL;
        FOR entry IN SELECT * FROM jsonb_array_elements(grouped) LOOP
          PERFORM cluster_enter(entry, head.seq + 1);
          accepted := accepted || jsonb_build_array(entry);
        END LOOP;
      END LOOP;
      now_ := greatest(clock_timestamp(), (SELECT at + interval '1 microsecond' FROM cluster_log WHERE seq = head.seq));
      INSERT INTO cluster_log (seq, nonce, mark, run, at, verdicts, entries)
        VALUES (head.seq + 1, p_nonce, md5(head.mark || p_nonce || now_ || accepted), p_run, now_,
          CASE WHEN changed IS NULL THEN verdicts END, accepted) RETURNING * INTO known;
      UPDATE cluster_head SET seq = known.seq, mark = known.mark;
    END IF;
    RETURN cluster_after(p_applied, p_mark, p_most, p_lease_ms)
      || jsonb_build_object('mine', jsonb_build_object('seq', known.seq, 'verdicts', known.verdicts));
  END $$;

  -- With how far the run acts by the log.
  CREATE FUNCTION cluster_beat(p_epoch uuid, p_lease_ms integer, p_policy text, p_audit_id bigint, p_audit_hash text,
    p_skew_ms integer, p_caught_up boolean, p_on_bus boolean, p_applied bigint, p_mark text)
  RETURNS SETOF cluster_node LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE cluster_node SET applied = p_applied, applied_mark = p_mark WHERE epoch = p_epoch;
    RETURN QUERY SELECT * FROM
      cluster_beat(p_epoch, p_lease_ms, p_policy, p_audit_id, p_audit_hash, p_skew_ms, p_caught_up, p_on_bus);
  END $$;
${tidying(OLD_LOG)}
`;

export const LOG_MIGRATIONS: readonly Migration[] = [{ number: 24, name: 'log of a cluster', sql: LOG }];
