/** How documents and rules took part in a check, as lines: the same for policies on disk and for those in force. */
import { RULE_EFFECTS, type RuleEffect } from '../../core/policy/effect.ts';
import type { DocumentTrace, RuleTrace } from '../../core/policy/explain.ts';
import { RULE_OUTCOMES } from '../../core/policy/rule.ts';
import { bold, dim, green, red, yellow } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import type { Row } from '../terminal/table.ts';
import { padded, widthOf } from '../terminal/width.ts';

const COLOUR_OF = {
  allow: green,
  require_approval: yellow,
  pending: yellow,
  deny: red,
} as const satisfies Record<RuleEffect | 'pending', unknown>;

/** That of `allow`. */
const LEAST_EFFECT = 5;

export const decisionLine = (kind: keyof typeof COLOUR_OF, reason: string): string =>
  `${COLOUR_OF[kind](bold(kind))}  ${printable(reason)}`;

/** `overruled`: what has decided in place of the rule that would have. */
export function documentLines(
  { name, scope, source, applies, rules }: DocumentTrace,
  overruled?: string,
): readonly string[] {
  const heading = printable(`${name}  (${scope}, ${source})`);
  if (!applies) return ['', dim(`${heading}: its scope does not reach the agent`)];
  const idWidth = rules.reduce((widest, { id }) => Math.max(widest, widthOf(printable(id))), 0);
  const effectWidth = rules.reduce((widest, { effect }) => Math.max(widest, effect.length), LEAST_EFFECT);
  return ['', bold(heading), ...rules.map((rule) => ruleLine(rule, [idWidth, effectWidth], overruled))];
}

function ruleLine(
  { id, effect, outcome, detail, decided }: RuleTrace,
  [idWidth, effectWidth]: readonly [number, number],
  overruled: string | undefined,
): string {
  const mark = overruled === undefined ? '  <- decided' : `  <- overruled by ${overruled}`;
  const line = `  ${padded(printable(id), idWidth)}  ${padded(effect, effectWidth)}  ${printable(detail)}${decided ? mark : ''}`;
  if (decided && overruled === undefined) return (outcome === 'matched' ? COLOUR_OF[effect] : red)(line);
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
  effect: RULE_EFFECTS.find((known) => known === effect) ?? 'deny',
  outcome: RULE_OUTCOMES.find((known) => known === outcome) ?? 'condition-failed',
  detail: String(detail),
  decided: decided === true,
});
