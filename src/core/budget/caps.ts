/** Which caps an owner of money has: those of its own scope, else of the scope around it, else those of all. */
import { type BudgetConfig, PERIODS, type Period, type ScopedLimits, TIERS, type Tier, UNLIMITED } from './config.ts';
import { type Caps, NO_CAPS, setCaps } from './envelope.ts';

/** The names from the org down to the owner; none are those of all together. */
export type OwnerPath = readonly string[];

const keyOf = (path: OwnerPath): string => path.join('/');

export class CapsIndex {
  /** The same objects all the time, so that a reload changes the caps of everybody without looking for them. */
  readonly #general: Readonly<Record<Tier, Caps>> = {
    global: { ...NO_CAPS },
    org: { ...NO_CAPS },
    team: { ...NO_CAPS },
    agent: { ...NO_CAPS },
  };
  readonly #scoped = new Map<string, ScopedLimits>();
  /** By the tier and the narrowest scope that says something: one object for all its owners. */
  readonly #merged = new Map<string, Caps>();
  #hasLedger = false;
  /** Whether anybody has a cap. */
  hasAny = false;

  /** Returns the tiers of which a cap of all is lower now, and the orgs in which scopes have or had caps. */
  reconfigure(
    { limitsMicroUsd, scoped }: BudgetConfig,
    hasLedger: boolean,
  ): { readonly lowered: readonly Tier[]; readonly orgs: ReadonlySet<string> } {
    this.#hasLedger = hasLedger;
    const lowered = TIERS.filter((tier) =>
      PERIODS.some((period) => (limitsMicroUsd[tier][period] ?? Infinity) < this.#general[tier][period]),
    );
    for (const tier of TIERS) setCaps(this.#general[tier], limitsMicroUsd[tier], hasLedger);
    const before = [...this.#scoped.values()];
    this.#scoped.clear();
    this.#merged.clear();
    for (const limits of scoped) this.#scoped.set(keyOf(limits.path), limits);
    this.hasAny =
      scoped.length > 0 || TIERS.some((tier) => PERIODS.some((period) => this.#general[tier][period] !== Infinity));
    return { lowered, orgs: new Set([...before, ...scoped].map(({ path }) => path[0] ?? '')) };
  }

  capsOf(tier: Tier, path: OwnerPath): Readonly<Caps> {
    if (tier === 'org' && path[0] === '') return NO_CAPS;
    if (this.#scoped.size === 0 || path.length === 0) return this.#general[tier];
    const scopes = path.flatMap((_, nth) => this.#scoped.get(keyOf(path.slice(0, nth + 1))) ?? []);
    const telling = scopes.filter(({ limitsMicroUsd }) => limitsMicroUsd[tier] !== undefined);
    const narrowest = telling.at(-1);
    if (narrowest === undefined) return this.#general[tier];
    const key = `${tier} ${keyOf(narrowest.path)}`;
    const known = this.#merged.get(key);
    if (known !== undefined) return known;
    const merged = { ...NO_CAPS };
    const capOf = (period: Period): number | undefined => {
      const own = telling.findLast(({ limitsMicroUsd }) => limitsMicroUsd[tier]?.[period] !== undefined);
      return own?.limitsMicroUsd[tier]?.[period] ?? this.#general[tier][period];
    };
    setCaps(merged, { monthly: capOf('monthly'), daily: capOf('daily') }, this.#hasLedger);
    this.#merged.set(key, merged);
    return merged;
  }
}

/** Puts both together; undefined where there are no caps at all. */
export function withScoped(
  global: BudgetConfig | undefined,
  scoped: readonly ScopedLimits[],
): BudgetConfig | undefined {
  return global === undefined && scoped.length === 0 ? undefined : { ...(global ?? UNLIMITED), scoped };
}
