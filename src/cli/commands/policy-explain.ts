/** `svc policy explain`: which documents and rules were looked at, and why each did or did not decide. */
import type { DocumentTrace, Explanation, RuleTrace } from '../../core/policy.ts';
import type { Invocation } from '../invocation.ts';
import { bold, dim, green, red, show } from '../output.ts';
import { padded, printable, widthOf } from '../printable.ts';
import { attributesIn, costIn } from './check.ts';
import { parseAgent } from './listing.ts';
import { gatewayPolicyPath, needPolicies } from './policy-files.ts';

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
    estimatedCostMicroUsd: Math.round(costIn(options) * 1_000_000),
  });
  await show(globals.output, viewOf(explanation), () => linesOf(explanation));
}

function linesOf({ decision: { kind, reason }, documents }: Explanation): readonly string[] {
  const colour = kind === 'allow' ? green : red;
  return [`${colour(bold(kind))}  ${printable(reason)}`, ...documents.flatMap(documentLines)];
}

function documentLines({ name, scope, source, applies, rules }: DocumentTrace): readonly string[] {
  const heading = printable(`${name}  (${scope}, ${source})`);
  if (!applies) return ['', dim(`${heading}: its scope does not reach the agent`)];
  const width = rules.reduce((widest, { id }) => Math.max(widest, widthOf(printable(id))), 0);
  return ['', bold(heading), ...rules.map((rule) => ruleLine(rule, width))];
}

function ruleLine({ id, effect, outcome, detail, decided }: RuleTrace, width: number): string {
  const line = `  ${padded(printable(id), width)}  ${padded(effect, 5)}  ${printable(detail)}${decided ? '  <- decided' : ''}`;
  if (decided) return (effect === 'allow' && outcome === 'matched' ? green : red)(line);
  return outcome === 'matched' || outcome === 'condition-failed' ? line : dim(line);
}

const viewOf = ({ decision, documents }: Explanation) => ({
  decision: { decision: decision.kind, policy: decision.policy ?? null, rule_id: decision.ruleId ?? null, reason: decision.reason },
  documents,
});
