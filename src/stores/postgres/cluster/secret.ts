import { assert } from '../../../core/base/result.ts';
import type { Queryable } from '../queryable.ts';

/** Known to all gateways on the database, and to nobody else. Made by the first that asks. */
export async function clusterSecret(on: Queryable): Promise<string> {
  await on.query(
    `INSERT INTO secrets (name, value) VALUES ('cluster', gen_random_uuid()::text || gen_random_uuid()::text) ON CONFLICT DO NOTHING`,
  );
  const {
    rows: [row],
  } = await on.query<{ value: string }>(`SELECT value FROM secrets WHERE name = 'cluster'`);
  assert(row !== undefined, 'what was inserted is there');
  return row.value;
}
