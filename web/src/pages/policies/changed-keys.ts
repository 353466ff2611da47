/** Compares a rule's change key by key. Pure. */
type Written = Readonly<Record<string, unknown>> | null;
export type ChangedKey = {
  readonly key: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
};

/** Only keys that differ. The id stands in the heading already. */
export function changedKeys({
  before,
  after,
}: {
  readonly before: Written;
  readonly after: Written;
}): readonly ChangedKey[] {
  const keys = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  keys.delete('id');
  return [...keys]
    .map((key) => ({ key, before: textOf(before?.[key]), after: textOf(after?.[key]) }))
    .filter((each) => each.before !== each.after);
}

const textOf = (value: unknown): string | undefined =>
  value === undefined || typeof value === 'string' ? value : JSON.stringify(value);
