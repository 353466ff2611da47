/** Types of the build's output from `../policy/policy.ts`. */
import type { AgentId, DenialCause, JsonObject } from './types.ts';

export type PolicyText = { readonly file: string; readonly text: string };

export type Asked = {
  readonly agent: AgentId;
  readonly action: string;
  readonly resource: string;
  readonly attributes: JsonObject | undefined;
  readonly estimatedCostUsd: number;
  readonly caller: AgentId | undefined;
};

export type Decided = {
  readonly kind: 'allow' | 'deny' | 'require_approval';
  readonly reason: string;
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  readonly cause: DenialCause | undefined;
  readonly remedy?: string | undefined;
  readonly obligations?:
    | readonly { readonly id: string; readonly type: string; readonly properties: object }[]
    | undefined;
  /** Canonical: what an approval is bound to. */
  readonly question: string;
};

export type Decide = (asked: Asked) => Decided;

export declare function deciderOf(texts: readonly PolicyText[]): Decide;
