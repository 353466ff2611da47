/** Rules that would have allowed what was denied for want of one (docs/spec.md, Policy). */
import type { AuditEntry } from '../audit/audit.ts';
import { REDACTED } from '../audit/redact-text.ts';
import { type AgentIdentity, agentKeyOf } from '../base/ids.ts';
import { isMapping } from '../base/mapping.ts';
import { assert } from '../base/result.ts';
import type { CheckSubject } from '../condition/condition.ts';
import { parsePolicyDocument } from './document.ts';
import { compilePolicies, type PolicySet } from './policy.ts';
import { MAX_NAME_LENGTH } from './readers.ts';
import { inPieces, type Pattern, patternsOf } from './suggest-patterns.ts';

export const SUGGESTION_SOURCES = ['denials', 'shadow'] as const;
/** The denials of the set in force, or what the shadow denies of what that set allows. */
export type SuggestionSource = (typeof SUGGESTION_SOURCES)[number];

/** Keys as in a policy file. */
export type SuggestedRule = {
  readonly id: string;
  readonly effect: 'allow';
  readonly actions: readonly string[];
  readonly resources?: readonly string[];
  readonly when: string;
};

/** Checks of one agent that are alike. */
export type Evidence = {
  readonly agent: AgentIdentity;
  readonly action: string;
  readonly resource: string;
  readonly count: number;
  /** A few of the entries, the first read first. */
  readonly auditIds: readonly number[];
};

export type Suggestion = {
  readonly rule: SuggestedRule;
  /** The denied requests that it is drawn from, and allows. */
  readonly evidence: readonly Evidence[];
  /** Other requests that were denied for want of a rule, and would be allowed by it. */
  readonly widens: readonly Evidence[];
};

export type SuggestedDocument = {
  readonly name: string;
  readonly scope: string;
  readonly suggestions: readonly Suggestion[];
};

/** As in a `.test.yaml`. */
export type SuggestedCase = {
  readonly name: string;
  readonly agent: string;
  readonly action: string;
  readonly resource: string;
  readonly expect: 'allow' | 'deny';
};

export type LeftOut = 'redacted' | 'too_long' | 'too_many' | 'unreadable';

export type Suggested = {
  /** Checks that no rule allowed. */
  readonly denials: number;
  /** Requests for which no rule can be made. */
  readonly leftOut: Readonly<Partial<Record<LeftOut, number>>>;
  readonly documents: readonly SuggestedDocument[];
  readonly cases: readonly SuggestedCase[];
};

const MAX_KINDS = 100_000;
const MAX_IDS = 5;
const MAX_CASES_PER_RULE = 5;

type Kind = { -readonly [Key in keyof Evidence]: Evidence[Key] } & { auditIds: number[] };

export class Suggestions {
  readonly #source: SuggestionSource;
  /** By agent, action and resource. */
  readonly #wanted = new Map<string, Kind>();
  /** With --from shadow, what is denied already beside it. */
  readonly #denied = new Map<string, Kind>();
  readonly #leftOut: Partial<Record<LeftOut, number>> = {};
  #denials = 0;

  constructor(source: SuggestionSource) {
    this.#source = source;
  }

  /** Newest first or last: it does not matter. */
  add(entry: AuditEntry): void {
    const isDenied = entry.event_type === 'ActionDenied' && entry.cause === 'no_rule';
    const isWanted = this.#source === 'denials' ? isDenied : isDeniedByShadow(entry);
    if (!isWanted && !isDenied) return;
    const { action, resource } = entry.payload;
    if (typeof action !== 'string' || typeof resource !== 'string') return;
    if (!isWanted) return void this.#note(this.#denied, entry, action, resource);
    this.#denials += 1;
    const reason = unfitFor(action, resource) ?? this.#note(this.#wanted, entry, action, resource);
    if (reason !== undefined) this.#leftOut[reason] = (this.#leftOut[reason] ?? 0) + 1;
  }

