/** The sets of policies that were in force, with their files. */
import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { ShadowCounts } from '../core/policy/shadow.ts';
import type { PolicyText } from './cluster.ts';

/** How many are kept at least. */
export const KEPT_POLICY_VERSIONS = 100;

export type KeptVersion = {
  readonly version: string;
  /** Since when it was in force the last time; until when, undefined while it is. */
  readonly sinceMs: number;
  readonly untilMs: number | undefined;
  /** Who put it in force. */
  readonly by: string;
  readonly documents: number;
  readonly rules: number;
};

/** Faults: `store_unreachable`. */
export type PolicyVersions = {
  /** The one in force, then the others, newest first. */
  list(): Promise<Result<readonly KeptVersion[], Fault>>;
  /** Undefined: there is no such version, or none any more. */
  texts(version: string): Promise<Result<readonly PolicyText[] | undefined, Fault>>;
};

export type EnteredVersion = Omit<KeptVersion, 'untilMs'> & { readonly texts: readonly PolicyText[] };

/** The set that decides nothing. It ends by itself. */
export type KeptShadow = {
  readonly version: string;
  readonly texts: readonly PolicyText[];
  readonly sinceMs: number;
  readonly expiresAtMs: number;
  readonly by: string;
  readonly documents: number;
  readonly rules: number;
};

/** The one shadow that there may be, for all gateways. Faults: `store_unreachable`. */
export type ShadowStore = {
  load(): Promise<Result<KeptShadow | undefined, Fault>>;
  /** In place of the one before. */
  save(shadow: KeptShadow): Promise<Result<void, Fault>>;
  /** Whether it was there: of several gateways that remove it, one has removed it. */
  remove(shadow: Pick<KeptShadow, 'version' | 'sinceMs'>): Promise<Result<boolean, Fault>>;
};

/** This gateway's counts of a shadow. */
export type ShadowCountStore = {
  load(shadow: Pick<KeptShadow, 'version' | 'sinceMs'>): ShadowCounts | undefined;
  save(shadow: Pick<KeptShadow, 'version' | 'sinceMs'>, counts: ShadowCounts): Promise<void>;
};
