/** A document of which only the rules are known, written as a policy file has them. Pure. */
import type { PolicyDocument, Rule } from '../../base/api-types.ts';

const quoted = (text: string): string =>
  /^[\w ./,%()-]+$/.test(text) && !/^[-\s]|\s$|: /.test(text) ? text : JSON.stringify(text);
const list = (texts: readonly string[]): string => `[${texts.map((text) => JSON.stringify(text)).join(', ')}]`;

function ruleLines(rule: Rule): readonly string[] {
  const { id, effect, actions, resources, when, reason, approval, obligations } = rule;
  return [
    `  - id: ${quoted(id)}`,
    ...(actions.join() === '*' ? [] : [`    actions: ${list(actions)}`]),
    ...(resources.join() === '*' ? [] : [`    resources: ${list(resources)}`]),
    ...(when === null ? [] : [`    when: ${quoted(when)}`]),
    `    effect: ${effect}`,
    ...(reason === null ? [] : [`    reason: ${quoted(reason)}`]),
    ...(approval === null ? [] : [`    approval: { min: ${approval.min}, expires: ${approval.expires_secs}s }`]),
    ...(obligations.length === 0 ? [] : [`    obligations: ${JSON.stringify(obligations)}`]),
  ];
}

export const documentText = ({ name, scope }: Pick<PolicyDocument, 'name' | 'scope'>, rules: readonly Rule[]): string =>
  [`name: ${quoted(name)}`, `scope: ${scope}`, '', 'rules:', ...rules.flatMap((rule) => [...ruleLines(rule), ''])].join(
    '\n',
  );
