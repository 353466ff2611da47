/** How documents and rules took part in a check, as lines: the same for policies on disk and for those in force. */
import type { DocumentTrace, RuleTrace } from '../../core/policy/explain.ts';
import { RULE_OUTCOMES } from '../../core/policy/rule.ts';
import { bold, dim, green, red } from '../terminal/output.ts';
import { padded, printable, widthOf } from '../terminal/printable.ts';
import type { Row } from '../terminal/table.ts';

export const decisionLine = (kind: 'allow' | 'deny', reason: string): string =>
  `${(kind === 'allow' ? green : red)(bold(kind))}  ${printable(reason)}`;

export function documentLines({ name, scope, source, applies, rules }: DocumentTrace): readonly string[] {
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

/** From the answer of a gateway, which leaves out documents that do not reach the agent. */
export const tracesIn = ({ documents }: Row): readonly DocumentTrace[] =>
  rowsOf(documents).map(({ name, scope, source, rules }) => ({
    name: String(name),
    scope: String(scope),
    source: String(source),
    applies: true,
    rules: rowsOf(rules).map(ruleIn),
  }));

const rowsOf = (value: unknown): readonly Row[] => (Array.isArray(value) ? (value as Row[]) : []);

const ruleIn = ({ id, effect, outcome, detail, decided }: Row): RuleTrace => ({
  id: String(id),
  effect: effect === 'allow' ? 'allow' : 'deny',
  outcome: RULE_OUTCOMES.find((known) => known === outcome) ?? 'condition-failed',
  detail: String(detail),
  decided: decided === true,
});
