/** Pages of operations, and the text of their cursors. */
import type { AgentGroup } from '../agents/agent-entry.ts';
import type { AgentRegistry } from '../agents/agents.ts';
import { agentKeyOf } from '../base/ids.ts';
import { type Page, type PageRequest, placeOfCursor } from '../base/page.ts';
import type { AboutFilter } from '../ops/op-about.ts';
import type { OpList } from '../ops/op-chunk.ts';
import type { OpEnd, OpState } from '../ops/op-state.ts';
import type { OpHolder, OpPlace, OpSlot, OpsRegistry, ScanBudget } from '../ops/ops.ts';
import { compileGlob } from '../policy/glob.ts';

export type OpFilter = {
  readonly orgId?: string | undefined;
  readonly teamId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly state?: OpState | undefined;
  /** Patterns, as in rules. */
  readonly action?: string | undefined;
  readonly resource?: string | undefined;
  readonly policy?: string | undefined;
  readonly ruleId?: string | undefined;
  readonly ended?: OpEnd | undefined;
};

type Asked = OpFilter & PageRequest;
type Registries = { readonly ops: OpsRegistry; readonly agents: AgentRegistry };

/** How many operations, orgs and teams one page may look at, so that a rare filter never holds up the checks. */
const SCAN_STEPS = 100_000;
/** To look up an agent in a team takes as long as to look at so many operations. */
const LOOKUP_STEPS = 5;

/** A list that a listing walks over, and its place among them. A list without a holder is empty. */
type Source = {
  readonly org: number;
  readonly team: number;
  readonly list: OpList;
  readonly holder: OpHolder | undefined;
};
type Place = { readonly org: number; readonly team: number; readonly op: OpPlace | undefined };

const START: Place = { org: 0, team: 0, op: undefined };

/**
 * A page of the operations that match. An operation that exists, and matches, during the whole walk is seen exactly
 * once. Where matches are rare, a page may be short or even empty and still have a `next` to go on from. Undefined when
 * the cursor is not one of this listing's.
 */
export function pageOfOps(registries: Registries, asked: Asked): Page<OpSlot> | undefined {
  const isOfAll = asked.orgId === undefined && asked.teamId === undefined && asked.agentId === undefined;
  return isOfAll ? pageOfAll(registries, asked) : pageOfLists(registries, asked);
}

function pageOfAll({ ops }: Registries, { state, perPage, cursor, ...asked }: Asked): Page<OpSlot> | undefined {
  const from = placeOfCursor(cursor);
  if (from === undefined) return undefined;
  const filter = aboutFilterOf(asked);
  const about = filter === undefined ? undefined : { filter, budget: { steps: SCAN_STEPS } };
  const page = ops.list(state, perPage, from, about);
  return { items: page.ops, next: page.next?.toString() };
}

/** Undefined where nothing is asked of what operations are about, which most listings do not. */
function aboutFilterOf({ action, resource, policy, ruleId, ended }: OpFilter): AboutFilter | undefined {
  if ([action, resource, policy, ruleId, ended].every((each) => each === undefined)) return undefined;
  const matcherOf = (glob: string | undefined) => (glob === undefined ? undefined : compileGlob(glob).matches);
  return { isAction: matcherOf(action), isResource: matcherOf(resource), policy, ruleId, ended };
}

/** Walks the lists of the orgs, teams or agents that the filter names, one after the other, each oldest first. */
function pageOfLists({ ops, agents }: Registries, { perPage, cursor, ...filter }: Asked): Page<OpSlot> | undefined {
  const from = cursor === undefined ? START : placeOf(cursor);
  if (from === undefined) return undefined;
  const budget: ScanBudget = { steps: SCAN_STEPS };
  const about = aboutFilterOf(filter);
  const found: OpSlot[] = [];
  for (const { org, team, list, holder } of sourcesFrom(agents, filter, from)) {
    if (budget.steps === 0) return { items: found, next: cursorOf({ org, team, op: undefined }) };
    budget.steps = Math.max(0, budget.steps - (list === 'agent' ? LOOKUP_STEPS : 1));
    if (holder === undefined) continue;
    const isWhereItStopped = org === from.org && team === from.team;
    const page = ops.walk(
      list,
      holder,
      filter.state,
      perPage - found.length,
      budget,
      isWhereItStopped ? from.op : undefined,
      about,
    );
    found.push(...page.ops);
    if (page.next !== undefined) return { items: found, next: cursorOf({ org, team, op: page.next }) };
  }
  return { items: found, next: undefined };
}

/**
 * Orgs and teams that have nothing to show come too, with no holder: looking at them is work that a page is charged
 * for.
 */
function* sourcesFrom(agents: AgentRegistry, filter: OpFilter, from: Place): Generator<Source> {
  const { orgId, teamId, agentId, state } = filter;
  const isOfOrgs = teamId === undefined && agentId === undefined;
  const mayMatch = ({ ops }: AgentGroup): boolean => state === undefined || ops[state] > 0;
  for (const org of orgId === undefined ? agents.groups.orgs.after(from.org - 1) : one(agents.groups.orgs.get(orgId))) {
    yield { org: org.sequence, team: 0, list: 'org', holder: isOfOrgs && mayMatch(org) ? org : undefined };
    if (isOfOrgs || !mayMatch(org)) continue;
    const after = org.sequence === from.org ? from.team - 1 : 0;
    for (const team of teamId === undefined ? org.teams.after(after) : one(org.teams.get(teamId))) {
      const holder =
        agentId === undefined ? team : agents.get(agentKeyOf({ orgId: org.orgId, teamId: team.teamId ?? '', agentId }));
      yield {
        org: org.sequence,
        team: team.sequence,
        list: agentId === undefined ? 'team' : 'agent',
        holder: mayMatch(team) ? holder : undefined,
      };
    }
  }
}

const one = <T>(value: T | undefined): readonly T[] => (value === undefined ? [] : [value]);

const cursorOf = ({ org, team, op }: Place): string =>
  [org, team, ...(op === undefined ? [] : [op.from, op.slot, op.number])].join('.');

function placeOf(cursor: string): Place | undefined {
  if (!/^\d{1,15}\.\d{1,15}(\.\d{1,15}\.\d{1,10}\.\d{1,15})?$/.test(cursor)) return undefined;
  const [org, team, from, slot, number] = cursor.split('.').map(Number);
  return { org: org!, team: team!, op: from === undefined ? undefined : { from, slot: slot!, number: number! } };
}
