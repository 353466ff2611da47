/** `svc policy explain`: which documents and rules were looked at, and why each did or did not decide. */
import type { Explanation } from '../../core/policy-explain.ts';
import type { Invocation } from '../invocation.ts';
import { show } from '../output.ts';
import { parseAgent } from './agent-text.ts';
import { attributesIn, costIn } from './check.ts';
import { gatewayPolicyPath, needPolicies } from './policy-files.ts';
import { decisionLine, documentLines } from './policy-traces.ts';

export async function run({ options, globals, env }: Invocation): Promise<void> {
  const agent = parseAgent(options.text('agent') ?? '');
  const caller = options.text('caller');
  const given = options.list('policies');
  const { policies } = await needPolicies(globals.output, given.length > 0 ? given : [gatewayPolicyPath(env)]);
  const explanation = policies.explain({
    agent,
    caller: caller === undefined ? undefined : parseAgent(caller),
    action: options.text('action') ?? '',
    resource: options.text('resource') ?? '',
    attributes: attributesIn(options),
    estimatedCostMicroUsd: costIn(options).microUsd,
  });
  await show(globals.output, viewOf(explanation), () => [
    decisionLine(explanation.decision.kind, explanation.decision.reason),
    ...explanation.documents.flatMap(documentLines),
  ]);
}

const viewOf = ({ decision, documents }: Explanation) => ({
  decision: {
    decision: decision.kind,
    policy: decision.policy ?? null,
    rule_id: decision.ruleId ?? null,
    reason: decision.reason,
  },
  documents,
});
