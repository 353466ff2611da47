/** The sets of policies that were in force: listed, read, and compared (docs/spec.md, Policy). */
import { BAD_CURSOR, type Page, type PageRequest, placeOfCursor } from '../core/base/page.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Steps } from '../core/base/steps.ts';
import type { Fault } from '../core/fault.ts';
import type { Principal } from '../core/identity/roles.ts';
import { diffingPolicies, type PolicyChange } from '../core/policy/diff.ts';
import type { PolicySet } from '../core/policy/policy.ts';
import type { PolicyText } from '../ports/cluster.ts';
import type { KeptVersion, PolicyVersions } from '../ports/policy-versions.ts';

export type ListedVersion = KeptVersion & { readonly state: 'in_force' | 'shadow' | 'past' };
export type VersionWithFiles = ListedVersion & { readonly texts: readonly PolicyText[] };
export type PolicyDiff = { readonly from: string; readonly to: string; readonly changes: readonly PolicyChange[] };

export type CompileTexts = (texts: readonly PolicyText[]) => Promise<Result<CompiledTexts, readonly string[]>>;
export type CompiledTexts = { readonly policies: PolicySet; readonly warnings: readonly string[] };

/** The set that decides nothing, with its files. */
export type ShadowVersion = Omit<VersionWithFiles, 'state'>;

export type PolicyHistoryDeps = {
  readonly versions: PolicyVersions;
  readonly shadow: () => ShadowVersion | undefined;
  readonly inForce: () => PolicySet;
  readonly compile: CompileTexts;
  readonly inSlices: <T>(steps: Steps<T>) => Promise<T>;
};

/** The refusal of a principal of one org: a set holds for every org. */
export const refuseBound = ({ orgId }: Principal): Result<never, Fault> | undefined =>
  orgId === null ? undefined : fail({ kind: 'org_forbidden', orgId: undefined });

export class PolicyHistory {
  readonly #deps: PolicyHistoryDeps;

  constructor(deps: PolicyHistoryDeps) {
    this.#deps = deps;
  }

  async list(principal: Principal, { perPage, cursor }: PageRequest): Promise<Result<Page<ListedVersion>, Fault>> {
    const refused = refuseBound(principal);
    if (refused !== undefined) return refused;
    const from = placeOfCursor(cursor);
    if (from === undefined) return BAD_CURSOR;
    const all = await this.#all();
    if (!all.ok) return all;
    const end = from + perPage;
    return ok({ items: all.value.slice(from, end), next: end < all.value.length ? String(end) : undefined });
  }

  /** Fault: `not_found` where there is no such version, or none any more. */
  async get(principal: Principal, version: string): Promise<Result<VersionWithFiles, Fault>> {
    const refused = refuseBound(principal);
    if (refused !== undefined) return refused;
    const all = await this.#all();
    if (!all.ok) return all;
    const found = all.value.find((each) => each.version === version);
    if (found === undefined) return noVersion(version);
    const texts = await this.texts(version);
    return texts.ok ? ok({ ...found, texts: texts.value }) : texts;
  }

  /** `to` undefined: the set in force. */
  async diff(principal: Principal, from: string, to: string | undefined): Promise<Result<PolicyDiff, Fault>> {
    const refused = refuseBound(principal);
    if (refused !== undefined) return refused;
    const before = await this.compiled(from);
    if (!before.ok) return before;
    const after = to === undefined ? ok(this.#deps.inForce()) : await this.compiled(to);
    if (!after.ok) return after;
    const changes = await this.#deps.inSlices(diffingPolicies(before.value.documents, after.value.documents));
    return ok({ from, to: after.value.version, changes });
  }

  /** A set that is kept, compiled. */
  async compiled(version: string): Promise<Result<PolicySet, Fault>> {
    const { inForce, compile } = this.#deps;
    if (inForce().version === version) return ok(inForce());
    const texts = await this.texts(version);
    if (!texts.ok) return texts;
    const compiled = await compile(texts.value);
    return compiled.ok ? ok(compiled.value.policies) : fail({ kind: 'policy_invalid', problems: compiled.fault });
  }

  async texts(version: string): Promise<Result<readonly PolicyText[], Fault>> {
    const shadow = this.#deps.shadow();
    if (shadow?.version === version) return ok(shadow.texts);
    const kept = await this.#deps.versions.texts(version);
    if (!kept.ok) return kept;
    return kept.value === undefined ? noVersion(version) : ok(kept.value);
  }

  /** The shadow first, unless it is a set that was in force as well. */
  async #all(): Promise<Result<readonly ListedVersion[], Fault>> {
    const kept = await this.#deps.versions.list();
    if (!kept.ok) return kept;
    const shadow = this.#deps.shadow();
    const inForce = this.#deps.inForce().version;
    const listed = kept.value.map((each): ListedVersion => {
      const state =
        each.version === inForce ? 'in_force' : each.version === shadow?.version ? 'shadow' : ('past' as const);
      return { ...each, state };
    });
    if (shadow === undefined || kept.value.some(({ version }) => version === shadow.version)) return ok(listed);
    const { texts: _texts, ...summary } = shadow;
    return ok([{ ...summary, state: 'shadow' }, ...listed]);
  }
}

const noVersion = (version: string): Result<never, Fault> =>
  fail({ kind: 'not_found', what: `policy version ${version}` });
