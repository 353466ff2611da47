/** The subjects and outcomes of operations (docs/spec.md, Operations). */
import type { AgentIdentity } from '../base/ids.ts';
import { noPolicyAllows, type PolicyDecision } from '../policy/rule.ts';
import { OP_ENDS, type OpEnd } from './op-state.ts';

/** The decision that an operation began or ended with. If no policy allowed it, its reason is worded when shown. */
export type OpVerdict = Pick<PolicyDecision, 'policy' | 'ruleId' | 'reason' | 'cause'>;

/** Rare fields of operations. Replaced as a whole, never changed. */
type Details = {
  readonly approvalId: string | undefined;
  readonly error: string | undefined;
  /** Actions for which it was allowed again while it ran: a halt of any of them stops it. */
  readonly actions: readonly string[];
};

/** Everything that a check or a completion says about an operation, to be put back when it could not be recorded. */
export type OpAbout = {
  readonly action: string | undefined;
  readonly resource: string | undefined;
  readonly estimatedMicroUsd: number;
  readonly verdict: OpVerdict | undefined;
  readonly details: Details | undefined;
};

/** Further actions of one operation that are remembered; beyond that, any halt of an action stops it. */
const MAX_ACTIONS = 16;

/** Filters operations by their subject; undefined: any. */
export type AboutFilter = {
  readonly isAction: ((action: string) => boolean) | undefined;
  readonly isResource: ((resource: string) => boolean) | undefined;
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  readonly ended: OpEnd | undefined;
};

const isIn = (text: string | undefined, isMeant: (text: string) => boolean): boolean =>
  text !== undefined && isMeant(text);

const NO_DETAILS: Details = { approvalId: undefined, error: undefined, actions: [] };

/** The reason would be a text of its own for every operation, of up to a kilobyte, which anybody can ask for. */
const NO_POLICY_ALLOWS: OpVerdict = { policy: undefined, ruleId: undefined, reason: '', cause: 'no_rule' };

/** A column per field, for `slots` operations: see `Chunk`. */
export class AboutColumns {
  readonly #actions: (string | undefined)[];
  readonly #resources: (string | undefined)[];
  /** Verdicts; operations that the same rule decided share one. */
  readonly #verdicts: (OpVerdict | undefined)[];
  readonly #details: (Details | undefined)[];
  readonly estimatedMicroUsd: Float64Array;
  readonly spentMicroUsd: Float64Array;
  /** The place of its end in OP_ENDS plus one; 0: it has not ended. */
  readonly #ends: Uint8Array;

  constructor(slots: number) {
    const empty = <T>(): (T | undefined)[] => new Array<T | undefined>(slots).fill(undefined);
    this.#actions = empty();
    this.#resources = empty();
    this.#verdicts = empty();
    this.#details = empty();
    this.estimatedMicroUsd = new Float64Array(slots);
    this.spentMicroUsd = new Float64Array(slots);
    this.#ends = new Uint8Array(slots);
  }

  clear(at: number): void {
    this.#actions[at] = undefined;
    this.#resources[at] = undefined;
    this.#verdicts[at] = undefined;
    this.#details[at] = undefined;
    this.estimatedMicroUsd[at] = 0;
    this.spentMicroUsd[at] = 0;
    this.#ends[at] = 0;
  }

  get(at: number): OpAbout {
    return {
      action: this.#actions[at],
      resource: this.#resources[at],
      estimatedMicroUsd: this.estimatedMicroUsd[at]!,
      verdict: this.#verdicts[at],
      details: this.#details[at],
    };
  }

  set(at: number, { action, resource, estimatedMicroUsd, verdict, details }: OpAbout): void {
    this.describe(at, action, resource, estimatedMicroUsd);
    this.#verdicts[at] = verdict;
    this.#details[at] = details;
  }

  /** Both texts as they may be shown: see `RedactedTexts`. */
  describe(at: number, action: string | undefined, resource: string | undefined, estimatedMicroUsd: number): void {
    this.#actions[at] = action;
    this.#resources[at] = resource;
    this.estimatedMicroUsd[at] = estimatedMicroUsd;
  }

  decide(at: number, verdict: OpVerdict, approvalId: string | undefined): void {
    this.#verdicts[at] = verdict.cause === 'no_rule' ? NO_POLICY_ALLOWS : verdict;
    if (approvalId !== undefined) this.#detail(at, { approvalId });
  }

  /** Whether this is what it began with. */
  isAction(at: number, action: string): boolean {
    return this.#actions[at] === action;
  }

  /** Allowed for this action, too, while it runs. */
  addAction(at: number, action: string): void {
    if (this.isAction(at, action)) return;
    const { actions } = this.#details[at] ?? NO_DETAILS;
    if (actions.includes(action) || actions.length === MAX_ACTIONS) return;
    this.#detail(at, { actions: [...actions, action] });
  }

  /**
   * Whether any of its actions is one that a halt covers. An operation that was registered without a check has none.
   */
  isAnyAction(at: number, isCovered: (action: string) => boolean): boolean {
    const { actions } = this.#details[at] ?? NO_DETAILS;
    return isCovered(this.#actions[at] ?? '') || actions.length === MAX_ACTIONS || actions.some(isCovered);
  }

  matches(at: number, { isAction, isResource, policy, ruleId, ended }: AboutFilter): boolean {
    const verdict = this.#verdicts[at];
    return (
      (ended === undefined || this.endOf(at) === ended) &&
      (policy === undefined || verdict?.policy === policy) &&
      (ruleId === undefined || verdict?.ruleId === ruleId) &&
      (isAction === undefined || isIn(this.#actions[at], isAction)) &&
      (isResource === undefined || isIn(this.#resources[at], isResource))
    );
  }

  errorOf(at: number): string | undefined {
    return this.#details[at]?.error;
  }

  setError(at: number, error: string): void {
    this.#detail(at, { error });
  }

  setReason(at: number, reason: string): void {
    const { policy, ruleId } = this.#verdicts[at] ?? NO_POLICY_ALLOWS;
    this.#verdicts[at] = { policy, ruleId, reason, cause: undefined };
  }

  end(at: number, end: OpEnd | undefined): void {
    this.#ends[at] = end === undefined ? 0 : OP_ENDS.indexOf(end) + 1;
  }

  endOf(at: number): OpEnd | undefined {
    return OP_ENDS[this.#ends[at]! - 1];
  }

  /** As operators see it. */
  viewOf(at: number, agent: AgentIdentity) {
    const verdict = this.#verdicts[at];
    const { approvalId, error } = this.#details[at] ?? NO_DETAILS;
    const action = this.#actions[at];
    const resource = this.#resources[at];
    return {
      action,
      resource,
      policy: verdict?.policy,
      ruleId: verdict?.ruleId,
      reason:
        verdict === NO_POLICY_ALLOWS
          ? noPolicyAllows({ agent, action: action ?? '', resource: resource ?? '' }).reason
          : verdict?.reason,
      estimatedMicroUsd: this.estimatedMicroUsd[at]!,
      spentMicroUsd: this.spentMicroUsd[at]!,
      approvalId,
      error,
      ended: this.endOf(at),
    };
  }

  #detail(at: number, more: Partial<Details>): void {
    this.#details[at] = { ...(this.#details[at] ?? NO_DETAILS), ...more };
  }
}