  result(): Suggested {
    const others = [...(this.#source === 'denials' ? this.#wanted : this.#denied).values()];
    const documents = byTeam([...this.#wanted.values()]).map((kinds, at) => documentOf(kinds, others, at));
    return {
      denials: this.#denials,
      leftOut: { ...this.#leftOut },
      documents,
      cases: documents.flatMap(casesOf),
    };
  }

  #note(kinds: Map<string, Kind>, { lineage, id }: AuditEntry, action: string, resource: string) {
    const { org_id, team_id, agent_id } = lineage;
    const agent = { orgId: org_id ?? '', teamId: String(team_id), agentId: String(agent_id) };
    const key = JSON.stringify([agent, action, resource]);
    const known = kinds.get(key);
    if (known === undefined && kinds.size >= MAX_KINDS) return 'too_many';
    if (known === undefined) kinds.set(key, { agent, action, resource, count: 1, auditIds: [id] });
    else {
      known.count += 1;
      if (known.auditIds.length < MAX_IDS) known.auditIds.push(id);
    }
    return undefined;
  }
}

function isDeniedByShadow({ payload: { shadow }, decision, event_type: eventType }: AuditEntry): boolean {
  const differs = decision === 'allow' || eventType === 'ApprovalRequested';
  return differs && isMapping(shadow) && shadow.decision === 'deny' && shadow.cause === 'no_rule';
}

/** A condition has room for one of this length. */
const MAX_TEXT = 800;
const MAX_ACTION = 512;
/** Half of a character, which no policy file can hold. */
const HALF = /\p{Surrogate}/u;

function unfitFor(action: string, resource: string): LeftOut | undefined {
  if (action.includes(REDACTED) || resource.includes(REDACTED)) return 'redacted';
  if (HALF.test(action) || HALF.test(resource)) return 'unreadable';
  return action.length > MAX_ACTION || resource.length > MAX_TEXT ? 'too_long' : undefined;
}

/** Sorted, so that the same log leads to the same suggestions. */
function byTeam(kinds: readonly Kind[]): readonly (readonly Kind[])[] {
  const teams = groupedBy(kinds, ({ agent }) => JSON.stringify([agent.orgId, agent.teamId]));
  return [...teams].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, team]) => team);
}

function groupedBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** Rights for some agents: each of them was seen to ask for each of these actions by each of these patterns. */
type Grant = {
  readonly agents: readonly string[];
  readonly actions: readonly string[];
  readonly pattern: Pattern;
  readonly evidence: readonly Kind[];
};

function grantsOf(team: readonly Kind[]): readonly Grant[] {
  const asked = groupedBy(team, ({ agent, action }) => JSON.stringify([agent.agentId, action]));
  const single = [...asked.values()].flatMap((kinds): readonly Grant[] => {
    const { agent, action } = kinds[0]!;
    const byResource = new Map(kinds.map((kind) => [kind.resource, kind]));
    return patternsOf([...byResource.keys()]).map((pattern) => ({
      agents: [agent.agentId],
      actions: [action],
      pattern,
      evidence: pattern.resources.flatMap((resource) => byResource.get(resource) ?? []),
    }));
  });
  const alike = merged(single, ({ actions, pattern }) => JSON.stringify([actions, pattern.globs, pattern.exact]));
  return merged(alike, ({ agents, pattern }) => JSON.stringify([agents, pattern.globs, pattern.exact]));
}

/** Grants that differ in one thing only are one. */
const merged = (grants: readonly Grant[], keyOf: (grant: Grant) => string): readonly Grant[] =>
  [...groupedBy(grants, keyOf).values()].map((group) => ({
    agents: [...new Set(group.flatMap(({ agents }) => agents))].sort(),
    actions: [...new Set(group.flatMap(({ actions }) => actions))].sort(),
    pattern: group[0]!.pattern,
    evidence: group.flatMap(({ evidence }) => evidence),
  }));

function documentOf(team: readonly Kind[], others: readonly Kind[], at: number): SuggestedDocument {
  const { orgId, teamId } = team[0]!.agent;
  const scope = orgId === '' ? 'global' : `team:${orgId}/${teamId}`;
  const full = `suggested-${orgId}/${teamId}`;
  const name = full.length <= MAX_NAME_LENGTH ? full : `suggested-${at + 1}`;
  const here = others.filter(({ agent }) => agent.orgId === orgId && agent.teamId === teamId);
  const rules = grantsOf(team).flatMap((grant) => rulesOf(grant, orgId, teamId));
  const suggestions = rules.map(({ evidence, ...rule }, at): Suggestion => {
    const numbered = { id: `suggested-${at + 1}`, ...rule };
    const alone = compiledOf({ name, scope, rules: [numbered] });
    const own = new Set(evidence.map(keyOfKind));
    const widens = here.filter((kind) => !own.has(keyOfKind(kind)) && isAllowedBy(alone, kind));
    for (const kind of evidence) assert(isAllowedBy(alone, kind), 'a suggested rule allows what it is drawn from');
    return { rule: numbered, evidence, widens };
  });
  return { name, scope, suggestions };
}

const keyOfKind = ({ agent, action, resource }: Kind): string => JSON.stringify([agent, action, resource]);
const subjectOf = ({ agent, action, resource }: Omit<Evidence, 'count' | 'auditIds'>): CheckSubject => ({
  ...{ agent, action, resource },
  ...{ attributes: undefined, caller: undefined, estimatedCostMicroUsd: 0 },
});
const isAllowedBy = (policies: PolicySet, kind: Kind): boolean => policies.decide(subjectOf(kind)).kind === 'allow';

function compiledOf(raw: object): PolicySet {
  const { document, problems } = parsePolicyDocument(raw, 'suggested.yaml');
  assert(document !== undefined && problems.length === 0, 'what is suggested is valid');
  const compiled = compilePolicies([document]);
  assert(compiled.ok, 'what is suggested compiles');
  return compiled.value;
}

type RuleOfGrant = Omit<SuggestedRule, 'id'> & { readonly evidence: readonly Kind[] };

/** There are several where the lists of a condition would be too long for one. */
function rulesOf({ agents, actions, pattern, evidence }: Grant, orgId: string, teamId: string): RuleOfGrant[] {
  const actionLists = actions.some(isWild) ? inPieces(actions) : [actions];
  return inPieces(agents).flatMap((someAgents) =>
    actionLists.map((someActions) => {
      const conditions = [
        ...(orgId === '' ? [`agent.org_id == "" && agent.team_id == ${JSON.stringify(teamId)}`] : []),
        isOneOf('agent.agent_id', someAgents),
        ...(someActions.some(isWild) ? [isOneOf('action', someActions)] : []),
        ...(pattern.exact.length === 0 ? [] : [isOneOf('resource', pattern.exact)]),
      ];
      return {
        effect: 'allow' as const,
        actions: someActions,
        ...(pattern.globs.length > 0 && { resources: pattern.globs }),
        when: conditions.join(' && '),
        evidence: evidence.filter(
          ({ agent, action }) => someAgents.includes(agent.agentId) && someActions.includes(action),
        ),
      };
    }),
  );
}

/** As a pattern it would match more than itself. */
const isWild = (text: string): boolean => /[*?]/.test(text);

/** JSON's strings are strings of CEL, too. */
const isOneOf = (variable: string, texts: readonly string[]): string =>
  texts.length === 1 ? `${variable} == ${JSON.stringify(texts[0])}` : `${variable} in ${JSON.stringify(texts)}`;

/** Some of what each rule is drawn from, and that an agent that was not seen gets none of it. */
function casesOf({ suggestions }: SuggestedDocument): readonly SuggestedCase[] {
  const seen = new Set(suggestions.flatMap(({ evidence }) => evidence.map(({ agent }) => agent.agentId)));
  let unseen = 'somebody-else';
  while (seen.has(unseen)) unseen += '-yet';
  return suggestions.flatMap(({ evidence }) => {
    const some = evidence.slice(0, MAX_CASES_PER_RULE);
    const { agent, action, resource } = some[0]!;
    return [
      ...some.map((each) => caseOf(each.agent, each, 'allow')),
      caseOf({ ...agent, agentId: unseen }, { action, resource }, 'deny'),
    ];
  });
}

function caseOf(
  agent: AgentIdentity,
  { action, resource }: Pick<Evidence, 'action' | 'resource'>,
  expect: SuggestedCase['expect'],
): SuggestedCase {
  const key = agentKeyOf(agent);
  const name = `${key} ${expect === 'allow' ? 'may' : 'may not'} ${action} ${resource}`.trim();
  return { name, agent: key, action, resource, expect };
}
