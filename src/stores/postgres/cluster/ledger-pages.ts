import { TIERS, type Tier } from '../../../core/budget/config.ts';
import type { BudgetOwner } from '../../../core/budget/envelope.ts';
import type { LedgerPageRequest, LedgerPages, LedgerSpend } from '../../../ports/cluster.ts';
import type { Postgres } from '../postgres.ts';
import type { Queryable } from '../queryable.ts';

type Row = { readonly owner: string; readonly monthly: string; readonly daily: string };

/** Follows every character that a name may have, and precedes none. */
const BEHIND_SLASH = '0';
const BEHIND_NAME = '\u0001';

export function createPostgresLedgerPages(postgres: Postgres): LedgerPages {
  return {
    page: (request) =>
      postgres.attempt(async (on) => {
        const items: LedgerSpend[] = [];
        const from = request.after === undefined ? 0 : TIERS.indexOf(ownerNamed(request.after).tier);
        let last: string | undefined;
        for (const [at, tier] of TIERS.entries()) {
          if (at < from) continue;
          const after = at === from ? (request.after ?? '') : '';
          // An extra row tells whether there is a next page.
          const rows = await rowsOf(on, tier, { ...request, after }, request.limit - items.length + 1);
          const fitting = rows.slice(0, request.limit - items.length);
          items.push(...fitting.map(spendOf));
          if (tier === 'global' && rows.length === 0 && after === '' && request.orgId === undefined)
            items.push(spendOf({ owner: 'global', monthly: '0', daily: '0' }));
          last = fitting.at(-1)?.owner ?? last;
          if (rows.length > fitting.length) return { items, next: last ?? request.after };
        }
        return { items, next: undefined };
      }),
  };
}

async function rowsOf(
  on: Queryable,
  tier: Tier,
  { periods, orgId, after }: LedgerPageRequest,
  limit: number,
): Promise<readonly Row[]> {
  const range = rangeOf(tier, orgId);
  if (range === undefined) return [];
  const { rows } = await on.query<Row>(
    `SELECT owner, coalesce(max(spent) FILTER (WHERE period = $1), 0) AS monthly,
         coalesce(max(spent) FILTER (WHERE period = $2), 0) AS daily
       FROM budget_account
       WHERE period IN ($1, $2) AND owner >= $3 AND owner < $4 AND owner > $5
       GROUP BY owner ORDER BY owner LIMIT $6`,
    [periods.monthly, periods.daily, ...range, after, limit],
  );
  return rows;
}

/** Returns the range of that tier's owners, in the ledger's order; undefined: there are none. */
function rangeOf(tier: Tier, orgId: string | undefined): readonly [from: string, to: string] | undefined {
  if (tier === 'global') return orgId === undefined ? ['global', `global${BEHIND_NAME}`] : undefined;
  if (orgId === undefined) return [`${tier}/`, `${tier}${BEHIND_SLASH}`];
  if (tier === 'org') return [`org/${orgId}`, `org/${orgId}${BEHIND_NAME}`];
  return [`${tier}/${orgId}/`, `${tier}/${orgId}${BEHIND_SLASH}`];
}

const spendOf = ({ owner, monthly, daily }: Row): LedgerSpend => ({
  owner: ownerNamed(owner),
  spentMicroUsd: { monthly: Number(monthly), daily: Number(daily) },
});

/** Names hold no `/`. */
function ownerNamed(text: string): BudgetOwner {
  const [tier, orgId, teamId, agentId] = text.split('/');
  return { tier: tier as Tier, orgId: orgId ?? null, teamId: teamId ?? null, agentId: agentId ?? null };
}
