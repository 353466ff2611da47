/** Amounts that a waiting check lacks: the ledger of a cluster has to grant them first. */
import { type BudgetShortage, ownerOf } from '../budget/grants.ts';
import type { LimitShortage } from './grants.ts';

export type Shortage = BudgetShortage | LimitShortage;

/** Names the account, in the running period. */
export const accountOf = (short: Shortage): string =>
  'limited' in short
    ? `${short.limited.owner} ${short.limited.period[0]}`
    : `${ownerOf(short.envelope.owner())} ${short.period[0]}`;
