import { describe, expect, onTestFinished, test } from 'vitest';
import { ok } from '../../../src/core/base/result.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../../src/stores/postgres/postgres.ts';
import { withClient } from '../../../src/stores/trial-postgres/server.ts';
import { SILENT } from '../../support/database-server.ts';
import { withPostgres } from '../../support/postgres.ts';

const newDatabase = withPostgres();

describe('postgres isolation', () => {
  test.each(['repeatable read', 'serializable'])(
    "lets concurrent starts see each other's writes with %s as the default isolation",
    async (isolation) => {
      const url = await newDatabase({ isEmpty: true });
      await withClient(url, (client) =>
        client.query(
          `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_isolation = '${isolation}'`,
        ),
      );
      const gateways = Array.from({ length: 5 }, () => new Postgres({ url, ...POSTGRES_DEFAULTS }, SILENT));
      onTestFinished(async () => {
        for (const gateway of gateways) await gateway.close();
      });
      await Promise.all(gateways.map((gateway) => gateway.start()));
      await gateways[0]!.attempt((on) => on.query('CREATE TABLE counted (n int); INSERT INTO counted VALUES (0)'));
      const counted = await Promise.all(
        gateways.map((gateway) =>
          gateway.transact(async (on) => {
            await on.query('SELECT pg_advisory_xact_lock(1)');
            const {
              rows: [before],
            } = await on.query<{ n: number }>('SELECT n FROM counted');
            await on.query('UPDATE counted SET n = $1', [before!.n + 1]);
            return ok(before!.n);
          }),
        ),
      );
      expect(counted.map((each) => each.ok && each.value).sort()).toEqual([0, 1, 2, 3, 4]);
      const together = await Promise.all(
        gateways.map((gateway) =>
          gateway.attempt((on) => on.query('UPDATE counted SET n = n + 1 WHERE pg_sleep(0.1) IS NOT NULL')),
        ),
      );
      expect(together.map((each) => each.ok)).toEqual([true, true, true, true, true]);
    },
  );
});
