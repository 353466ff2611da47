import { OneByOne } from '../core/base/one-by-one.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { explain, type Fault } from '../core/fault.ts';
import type { PolicySet } from '../core/policy/policy.ts';
import type { LoadedPolicies } from '../policy-files/policy-file.ts';
import type { Peers, PolicyShelf, PolicyText, Unconfirmed } from '../ports/cluster.ts';
import type { Reloaded } from '../use-cases/policies.ts';

/** The steps of a gateway with the policies of its cluster. */
export type PolicyWork = {
  /** Records it and puts it in force, from the next check on. */
  readonly install: (compiled: LoadedPolicies, actor: string) => Promise<Result<unknown, Fault>>;
  /** The one that is in force here. */
  readonly version: () => string;
};

export type ClusterPoliciesOptions = {
  readonly name: string;
  readonly shelf: PolicyShelf;
  readonly peers: Peers;
  /**
   * Puts a version in force everywhere; `isFirst`: unless one is already. Resolves when all act by it, with the names
   * of those that do not.
   */
  readonly activate: (version: string, by: string, isFirst: boolean) => Promise<Result<readonly string[], Fault>>;
  /** Compiles without holding up checks. Problems are sentences that name file, line and column. */
  readonly compile: (texts: readonly PolicyText[]) => Promise<Result<LoadedPolicies, readonly string[]>>;
  readonly log: { error(message: string, fields?: object): void };
};

/**
 * The policies of all gateways: a set is stored, compiled by every gateway, and only then put in force, at all of them
 * by one step of the database. A gateway that cannot compile it keeps it from being activated; one that does not answer
 * is named.
 */
export class ClusterPolicies {
  readonly #options: ClusterPoliciesOptions;
  #work: PolicyWork | undefined;
  /** The latest set that was compiled, or could not be: it is not compiled again with every reading. */
  #prepared: { readonly version: string; readonly result: Result<LoadedPolicies, readonly string[]> } | undefined;
  readonly #changes = new OneByOne();

  constructor(options: ClusterPoliciesOptions) {
    this.#options = options;
    options.peers.serve('prepare', async ({ version }) => {
      const prepared = await this.#prepare(version);
      return prepared.ok && prepared.value.ok ? {} : { problems: problemsOf(prepared) };
    });
  }

  /** Call it once there is a set in force here. */
  follow(work: PolicyWork): void {
    this.#work = work;
  }

  get version(): string | undefined {
    return this.#work?.version();
  }

  /** The set that is in force everywhere; undefined: none is yet. Faults: as those of `publishAgain`. */
  async inForce(): Promise<Result<LoadedPolicies | undefined, Fault>> {
    const active = await this.#options.shelf.active();
    if (!active.ok || active.value === undefined) return active as Result<undefined, Fault>;
    const prepared = await this.#prepare(active.value.version);
    if (!prepared.ok) return prepared;
    return prepared.value.ok ? prepared.value : fail({ kind: 'policy_invalid', problems: prepared.value.fault });
  }

  /** Publishes this set, if none is in force everywhere, and follows the one that is. */
  async begin({ policies, texts }: LoadedPolicies): Promise<Result<unknown, Fault>> {
    const { shelf, activate } = this.#options;
    const active = await shelf.active();
    if (!active.ok || active.value !== undefined) return active;
    const added = await shelf.add(sizeOf(policies), texts, 'gateway');
    return added.ok ? activate(policies.version, 'gateway', true) : added;
  }

  /** Puts these documents in force everywhere. Faults: `policy_invalid`; those of the database. */
  async publish(texts: readonly PolicyText[], actor: string): Promise<Result<Reloaded, Fault> & Unconfirmed> {
    const compiled = await this.#options.compile(texts);
    if (!compiled.ok) return fail({ kind: 'policy_invalid', problems: compiled.fault });
    const { version } = compiled.value.policies;
    this.#prepared = { version, result: compiled };
    const added = await this.#options.shelf.add(sizeOf(compiled.value.policies), texts, actor);
    return added.ok ? this.#activate(version, compiled.value, actor) : added;
  }

  /** Puts a set in force again that was published before. Faults: `not_found`, and as above. */
  async publishAgain(version: string, actor: string): Promise<Result<Reloaded, Fault> & Unconfirmed> {
    const prepared = await this.#prepare(version);
    if (!prepared.ok) return prepared;
    const compiled = prepared.value;
    if (!compiled.ok) return fail({ kind: 'policy_invalid', problems: compiled.fault });
    return this.#activate(version, compiled.value, actor);
  }

  async #activate(
    version: string,
    { policies, warnings }: LoadedPolicies,
    actor: string,
  ): Promise<Result<Reloaded, Fault> & Unconfirmed> {
    const changed = this.#work?.version() !== version;
    const problems = await this.#problemsElsewhere(version);
    if (problems.length > 0) return fail({ kind: 'policy_invalid', problems });
    const activated = await this.#options.activate(version, actor, false);
    if (!activated.ok) return activated;
    return {
      ...ok({ version, documents: policies.summary().documents.length, changed, warnings }),
      unconfirmed: activated.value,
    };
  }

  async #problemsElsewhere(version: string): Promise<readonly string[]> {
    const asked = await this.#options.peers.askAll('prepare', { version });
    if (!asked.ok) return [];
    return asked.value.answers.flatMap(({ from, answer: { problems = [] } }) =>
      problems.map((problem) => `gateway ${from.name}: ${problem}`),
    );
  }

  /** Compiles a set that is stored. Fault: `not_found` where there is no such set. */
  #prepare(version: string): Promise<Result<Result<LoadedPolicies, readonly string[]>, Fault>> {
    return this.#changes.run(async () => {
      if (this.#prepared?.version === version) return ok(this.#prepared.result);
      const texts = await this.#options.shelf.read(version);
      if (!texts.ok) return texts;
      if (texts.value === undefined) return fail({ kind: 'not_found', what: `policy version ${version}` });
      const result = await this.#options.compile(texts.value);
      if (!result.ok)
        this.#options.log.error('the policies of the cluster cannot be read here', { version, problems: result.fault });
      this.#prepared = { version, result };
      return ok(result);
    });
  }

  /** Puts the set in force here that the log says is in force everywhere. False: it is to be tried again. */
  async followTo(version: string, by: string): Promise<boolean> {
    if (this.#work === undefined || this.#work.version() === version) return true;
    const prepared = await this.#prepare(version);
    if (!prepared.ok || !prepared.value.ok) return false;
    const compiled = prepared.value.value;
    const installed = await this.#changes.run(async () =>
      this.#work === undefined || this.#work.version() === version ? ok(undefined) : this.#work.install(compiled, by),
    );
    return installed.ok;
  }
}

const sizeOf = (policies: PolicySet) => {
  const { version, documents } = policies.summary();
  return { version, documents: documents.length, rules: documents.reduce((sum, { ruleCount }) => sum + ruleCount, 0) };
};

const problemsOf = (prepared: Result<Result<LoadedPolicies, readonly string[]>, Fault>): readonly string[] => {
  if (!prepared.ok) return [explain(prepared.fault)];
  return prepared.value.ok ? [] : prepared.value.fault;
};
