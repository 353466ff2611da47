/** Wording of an exceeded cap, for the caller and the record. */
import { microToUsd } from '../base/money.ts';
import { rfc3339 } from '../base/time.ts';
import type { Exceeded } from './envelope.ts';

/** Names the cap and not its amounts: what all orgs together spend is no agent's business. */
export const exceededReason = ({ tier, period, doubt }: Exceeded): string =>
  doubt === undefined
    ? `the ${period} budget of the ${tier} tier is exceeded`
    : `the ${period} budget of the ${tier} tier cannot be confirmed at the moment; try again shortly`;

export const exceededPayload = (
  { tier, period, spentMicroUsd, reservedMicroUsd, limitMicroUsd }: Exceeded,
  resetsAtMs: number,
) => ({
  tier,
  period,
  spent_usd: microToUsd(spentMicroUsd),
  reserved_usd: microToUsd(reservedMicroUsd),
  limit_usd: microToUsd(limitMicroUsd),
  resets_at: rfc3339(resetsAtMs),
});
