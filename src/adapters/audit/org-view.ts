/** What a credential that is bound to an org is shown of an entry of its org (contract: Tokens and scopes). */

/** As far as it can be relied on: the line may have been changed since it was written. */
type Shown = { readonly payload?: Readonly<Record<string, unknown>> | null };

/**
 * What is spent and held of the global caps tells what all the other orgs spend. Without it, the hash of the line
 * cannot be checked.
 */
export function lineForOrg(line: string): string {
  if (!line.includes('"event_type":"BudgetLimitExceeded"')) return line;
  const entry = JSON.parse(line) as Shown;
  if (entry.payload?.tier !== 'global') return line;
  const { spent_usd: _spent, reserved_usd: _reserved, limit_usd: _limit, ...payload } = entry.payload;
  return JSON.stringify({ ...entry, payload });
}
