/**
 * Finds the rules that may apply to a check, in two steps. The agent's triple leads to its chain: the rules that reach
 * it, in the order of the cascade. The chain's tables of actions and resources lead to the candidates. Names written
 * out in full are looked up, so only patterns have to be tried.
 */
import { append } from './append.ts';
import type { AgentIdentity } from './ids.ts';
import { type CompiledDocument, type CompiledRule, covered } from './policy-rule.ts';
import type { PolicyScope } from './policy-scope.ts';

/** A rule and its place in the chain. */
export type Candidate = { readonly place: number; readonly compiled: CompiledRule };

/** The rules for one action: those for a resource by its name, and those whose resource patterns must be tried. */
export type ResourceTable = {
  readonly exact: ReadonlyMap<string, readonly Candidate[]>;
  readonly tried: readonly Candidate[];
};

export type Chain = {
  /** For an action that a rule writes out: all rules that match it, those with a pattern among them. */
  readonly byAction: { get(action: string): ResourceTable | undefined };
  /** For any other action: the rules with an action pattern, which is still to be tried. */
  readonly otherActions: ResourceTable;
};

export const NO_CANDIDATES: readonly Candidate[] = [];

/** A scope's own documents, what it inherits, and the scopes within it. Chains are built when first asked for. */
class ScopeNode {
  readonly documents: CompiledDocument[] = [];
  readonly within = new Map<string, ScopeNode>();
  readonly #outer: ScopeNode | undefined;
  #chain: Chain | undefined;

  constructor(outer: ScopeNode | undefined) {
    this.#outer = outer;
  }

  at(name: string): ScopeNode {
    const known = this.within.get(name);
    if (known !== undefined) return known;
    const node = new ScopeNode(this);
    this.within.set(name, node);
    return node;
  }

  get chain(): Chain {
    this.#chain ??= buildChain(this.rules());
    return this.#chain;
  }

  rules(): readonly CompiledRule[] {
    return [...(this.#outer?.rules() ?? []), ...this.documents.flatMap(({ rules }) => rules)];
  }
}

export class ScopeIndex {
  readonly #global = new ScopeNode(undefined);

  constructor(documents: readonly CompiledDocument[]) {
    for (const each of documents) this.#nodeOf(each.document.scope).documents.push(each);
  }

  /** The chain of the agent. All agents share the chains of the few scopes that documents name. */
  chainOf({ orgId, teamId, agentId }: AgentIdentity): Chain {
    const org = this.#global.within.get(orgId);
    if (org === undefined) return this.#global.chain;
    const team = org.within.get(teamId);
    if (team === undefined) return org.chain;
    return (team.within.get(agentId) ?? team).chain;
  }

  #nodeOf(scope: PolicyScope): ScopeNode {
    switch (scope.tier) {
      case 'global':
        return this.#global;
      case 'org':
        return this.#global.at(scope.orgId);
      case 'team':
        return this.#global.at(scope.orgId).at(scope.teamId);
      case 'agent':
        return this.#global.at(scope.orgId).at(scope.teamId).at(scope.agentId);
    }
  }
}

function buildChain(rules: readonly CompiledRule[]): Chain {
  const candidates = rules.map((compiled, place) => ({ place, compiled }));
  const patterned = candidates.filter(({ compiled }) => compiled.actions.globs.length > 0);
  const writtenOut = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    for (const action of candidate.compiled.actions.exact) append(writtenOut, action, candidate);
  }
  return { byAction: new ActionTables(writtenOut, patterned), otherActions: buildTable(patterned) };
}

/**
 * Each table is built when its action is first asked for. Building all at once would try every pattern on every action:
 * with ten thousand rules, the first check after a reload would hold up all others for seconds.
 */
class ActionTables {
  readonly #writtenOut: ReadonlyMap<string, readonly Candidate[]>;
  readonly #patterned: readonly Candidate[];
  readonly #tables = new Map<string, ResourceTable>();

  constructor(writtenOut: ReadonlyMap<string, readonly Candidate[]>, patterned: readonly Candidate[]) {
    this.#writtenOut = writtenOut;
    this.#patterned = patterned;
  }

  get(action: string): ResourceTable | undefined {
    const built = this.#tables.get(action);
    if (built !== undefined) return built;
    const named = this.#writtenOut.get(action);
    if (named === undefined) return undefined;
    const byPattern = this.#patterned.filter(
      ({ compiled }) => !compiled.actions.exact.has(action) && covered(compiled.actions, action),
    );
    const table = buildTable([...named, ...byPattern].sort((a, b) => a.place - b.place));
    this.#tables.set(action, table);
    return table;
  }
}

function buildTable(candidates: readonly Candidate[]): ResourceTable {
  const exact = new Map<string, Candidate[]>();
  const tried: Candidate[] = [];
  for (const candidate of candidates) {
    const { resources } = candidate.compiled;
    if (resources.globs.length > 0) tried.push(candidate);
    else for (const resource of resources.exact) append(exact, resource, candidate);
  }
  return { exact, tried };
}
