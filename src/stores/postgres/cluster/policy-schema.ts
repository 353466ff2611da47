/** When the policies of a cluster were in force, and the set that is asked beside them, as a step of the schema. */
import type { Migration } from '../migration.ts';
import { policyActivate } from './state-schema.ts';

const NOTE_TIMES = `    UPDATE policy_set SET till = clock_timestamp() WHERE version = active;
    UPDATE policy_set SET since = clock_timestamp(), till = NULL, activated_by = p_by WHERE version = p_version;
`;

const POLICY_LIFE = `
  -- since is null of a set that never was in force; till is null while it is.
  ALTER TABLE policy_set ADD COLUMN since timestamptz, ADD COLUMN till timestamptz, ADD COLUMN activated_by text,
    ADD COLUMN document_count integer NOT NULL DEFAULT 0, ADD COLUMN rule_count integer NOT NULL DEFAULT 0;
  UPDATE policy_set s SET since = published_at, activated_by = published_by, till = (
    SELECT min(o.published_at) FROM policy_set o WHERE o.published_at > s.published_at);
  UPDATE policy_set s SET since = a.activated_at, activated_by = a.activated_by, till = NULL
    FROM policy_active a WHERE a.version = s.version;

  CREATE OR REPLACE FUNCTION ${policyActivate(NOTE_TIMES)}
  -- One row at most: the set that is asked beside the one in force.
  CREATE TABLE policy_shadow (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version text NOT NULL,
    since_ms bigint NOT NULL,
    body text NOT NULL
  );
`;

export const POLICY_MIGRATIONS: readonly Migration[] = [
  { number: 23, name: 'history and shadow of policies', sql: POLICY_LIFE, toleratedSince: 14 },
];
