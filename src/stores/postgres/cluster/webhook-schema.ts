/** Webhooks of a cluster, as a step of the schema. */
import type { Migration } from '../migration.ts';

/** `freed`: which messages are not held any more. `now`: by which those reported long ago are forgotten. */
const webhookWrite = (create: string, freed: string, now: string): string => `
  -- Answers how many were dropped because too many wait. What is there already was sent again: its answer was lost.
  ${create} FUNCTION webhook_write(p_epoch uuid, p_id text[], p_hook text[], p_body text[], p_held boolean[], p_once boolean[],
    p_released text[], p_withdrawn text[], p_dropping text[], p_dropped integer[], p_most integer, p_most_size integer)
  RETURNS integer LANGUAGE plpgsql AS $$
  DECLARE dropped_here integer;
  BEGIN
    PERFORM 1 FROM webhook WHERE id = ANY (p_hook || p_dropping)
        OR id IN (SELECT hook FROM webhook_message WHERE id = ANY (p_id || p_released || p_withdrawn))
      ORDER BY id FOR NO KEY UPDATE;
    DELETE FROM webhook_reported WHERE reported_at < ${now} - interval '40 days';
    UPDATE webhook_message SET held_by = NULL WHERE ${freed};
    WITH gone AS (DELETE FROM webhook_message WHERE held_by = p_epoch AND id = ANY (p_withdrawn) RETURNING id)
      DELETE FROM webhook_reported WHERE id IN (SELECT id FROM gone);
    UPDATE webhook SET dropped = dropped + d.n FROM unnest(p_dropping, p_dropped) d(i, n) WHERE id = d.i;
    WITH unknown AS (
        SELECT u.* FROM unnest(p_id, p_hook, p_body, p_held, p_once) WITH ORDINALITY u(id, hook, body, held, once, nth)
          JOIN webhook w ON w.id = u.hook AND w.disabled_at IS NULL
          WHERE NOT EXISTS (SELECT FROM webhook_message m WHERE m.id = u.id)),
      first AS (
        INSERT INTO webhook_reported (id) SELECT id FROM unknown WHERE once ORDER BY id ON CONFLICT DO NOTHING RETURNING id),
      before AS (
        SELECT hook, count(*) AS number, sum(size) AS size FROM webhook_message WHERE hook = ANY (p_hook) GROUP BY hook),
      counted AS (
        SELECT u.*, coalesce(b.number, 0) + row_number() OVER line <= p_most
            AND coalesce(b.size, 0) + sum(octet_length(u.body)) OVER line <= p_most_size AS fits
          FROM unknown u LEFT JOIN before b ON b.hook = u.hook
          WHERE NOT u.once OR u.id IN (SELECT id FROM first)
          WINDOW line AS (PARTITION BY u.hook ORDER BY u.nth)),
      saved AS (
        INSERT INTO webhook_message (id, hook, body, size, held_by)
          SELECT id, hook, body, octet_length(body), CASE WHEN held THEN p_epoch END FROM counted WHERE fits ORDER BY nth),
      lost AS (SELECT hook, count(*)::integer AS number FROM counted WHERE NOT fits GROUP BY hook),
      noted AS (UPDATE webhook w SET dropped = w.dropped + l.number FROM lost l WHERE w.id = l.hook)
      SELECT coalesce(sum(number), 0)::integer INTO dropped_here FROM lost;
    PERFORM cluster_check(p_epoch);
    RETURN dropped_here;
  END $$;`;

/**
 * Hooks and what waits for them. One run at a time calls a hook: `caller`, until `call_until`. It takes the hook with
 * its oldest message for one call, which ends before that, and notes what became of it. Of a run that ended in between,
 * another one takes over, with the same message. A message that is held by a run waits until that run has recorded what
 * it reports, or is gone. Whoever changes a hook or its messages locks the hook first, and looks at its run last.
 */
