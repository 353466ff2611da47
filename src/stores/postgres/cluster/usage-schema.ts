/** Usage ids that several gateways share, as a step of the schema. */
import type { Migration } from '../migration.ts';

/** A usage id belongs to the run that claims it first, and is counted once that run says so. */
const USAGE_IDS = `
  ALTER TABLE usage_id ADD COLUMN settled boolean NOT NULL DEFAULT false;

  CREATE FUNCTION usage_claim(p_epoch uuid, p_agent text[], p_id text[])
  RETURNS TABLE (agent text, id text, verdict text) LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  BEGIN
    PERFORM cluster_check(p_epoch);
    INSERT INTO usage_id (agent, id, epoch) SELECT DISTINCT u.a, u.i, p_epoch FROM unnest(p_agent, p_id) u(a, i) ORDER BY 1, 2
      ON CONFLICT DO NOTHING;
    -- Claimed by a run that has ended in the middle.
    UPDATE usage_id t SET epoch = p_epoch FROM unnest(p_agent, p_id) u(a, i)
      WHERE t.agent = u.a AND t.id = u.i AND NOT t.settled AND t.epoch <> p_epoch
        AND NOT EXISTS (SELECT FROM cluster_node n WHERE n.epoch = t.epoch AND n.state <> 'retired');
    RETURN QUERY SELECT t.agent, t.id,
        CASE WHEN t.settled THEN 'counted' WHEN t.epoch = p_epoch THEN 'mine' ELSE 'busy' END
      FROM usage_id t JOIN (SELECT DISTINCT a, i FROM unnest(p_agent, p_id) w(a, i)) u ON t.agent = u.a AND t.id = u.i;
  END $$;

  CREATE FUNCTION usage_settle(p_epoch uuid, p_agent text[], p_id text[]) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM cluster_check(p_epoch);
    -- Counted while the database was away: not claimed yet.
    INSERT INTO usage_id (agent, id, epoch, settled)
      SELECT DISTINCT u.a, u.i, p_epoch, true FROM unnest(p_agent, p_id) u(a, i) ORDER BY 1, 2
      ON CONFLICT (agent, id) DO UPDATE SET settled = true;
  END $$;
`;

export const USAGE_MIGRATIONS: readonly Migration[] = [{ number: 13, name: 'usage ids of a cluster', sql: USAGE_IDS }];
