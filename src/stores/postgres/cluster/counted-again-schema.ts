/** Periods that a run counts again because its clock was set, as a step of the schema. */
import type { Migration } from '../migration.ts';

/**
 * A run may say less about a period than it has said before: the greatest of what it has said stays counted. Its grant
 * is kept beside that, so that what it holds is still the difference.
 */
const COUNTED_AGAIN = `
  DO $$
  DECLARE
    before constant text := pg_get_functiondef('budget_exchange'::regproc);
    spends constant text := replace(before, 'a.spent + u.s1 - coalesce(b.spent, 0) AS spent1',
      'greatest(u.s1, b.spent) AS s2, a.spent + greatest(u.s1 - coalesce(b.spent, 0), 0) AS spent1');
    grants constant text := replace(spends, 'SELECT p_epoch, o, p, kept + raise, s1 FROM give',
      'SELECT p_epoch, o, p, kept - s1 + s2 + raise, s2 FROM give');
  BEGIN
    ASSERT spends <> before AND grants <> spends, 'budget_exchange is as the steps before have made it';
    EXECUTE grants;
  END $$;
`;

export const COUNTED_AGAIN_MIGRATIONS: readonly Migration[] = [
  { number: 25, name: 'periods counted again', sql: COUNTED_AGAIN, toleratedSince: 24 },
];
