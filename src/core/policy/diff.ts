/** How two sets of policies differ, rule by rule. Order and layout are no difference. */
import { finish, type Steps } from '../base/steps.ts';
import { writtenLimit } from '../limits/limit.ts';
import { termsView } from './approval-terms.ts';
import type { PolicyDocument, Rule } from './document.ts';
import { formatPolicyScope } from './scope.ts';

/** A rule, or what a document says besides its rules, as an author writes it. */
export type Written = Readonly<Record<string, unknown>>;

export type PolicyChange = {
  readonly kind: 'added' | 'removed' | 'changed';
  readonly document: string;
  /** That of the newer set, if the document is in both. */
  readonly scope: string;
  /** Undefined: the document itself. */
  readonly ruleId: string | undefined;
  readonly before: Written | undefined;
  readonly after: Written | undefined;
};

/** A document, and a version of it that changes whenever what it says changes. */
export type VersionedDocument = { readonly document: PolicyDocument; readonly version: string };

export const diffPolicies = (
  before: readonly VersionedDocument[],
  after: readonly VersionedDocument[],
): readonly PolicyChange[] => finish(diffingPolicies(before, after));

/** The same, one rule per step. */
export function* diffingPolicies(
  before: readonly VersionedDocument[],
  after: readonly VersionedDocument[],
): Steps<readonly PolicyChange[]> {
  const changes: PolicyChange[] = [];
  const old = new Map(before.map((each) => [each.document.name, each]));
  for (const now of after) {
    const was = old.get(now.document.name);
    old.delete(now.document.name);
    if (was?.version !== now.version) changes.push(...(yield* diffingDocuments(was?.document, now.document)));
  }
  for (const { document } of old.values()) changes.push(...(yield* diffingDocuments(document, undefined)));
  return changes;
}

function* diffingDocuments(
  before: PolicyDocument | undefined,
  after: PolicyDocument | undefined,
): Steps<readonly PolicyChange[]> {
  const { name, scope } = (after ?? before)!;
  const of = { document: name, scope: formatPolicyScope(scope) };
  const changes: PolicyChange[] = [];
  const compare = (ruleId: string | undefined, was: Written | undefined, is: Written | undefined): void => {
    const kind = was === undefined ? 'added' : is === undefined ? 'removed' : 'changed';
    if (kind !== 'changed' || ordered(was) !== ordered(is))
      changes.push({ kind, ...of, ruleId, before: was, after: is });
  };
  compare(undefined, before && writtenDocument(before), after && writtenDocument(after));
  const old = new Map(before?.rules.map((rule) => [rule.id, rule]));
  for (const rule of after?.rules ?? []) {
    const was = old.get(rule.id);
    old.delete(rule.id);
    // Most rules are as they were. To put each in order takes ten times as long, on the thread that decides.
    if (JSON.stringify(was) !== JSON.stringify(rule)) compare(rule.id, was && writtenRule(was), writtenRule(rule));
    yield;
  }
  for (const rule of old.values()) {
    compare(rule.id, writtenRule(rule), undefined);
    yield;
  }
  return changes;
}

/** Whatever it says besides its rules, and where it was read from is nothing that it says. */
function writtenDocument({ rules: _rules, source: _source, scope, limits, ...rest }: PolicyDocument): Written {
  const written = limits.length === 0 ? undefined : limits.map(writtenLimit);
  return withoutAbsent({ ...rest, scope: formatPolicyScope(scope), limits: written });
}

const writtenRule = ({ when, approval, ...rest }: Rule): Written =>
  withoutAbsent({ ...rest, when: when?.source, approval: approval && termsView(approval) });

const withoutAbsent = (written: Written): Written =>
  Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));

/** The patterns of a rule are alternatives, and the keys of a mapping have no order. */
function ordered(written: Written | undefined): string {
  return JSON.stringify(written, (key, value: unknown) => {
    if (Array.isArray(value)) return key === 'actions' || key === 'resources' ? value.toSorted() : value;
    return typeof value === 'object' && value !== null
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value;
  });
}
