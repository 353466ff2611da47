import { BUS_MIGRATIONS } from './cluster/bus-schema.ts';
import { COUNTED_AGAIN_MIGRATIONS } from './cluster/counted-again-schema.ts';
import { ENDED_RUN_MIGRATIONS, STATED_MIGRATIONS } from './cluster/ended-runs-schema.ts';
import { LIMIT_MIGRATIONS } from './cluster/limit-schema.ts';
import { LOG_MIGRATIONS } from './cluster/log-schema.ts';
import { POLICY_MIGRATIONS } from './cluster/policy-schema.ts';
import { CLUSTER_MIGRATIONS } from './cluster/schema.ts';
import { STATE_MIGRATIONS } from './cluster/state-schema.ts';
import { TIDY_MIGRATIONS } from './cluster/tidy-schema.ts';
import { USAGE_MIGRATIONS } from './cluster/usage-schema.ts';
import { SENT_ONCE_MIGRATIONS, WEBHOOK_MIGRATIONS } from './cluster/webhook-schema.ts';
import { MARK_MIGRATION } from './commit-verdict.ts';
import type { Migration } from './migration.ts';

/**
 * The schema of the account store, one numbered step after the other. A step that has been released is never changed;
 * what comes later is a new step. Kept as text here so that the built gateway finds it wherever it is installed.
 */
const ACCOUNT_MIGRATIONS: readonly Migration[] = [
  {
    number: 1,
    name: 'accounts',
    sql: `
      CREATE TABLE accounts (
        id text PRIMARY KEY,
        sequence bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
        email text NOT NULL,
        email_key text NOT NULL UNIQUE,
        password_hash text NOT NULL,
        role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer')),
        org_id text,
        disabled boolean NOT NULL DEFAULT false,
        token_epoch integer NOT NULL DEFAULT 0,
        tokens_revoked_at timestamptz,
        created_at timestamptz NOT NULL,
        last_login_at timestamptz
      );
      CREATE INDEX accounts_by_org ON accounts (org_id, sequence) WHERE org_id IS NOT NULL;
      CREATE INDEX accounts_by_revocation ON accounts (tokens_revoked_at) WHERE tokens_revoked_at IS NOT NULL;

      -- Keyed by a digest of what was typed as the address: it may be anything, a password typed too early for one.
      CREATE TABLE sign_in_failures (
        attempts_digest text PRIMARY KEY,
        failures integer NOT NULL,
        locked_until timestamptz,
        touched_at timestamptz NOT NULL
      );
      CREATE INDEX sign_in_failures_by_age ON sign_in_failures (touched_at);

      CREATE TABLE sessions (
        id text PRIMARY KEY,
        account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
        remember_me boolean NOT NULL,
        created_at timestamptz NOT NULL,
        revoked_at timestamptz
      );
      CREATE INDEX sessions_by_account ON sessions (account_id);

      CREATE TABLE refresh_tokens (
        digest text PRIMARY KEY,
        session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
        expires_at timestamptz NOT NULL,
        rotated_at timestamptz
      );
      CREATE INDEX refresh_tokens_by_session ON refresh_tokens (session_id);
      CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_at);

      CREATE TABLE invites (
        digest text PRIMARY KEY,
        email text NOT NULL,
        role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer')),
        org_id text,
        invited_by text NOT NULL,
        created_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        used_at timestamptz
      );
      CREATE INDEX invites_by_expiry ON invites (expires_at);

      CREATE TABLE password_resets (
        digest text PRIMARY KEY,
        account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
        created_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX password_resets_by_account ON password_resets (account_id);
      CREATE INDEX password_resets_by_expiry ON password_resets (expires_at);
    `,
  },
  {
    number: 2,
    name: 'api keys',
    sql: `
      CREATE TABLE api_keys (
        id text PRIMARY KEY,
        digest text NOT NULL UNIQUE,
        name text NOT NULL,
        hint text NOT NULL,
        scopes text[] NOT NULL,
        org_id text,
        created_at timestamptz NOT NULL,
        created_by text NOT NULL,
        expires_at timestamptz,
        revoked_at timestamptz,
        last_used_at timestamptz
      );
      CREATE INDEX api_keys_by_creation ON api_keys (created_at);
      CREATE INDEX api_keys_by_revocation ON api_keys (revoked_at) WHERE revoked_at IS NOT NULL;
    `,
  },
  {
    number: 3,
    name: 'api keys changed at',
    sql: `
      -- By the database's own clock, so that gateways whose clocks differ hear of one another's changes all the same.
      ALTER TABLE api_keys ADD COLUMN changed_at timestamptz NOT NULL DEFAULT now();
      CREATE INDEX api_keys_by_change ON api_keys (changed_at);
      DROP INDEX api_keys_by_creation;
      DROP INDEX api_keys_by_revocation;
    `,
  },
  {
    number: 4,
    name: 'invites by id',
    sql: `
      -- By which an invite is named and listed. Gateways of before leave both to the defaults.
      ALTER TABLE invites
        ADD COLUMN id text NOT NULL DEFAULT gen_random_uuid()::text UNIQUE,
        ADD COLUMN sequence bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
        ADD COLUMN revoked_at timestamptz;
    `,
  },
  {
    number: 5,
    name: 'api keys by end',
    sql: `
      CREATE INDEX api_keys_by_end ON api_keys ((least(revoked_at, expires_at))) WHERE least(revoked_at, expires_at) IS NOT NULL;
    `,
  },
  {
    number: 6,
    name: 'secrets',
    sql: `
      -- Of the account store as a whole, so that all gateways on it share them; none ever leaves the gateways.
      CREATE TABLE secrets (
        name text PRIMARY KEY,
        value text NOT NULL
      );
    `,
  },
  {
    number: 7,
    name: 'sessions by end',
    sql: `
      -- Gateways look every few seconds for those that others have ended.
      CREATE INDEX sessions_by_end ON sessions (revoked_at) WHERE revoked_at IS NOT NULL;
    `,
  },
];

const MIGRATION_OF_STEPS: Migration = {
  number: 14,
  name: 'older releases that tolerate a step',
  sql: 'ALTER TABLE svc_migrations ADD COLUMN tolerated_since integer',
};

/** Gateways of before leave it out, as of a reset that is sent by mail. */
const ISSUERS_OF_RESETS: Migration = {
  number: 20,
  name: 'issuers of password resets',
  sql: 'ALTER TABLE password_resets ADD COLUMN issued_by text',
  toleratedSince: 14,
};

export const MIGRATIONS: readonly Migration[] = [
  ...ACCOUNT_MIGRATIONS,
  ...CLUSTER_MIGRATIONS,
  ...STATE_MIGRATIONS,
  ...USAGE_MIGRATIONS,
  MIGRATION_OF_STEPS,
  ...WEBHOOK_MIGRATIONS,
  ...BUS_MIGRATIONS,
  ...ENDED_RUN_MIGRATIONS,
  ...SENT_ONCE_MIGRATIONS,
  ...STATED_MIGRATIONS,
  ISSUERS_OF_RESETS,
  ...TIDY_MIGRATIONS,
  MARK_MIGRATION,
  ...POLICY_MIGRATIONS,
  ...LOG_MIGRATIONS,
  ...COUNTED_AGAIN_MIGRATIONS,
  ...LIMIT_MIGRATIONS,
];
