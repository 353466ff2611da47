/** A second set of policies, which is asked beside the one in force and decides nothing (docs/spec.md, Policy). */

import type { DecisionCause } from '../check/cause.ts';
import type { CheckSubject } from '../condition/condition.ts';
import type { Effect } from '../effects.ts';
import type { RuleEffect } from './effect.ts';
import type { PolicyDecision } from './rule.ts';

export type Answer = 'allow' | 'deny' | 'pending';
export const ANSWER_OF = {
  allow: 'allow',
  deny: 'deny',
  require_approval: 'pending',
} as const satisfies Record<RuleEffect, Answer>;

/** How often a rule of the shadow decides otherwise; where it has none that decides, the rule in force. */
export type ShadowChange = {
  readonly from: Answer;
  readonly to: Answer;
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  readonly count: number;
};

/** Plain data, as it is stored. */
export type ShadowCounts = {
  readonly checks: number;
  readonly differing: number;
  readonly errors: number;
  readonly changes: readonly ShadowChange[];
};

export const NO_SHADOW_COUNTS: ShadowCounts = { checks: 0, differing: 0, errors: 0, changes: [] };

export type Decides = { decide(subject: CheckSubject): PolicyDecision };

type Difference = {
  readonly to: Answer;
  readonly decision: PolicyDecision;
};

/** Kinds of changes that are counted one by one; beyond, only their number is. */
const MAX_CHANGES = 10_000;

export class Shadow {
  readonly version: string;
  readonly #policies: Decides;
  #checks: number;
  #differing: number;
  #errors: number;
  readonly #changes = new Map<string, { -readonly [Key in keyof ShadowChange]: ShadowChange[Key] }>();
  /** Flags of the check that is being decided. */
  #compared = false;
  #failed = false;
  #difference: (Difference & { readonly from: Answer; readonly decided: PolicyDecision }) | undefined;

  constructor(version: string, policies: Decides, counts: ShadowCounts = NO_SHADOW_COUNTS) {
    this.version = version;
    this.#policies = policies;
    this.#checks = counts.checks;
    this.#differing = counts.differing;
    this.#errors = counts.errors;
    for (const change of counts.changes) this.#changes.set(keyOf(change), { ...change });
  }

  /** Decides as the set in force does, and compares. Whatever the shadow does, the decision is that set's. */
  beside(inForce: Decides): Decides {
    return {
      decide: (subject) => {
        const decision = inForce.decide(subject);
        this.#compare(subject, decision);
        return decision;
      },
    };
  }

  /** Call it before each check. */
  begin(): void {
    this.#compared = false;
    this.#failed = false;
    this.#difference = undefined;
  }

  /** Counts the check that was decided last, and notes a difference in its entry. */
  finish(effects: readonly Effect[]): void {
    if (this.#failed) this.#errors += 1;
    if (!this.#compared) return;
    this.#checks += 1;
    const difference = this.#difference;
    if (difference === undefined) return;
    this.#differing += 1;
    const { from, to, decision, decided } = difference;
    const { policy, ruleId } = decision.ruleId === undefined ? decided : decision;
    this.#count({ from, to, policy, ruleId });
    const effect = effects.find(({ kind }) => kind === 'audit');
    if (effect?.kind !== 'audit') return;
    // Set, not spread: the payload was made for this check, and a copy of the entry takes longer than the comparison.
    (effect.draft.payload as Record<string, unknown>).shadow = shadowPayload(this.version, to, decision);
  }

  /** The most frequent changes first. */
  counts(): ShadowCounts {
    const changes = [...this.#changes.values()].sort((one, other) => other.count - one.count);
    return { checks: this.#checks, differing: this.#differing, errors: this.#errors, changes };
  }

  #compare(subject: CheckSubject, decided: PolicyDecision): void {
    try {
      const decision = this.#policies.decide(subject);
      this.#compared = true;
      if (decision.cause === 'condition_error') this.#failed = true;
      const from = ANSWER_OF[decided.kind];
      const to = ANSWER_OF[decision.kind];
      if (from !== to) this.#difference = { from, to, decision, decided };
    } catch {
      this.#failed = true; // counted, and no business of the check
    }
  }

  #count(change: Omit<ShadowChange, 'count'>): void {
    const key = keyOf(change);
    const known = this.#changes.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.#changes.size < MAX_CHANGES) this.#changes.set(key, { ...change, count: 1 });
  }
}

/** Names and ids have no line feeds. */
const keyOf = ({ from, to, policy = '', ruleId = '' }: Omit<ShadowChange, 'count'>): string =>
  `${from}\n${to}\n${policy}\n${ruleId}`;

const shadowPayload = (
  version: string,
  decision: Answer,
  { policy, ruleId, cause }: PolicyDecision,
): {
  readonly version: string;
  readonly decision: Answer;
  readonly policy: string | null;
  readonly rule_id: string | null;
  readonly cause: DecisionCause | null;
} => ({ version, decision, policy: policy ?? null, rule_id: ruleId ?? null, cause: cause ?? null });

/** Adds up the counts of several gateways. */
export function addedCounts(all: readonly ShadowCounts[]): ShadowCounts {
  const changes = new Map<string, ShadowChange>();
  for (const change of all.flatMap((counts) => counts.changes)) {
    const key = keyOf(change);
    changes.set(key, { ...change, count: change.count + (changes.get(key)?.count ?? 0) });
  }
  const sum = (key: 'checks' | 'differing' | 'errors'): number => all.reduce((total, each) => total + each[key], 0);
  return {
    checks: sum('checks'),
    differing: sum('differing'),
    errors: sum('errors'),
    changes: [...changes.values()].sort((one, other) => other.count - one.count),
  };
}
