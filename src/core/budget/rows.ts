import type { AgentIdentity } from '../base/ids.ts';
import type { Period } from './config.ts';
import type { BudgetOwner, Exceeded, Spend } from './envelope.ts';

/** An owner's spending in the day and the month that were current when the row was made. */
export type SpendRow = BudgetOwner & Readonly<Record<Period, PeriodSpend>> & { readonly kind: 'spend' };

export type PeriodSpend = Spend & {
  /**
   * The local date or month that it was spent in: `2026-11-04`, `2026-11`. It means the same after a change of zone.
   */
  readonly name: string;
};

/** A usage id that was counted, and the answer that its sender got. */
export type UsageRow = {
  readonly kind: 'usage';
  readonly orgId: string;
  readonly teamId: string;
  readonly agentId: string;
  readonly usageId: string;
  readonly recordedAtMs: number;
  readonly exceeded: Exceeded | null;
};

export type BudgetRow = SpendRow | UsageRow;

/** For a key-value store: put the row under the key, or remove the key where there is no row. */
export type BudgetChange = { readonly key: string; readonly row: BudgetRow | undefined };

// Names hold no `/`; a usage id may, and stands last.
export function keyOfOwner({ tier, orgId, teamId, agentId }: BudgetOwner): string {
  switch (tier) {
    case 'global':
      return 'spend/global';
    case 'org':
      return `spend/org/${orgId}`;
    case 'team':
      return `spend/team/${orgId}/${teamId}`;
    case 'agent':
      return `spend/agent/${orgId}/${teamId}/${agentId}`;
  }
}

export const keyOfUsage = ({
  orgId,
  teamId,
  agentId,
  usageId,
}: Pick<UsageRow, 'orgId' | 'teamId' | 'agentId' | 'usageId'>): string =>
  `usage/${orgId}/${teamId}/${agentId}/${usageId}`;

/** The usage ids of a store, one by one: there may be more than fit into the memory. The few others are set aside. */
export function* usagesAmong(rows: Iterable<BudgetRow>, others: SpendRow[]): Generator<UsageRow> {
  for (const row of rows) {
    if (row.kind === 'usage') yield row;
    else others.push(row);
  }
}

export type Usage = Pick<UsageRow, 'orgId' | 'teamId' | 'agentId' | 'usageId'>;

export function usageOf({ orgId, teamId, agentId }: AgentIdentity | BudgetOwner, usageId: string): Usage {
  return { orgId: orgId ?? '', teamId: teamId ?? '', agentId: agentId ?? '', usageId };
}
