import type { AgentKey } from '../../../core/base/ids.ts';
import { assert } from '../../../core/base/result.ts';
import type { UsageKey } from '../../../core/outcome.ts';
import type { RunId, UsageClaim, UsageIds } from '../../../ports/cluster.ts';
import type { Postgres } from '../postgres.ts';
import { attemptAsRun } from './as-run.ts';

type ClaimRow = { readonly agent: AgentKey; readonly id: string; readonly verdict: UsageClaim };

const columnsOf = (keys: readonly UsageKey[]): [agents: readonly string[], ids: readonly string[]] => [
  keys.map(({ agent }) => agent),
  keys.map(({ usageId }) => usageId),
];

export function createPostgresUsageIds(postgres: Postgres, run: RunId): UsageIds {
  return {
    claim: (keys) =>
      attemptAsRun(postgres, async (on) => {
        const { rows } = await on.query<ClaimRow>('SELECT * FROM usage_claim($1, $2, $3)', [run, ...columnsOf(keys)]);
        const verdicts = new Map(rows.map(({ agent, id, verdict }) => [`${agent} ${id}`, verdict]));
        return keys.map(({ agent, usageId }) => {
          const verdict = verdicts.get(`${agent} ${usageId}`);
          assert(verdict !== undefined, 'every id that was asked for is answered');
          return verdict;
        });
      }),
    settle: (keys) =>
      attemptAsRun(postgres, async (on) => {
        await on.query('SELECT usage_settle($1, $2, $3)', [run, ...columnsOf(keys)]);
      }),
  };
}
