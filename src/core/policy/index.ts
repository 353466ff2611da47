/**
 * Finds the rules that may apply to a check, in two steps. The agent's triple leads to the scopes that reach it, in the
 * order of the cascade. In each of them, the action and the resource lead to the rules that may match both.
 */

import type { AgentIdentity } from '../base/ids.ts';
import { append } from '../base/lists.ts';
import type { Steps } from '../base/steps.ts';
import { copyOf } from '../base/text.ts';
import { ANY, PatternTable } from './patterns.ts';
import type { CompiledDocument, CompiledRule } from './rule.ts';
import { pathOf } from './scope.ts';

/** Trying so few rules is as fast as looking them up. */
const FEW_RULES = 4;
/** Rules with so few patterns of resources among them are tried faster than they are found by the resource. */
const FEW_PATTERNS = 8;
/**
 * A rule is found by each of its actions together with each of its resources. With more than so many pairs, it is found
 * by the longer of the two lists alone.
 */
const MAX_PAIRS = 64;

/** Agents use few actions, again and again: those of the last checks are not looked up anew. */
const KNOWN_ACTIONS = 256;

/** By the key of a resource, the places of rules. */
type ByResource = ReadonlyMap<number, readonly number[]>;
/** The rules of an action: by resource, and the places of them all where these are few. */
type OfAction = { readonly tables: readonly ByResource[]; readonly few: readonly number[] | undefined };
type LookUp = (action: string, resource: string) => readonly number[];

/** The rules of one scope, by what their patterns match. */
export class RuleIndex {
  /** In the order of the cascade. The place of a rule in it stands for the rule. */
  readonly rules: readonly CompiledRule[];
  /**
   * The places of all rules that match this action and this resource, and of a few that do not, in their order, each
   * once. The list is only valid until the next call. Undefined: there are so few rules that each is to be tried.
   */
  readonly mayMatch: LookUp | undefined;

  private constructor(rules: readonly CompiledRule[], mayMatch: LookUp | undefined) {
    this.rules = rules;
    this.mayMatch = mayMatch;
  }

  /** Indexes one rule per step. */
  static *building(rules: readonly CompiledRule[]): Steps<RuleIndex> {
    return new RuleIndex(rules, rules.length > FEW_RULES ? yield* buildingLookUp(rules) : undefined);
  }
}

const NO_PLACES: readonly number[] = [];

function* buildingLookUp(rules: readonly CompiledRule[]): Steps<LookUp> {
  const actions = yield* PatternTable.building(rules.map(({ rule }) => rule.actions));
  const resources = yield* PatternTable.building(rules.map(({ rule }) => rule.resources));
  /** By the key of an action, and then by that of a resource, the places of the rules that have both. */
  const places = new Map<number, Map<number, number[]>>();
  for (const [place, { rule }] of rules.entries()) {
    const [byAction, byResource] = within(MAX_PAIRS, actions.keysOf(rule.actions), resources.keysOf(rule.resources));
    for (const action of byAction) {
      const ofAction = places.get(action) ?? new Map<number, number[]>();
      places.set(action, ofAction);
      for (const resource of byResource) append(ofAction, resource, place);
    }
    yield;
  }
  const knownActions = new Map<string, OfAction>();
  const learn = (action: string): OfAction => {
    const { keys, count } = actions.find(action);
    const tables = keys.slice(0, count).flatMap((key) => places.get(key) ?? []);
    const found = { tables, few: ifFew(tables, rules) };
    if (knownActions.size >= KNOWN_ACTIONS) knownActions.clear();
    knownActions.set(copyOf(action), found);
    return found;
  };
  const merged: number[] = [];
  return (action, resource) => {
    const { tables, few } = knownActions.get(action) ?? learn(action);
    if (few !== undefined) return few;
    const { keys, count } = resources.find(resource);
    let only: readonly number[] = NO_PLACES;
    if (merged.length > 0) merged.length = 0;
    for (const byResource of tables) {
      for (let nth = 0; nth < count; nth += 1) {
        const list = byResource.get(keys[nth]!);
        if (list === undefined) continue;
        if (only.length === 0) only = list;
        else addTo(merged, merged.length === 0 ? only : NO_PLACES, list);
      }
    }
    return merged.length === 0 ? only : sortOnce(merged);
  };
}

/** The places in all these tables, in their order, each once. Looks at no more of them than can be few. */
function ifFew(tables: readonly ByResource[], rules: readonly CompiledRule[]): readonly number[] | undefined {
  const places = new Set<number>();
  let patterns = 0;
  for (const table of tables)
    for (const list of table.values())
      for (const place of list) {
        if (places.has(place)) continue;
        places.add(place);
        patterns += rules[place]?.rule.resources.length ?? 0;
        if (patterns > FEW_PATTERNS) return undefined;
      }
  return [...places].sort((one, other) => one - other);
}

function within(
  most: number,
  actions: readonly number[],
  resources: readonly number[],
): readonly [readonly number[], readonly number[]] {
  if (actions.length * resources.length <= most) return [actions, resources];
  return actions.length > resources.length ? [actions, [ANY]] : [[ANY], resources];
}

function addTo(merged: number[], ...lists: readonly (readonly number[])[]): void {
  for (const list of lists) for (const place of list) merged.push(place);
}

/** A rule that is found by several of its patterns is there several times. */
function sortOnce(places: number[]): readonly number[] {
  places.sort((one, other) => one - other);
  let kept = 1;
  for (let at = 1; at < places.length; at += 1) {
    if (places[at] === places[at - 1]) continue;
    places[kept] = places[at]!;
    kept += 1;
  }
  places.length = kept;
  return places;
}

/** A scope that documents name: the rules that reach it, those of the scopes around it first, and the scopes within. */
type Scope = { readonly reaching: readonly RuleIndex[]; readonly within: ReadonlyMap<string, Scope> };
type Draft = { readonly rules: CompiledRule[]; readonly within: Map<string, Draft> };

const newDraft = (): Draft => ({ rules: [], within: new Map() });

export class ScopeIndex {
  readonly #global: Scope;

  private constructor(global: Scope) {
    this.#global = global;
  }

  /** Indexes one rule per step. */
  static *building(documents: readonly CompiledDocument[]): Steps<ScopeIndex> {
    const global = newDraft();
    for (const { document, rules } of documents) {
      const draft = pathOf(document.scope).reduce(draftWithin, global);
      for (const rule of rules) draft.rules.push(rule);
    }
    return new ScopeIndex(yield* buildingScope(global, []));
  }

  /** The rules that reach the agent, in the order of the cascade. */
  reaching({ orgId, teamId, agentId }: AgentIdentity): readonly RuleIndex[] {
    const org = this.#global.within.get(orgId);
    if (org === undefined) return this.#global.reaching;
    const team = org.within.get(teamId);
    if (team === undefined) return org.reaching;
    return (team.within.get(agentId) ?? team).reaching;
  }
}

function draftWithin({ within }: Draft, name: string): Draft {
  const known = within.get(name) ?? newDraft();
  within.set(name, known);
  return known;
}

function* buildingScope({ rules, within }: Draft, around: readonly RuleIndex[]): Steps<Scope> {
  const reaching = rules.length === 0 ? around : [...around, yield* RuleIndex.building(rules)];
  const inner = new Map<string, Scope>();
  for (const [name, draft] of within) inner.set(name, yield* buildingScope(draft, reaching));
  return { reaching, within: inner };
}
