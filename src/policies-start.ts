/** Keeps the policies in force up to date with their files. */
import { renderPolicyProblem } from './adapters/policy-file.ts';
import { watchPolicies, type PolicyWatcher } from './adapters/policy-watch.ts';
import type { Governor } from './core/governor.ts';
import { fail } from './core/result.ts';
import { PolicyKeeper, type PolicyKeeperDeps } from './gateway/policies.ts';
import { loadPoliciesAside } from './threads/policy-reader.ts';

/** A reload that could not be recorded, or found too many waiting, is tried again after this. */
const RELOAD_RETRY_MS = 5_000;

/** Changes of the policy files. The watcher reports each once, so one that comes before `follow` is remembered. */
export class PolicyChanges {
  readonly #watcher: PolicyWatcher;
  #isStale = false;
  #onChange = (): void => { this.#isStale = true; };

  /** Watches from now on. Create it before the policies are read: then no change is missed. */
  constructor(path: string) {
    this.#watcher = watchPolicies(path, () => this.#onChange());
  }

  /** Calls `onChange` for each change to come, and at once if there has been one already. */
  follow(onChange: () => void): void {
    this.#onChange = onChange;
    if (this.#isStale) onChange();
  }

  close(): void { this.#watcher.close(); }
}

export type PolicyKeeperStart = Omit<PolicyKeeperDeps, 'load' | 'install'> & {
  readonly path: string;
  readonly governor: Governor;
};

/** Reads in a thread of its own, and installs policies and budget caps in one step. */
export const createPolicyKeeper = ({ path, governor, clock, ...deps }: PolicyKeeperStart): PolicyKeeper => new PolicyKeeper({
  ...deps,
  clock,
  load: async () => {
    const loaded = await loadPoliciesAside(path);
    return loaded.ok ? loaded : fail(loaded.fault.map(renderPolicyProblem));
  },
  install: (policies) => {
    governor.policies = policies;
    governor.budgets.reconfigure(policies.budget, clock.nowMs());
  },
});

/** Never rejects. */
export async function reloadChanged(keeper: PolicyKeeper, onError: (error: unknown, doing: string) => void): Promise<void> {
  try {
    const reloaded = await keeper.reload('gateway');
    // The watcher does not report this change again.
    if (!reloaded.ok && (reloaded.fault.kind === 'audit_unavailable' || reloaded.fault.kind === 'overloaded')) setTimeout(() => void reloadChanged(keeper, onError), RELOAD_RETRY_MS).unref();
  } catch (error) {
    onError(error, 'reloading policies');
  }
}
