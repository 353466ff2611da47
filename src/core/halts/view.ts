import { rfc3339 } from '../base/time.ts';
import type { Halt } from './halt.ts';

/** A halt as the API and webhooks show it. */
export const haltView = ({ id, scope, mode, actions, reason, ...rest }: Halt) => ({
  id,
  scope,
  mode,
  actions,
  reason,
  created_by: rest.createdBy,
  created_at: rfc3339(rest.createdAtMs),
  expires_at: rest.expiresAtMs === undefined ? null : rfc3339(rest.expiresAtMs),
  released_at: rest.released === undefined ? null : rfc3339(rest.released.atMs),
  released_by: rest.released?.by ?? null,
  release_reason: rest.released?.reason ?? null,
});
