/** The money, the noon and the agents of the budget tests. */

import type { AgentIdentity } from '../../src/core/base/ids.ts';
import { type BudgetConfig, parseBudgetConfig } from '../../src/core/budget/config.ts';

/** In micro-dollars. */
export const USD = 1_000_000;
export const HOUR_MS = 3_600_000;
export const NOON = Date.parse('2026-11-04T12:00:00Z');

export const ada: AgentIdentity = { orgId: 'acme', teamId: 'search', agentId: 'ada' };
/** An agent without an org. */
export const stray: AgentIdentity = { orgId: '', teamId: 'search', agentId: 'ada' };

export function budgetConfig(budget: Record<string, unknown>): BudgetConfig {
  const parsed = parseBudgetConfig(budget);
  if (!parsed.ok) throw new Error(parsed.fault[0]?.problem);
  return parsed.value;
}
