/** Adds the state of the bus to members, as a step of the schema. */
import type { Migration } from '../migration.ts';

/** Releases of before beat without it. */
const ON_BUS = `
  ALTER TABLE cluster_node ADD COLUMN on_bus boolean;

  CREATE FUNCTION cluster_beat(p_epoch uuid, p_lease_ms integer, p_policy text, p_audit_id bigint, p_audit_hash text,
    p_skew_ms integer, p_caught_up boolean, p_on_bus boolean) RETURNS SETOF cluster_node LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE cluster_node SET on_bus = p_on_bus WHERE epoch = p_epoch AND on_bus IS DISTINCT FROM p_on_bus;
    RETURN QUERY SELECT * FROM cluster_beat(p_epoch, p_lease_ms, p_policy, p_audit_id, p_audit_hash, p_skew_ms, p_caught_up);
  END $$;
`;

export const BUS_MIGRATIONS: readonly Migration[] = [
  { number: 16, name: 'bus of a cluster', sql: ON_BUS, toleratedSince: 14 },
];
