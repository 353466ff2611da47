/** Which rules a change of the policies has added, removed or changed, a line each. Pure. */
type RuleChange = { readonly kind?: unknown; readonly document?: unknown; readonly rule_id?: unknown };

const MAX_LINES = 20;

export function ruleLines({ changes, more }: Readonly<Record<string, unknown>>): readonly string[] {
  if (!Array.isArray(changes)) return [];
  const lines = changes
    .slice(0, MAX_LINES)
    .map(({ kind, document, rule_id: rule }: RuleChange) =>
      [kind, [document, rule].filter((part) => typeof part === 'string').join(' · ')].filter(Boolean).join(' '),
    );
  const others = changes.length - lines.length + (typeof more === 'number' ? more : 0);
  return others > 0 ? [...lines, `and ${others} more`] : lines;
}