const WEBHOOKS = `
  CREATE TABLE webhook (
    id text COLLATE "C" PRIMARY KEY,
    sequence bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    url text NOT NULL,
    events text[] NOT NULL,
    org_id text,
    secret text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    failing_since timestamptz,
    failures integer NOT NULL DEFAULT 0,
    last_error text,
    disabled_at timestamptz,
    dropped integer NOT NULL DEFAULT 0,
    retry_at timestamptz,
    caller uuid,
    call_until timestamptz
  ) WITH (fillfactor = 50);

  CREATE TABLE webhook_message (
    id text COLLATE "C" PRIMARY KEY,
    sequence bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    hook text COLLATE "C" NOT NULL REFERENCES webhook ON DELETE CASCADE,
    body text NOT NULL,
    size integer NOT NULL,
    held_by uuid
  );
  CREATE INDEX webhook_message_by_hook ON webhook_message (hook, sequence) INCLUDE (size);

  -- Messages that are sent once, whichever gateways notice what they report: kept longer than the longest period.
  CREATE TABLE webhook_reported (
    id text COLLATE "C" PRIMARY KEY,
    reported_at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  CREATE INDEX webhook_reported_by_age ON webhook_reported (reported_at);

  -- False where there are as many already.
  CREATE FUNCTION webhook_create(p_epoch uuid, p_id text, p_url text, p_events text[], p_org text, p_secret text, p_by text,
    p_at timestamptz, p_most integer, p_most_of_org integer) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(7302008);
    IF (SELECT count(*) FROM webhook) >= p_most
      OR (p_org IS NOT NULL AND (SELECT count(*) FROM webhook WHERE org_id = p_org) >= p_most_of_org) THEN RETURN false; END IF;
    INSERT INTO webhook (id, url, events, org_id, secret, created_by, created_at)
      VALUES (p_id, p_url, p_events, p_org, p_secret, p_by, p_at);
    PERFORM cluster_check(p_epoch);
    RETURN true;
  END $$;

${webhookWrite('CREATE', 'held_by = p_epoch AND id = ANY (p_released || ARRAY(SELECT u.i FROM unnest(p_id, p_held) u(i, h) WHERE NOT u.h))', 'clock_timestamp()')}
  -- Hooks to be called now by this run, with the message to send; nobody else calls them for p_ms. A run whose lease
  -- ended a lease ago holds nothing back any more.
  CREATE FUNCTION webhook_take(p_epoch uuid, p_ms integer, p_most integer)
  RETURNS TABLE (hook text, url text, secret text, failures integer, id text, body text) LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  DECLARE due record; message record; taken integer := 0;
  BEGIN
    FOR due IN SELECT w.id, w.url, w.secret, w.failures FROM webhook w
        WHERE w.disabled_at IS NULL AND coalesce(w.retry_at, '-infinity') <= clock_timestamp()
          AND coalesce(w.call_until, '-infinity') <= clock_timestamp()
          AND EXISTS (SELECT FROM webhook_message m WHERE m.hook = w.id)
        ORDER BY w.id FOR NO KEY UPDATE SKIP LOCKED LOOP
      EXIT WHEN taken >= p_most;
      SELECT m.id, m.body, m.held_by INTO message FROM webhook_message m WHERE m.hook = due.id ORDER BY m.sequence LIMIT 1;
      CONTINUE WHEN NOT FOUND OR EXISTS (SELECT FROM cluster_node n WHERE n.epoch = message.held_by
        AND n.state <> 'retired' AND n.lease_until > clock_timestamp() - interval '5 seconds');
      UPDATE webhook w SET caller = p_epoch, call_until = clock_timestamp() + make_interval(secs => p_ms / 1000.0)
        WHERE w.id = due.id;
      taken := taken + 1;
      hook := due.id; url := due.url; secret := due.secret; failures := due.failures;
      id := message.id; body := message.body;
      RETURN NEXT;
    END LOOP;
    PERFORM cluster_check(p_epoch);
  END $$;

  -- What became of a call; p_error NULL: the message has arrived. A failure counts only as long as nobody else has taken
  -- the hook meanwhile. Answers how the hook stands where it failed; p_give_up_ms: after which it is disabled.
  CREATE FUNCTION webhook_note(p_epoch uuid, p_hook text, p_message text, p_error text, p_retry_ms integer, p_give_up_ms integer)
  RETURNS TABLE (failures integer, failing_since timestamptz, disabled_at timestamptz, lost integer) LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  DECLARE line record; gone integer := 0; ended timestamptz;
  BEGIN
    SELECT w.caller, w.failures, coalesce(w.failing_since, clock_timestamp()) AS since INTO line
      FROM webhook w WHERE w.id = p_hook FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    IF p_error IS NULL THEN DELETE FROM webhook_message m WHERE m.id = p_message; END IF;
    IF line.caller IS DISTINCT FROM p_epoch THEN
      PERFORM cluster_check(p_epoch);
      RETURN;
    END IF;
    IF p_error IS NULL THEN
      UPDATE webhook w SET caller = NULL, call_until = NULL, retry_at = NULL, failures = 0, failing_since = NULL,
        last_error = NULL WHERE w.id = p_hook;
    ELSE
      IF clock_timestamp() - line.since >= make_interval(secs => p_give_up_ms / 1000.0) THEN
        ended := clock_timestamp();
        DELETE FROM webhook_message m WHERE m.hook = p_hook;
        GET DIAGNOSTICS gone = ROW_COUNT;
      END IF;
      UPDATE webhook w SET caller = NULL, call_until = NULL, failures = line.failures + 1, failing_since = line.since,
          last_error = p_error, retry_at = clock_timestamp() + make_interval(secs => p_retry_ms / 1000.0),
          disabled_at = ended, dropped = w.dropped + gone
        WHERE w.id = p_hook;
      failures := line.failures + 1; failing_since := line.since; disabled_at := ended; lost := gone;
      RETURN NEXT;
    END IF;
    PERFORM cluster_check(p_epoch);
  END $$;
`;

/**
 * Several runs may hold a message that is sent once, while it lies there for the first of them. Once any has recorded
 * what it reports, the first may not withdraw it any more.
 */
const SENT_ONCE = webhookWrite(
  'CREATE OR REPLACE',
  `held_by = p_epoch AND id = ANY (p_released)
      OR id = ANY (ARRAY(SELECT u.i FROM unnest(p_id, p_held) u(i, h) WHERE NOT u.h))`,
  'now()', // as step 17 has made it
);

export const WEBHOOK_MIGRATIONS: readonly Migration[] = [
  { number: 15, name: 'webhooks of a cluster', sql: WEBHOOKS, toleratedSince: 14 },
];

export const SENT_ONCE_MIGRATIONS: readonly Migration[] = [
  { number: 18, name: 'webhook messages that are sent once', sql: SENT_ONCE, toleratedSince: 14 },
];
