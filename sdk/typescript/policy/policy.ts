/**
 * The gateway's own policy code, for the fake gateway of tests: the build makes one file of it, without Node.js.
 * `src/policy.d.ts` has its types.
 */
import { canonicalCheck } from '../../../src/core/approvals/digest.ts';
import { usdToMicro } from '../../../src/core/base/money.ts';
import { loadPolicyTexts, renderPolicyProblem } from '../../../src/policy-files/policy-file.ts';
import type { Decide, PolicyText } from '../src/policy.d.ts';

/** Throws an Error with every mistake in the texts, and where it is. */
export function deciderOf(texts: readonly PolicyText[]): Decide {
  const loaded = loadPolicyTexts(texts);
  if (!loaded.ok) throw new Error(loaded.fault.map(renderPolicyProblem).join('\n'));
  return ({ estimatedCostUsd, ...asked }) => {
    const subject = { ...asked, estimatedCostMicroUsd: usdToMicro(estimatedCostUsd) ?? 0 };
    return { ...loaded.value.policies.decide(subject), question: canonicalCheck(subject) };
  };
}
