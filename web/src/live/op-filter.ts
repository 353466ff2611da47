/** Which operations are meant: the filters of `GET /api/v1/ops` by their names, and words to search for. */
import { compileGlob } from '../../../src/core/policy/glob.ts';
import { isFinished, type Op, wordOf } from './op.ts';

/** Empty ones let all pass. */
export type OpFilter = {
  readonly q?: string;
  readonly org_id?: string;
  readonly team_id?: string;
  readonly agent_id?: string;
  /** A state of the API, or `active` for those that have not finished. */
  readonly state?: string;
  readonly ended?: string;
  /** Patterns, as in rules. */
  readonly action?: string;
  readonly resource?: string;
  readonly policy?: string;
  readonly rule_id?: string;
};

export const OP_FILTERS = [
  'q',
  'org_id',
  'team_id',
  'agent_id',
  'state',
  'ended',
  'action',
  'resource',
  'policy',
  'rule_id',
] as const satisfies readonly (keyof OpFilter)[];

/**
 * The words of a search. A name may be written as it is shown, `acme / search / crawler`, or as the command line takes
 * it.
 */
const wordsOf = (text: string): readonly string[] =>
  text
    .toLowerCase()
    .replace(/\s*\/\s*/g, '/')
    .split(/\s+/)
    .filter((word) => word !== '')
    // An agent without an org is shown under a dash.
    .map((word) => word.replace(/^[-–]\//, '/'));

/** A word is found anywhere; a name with a slash is whole: `acme/search` is that team, and `acme/search/a1` not a10. */
const fits = (op: Op, word: string): boolean =>
  op.text.includes(word) || (word.includes('/') && op.path.startsWith(word.endsWith('/') ? word : `${word}/`));

type Test = (op: Op) => boolean;

/** Compiled once for however many operations. */
export function opTest(filter: OpFilter): Test {
  const tests: Test[] = [];
  const { q = '', org_id: org, team_id: team, agent_id: agent, state, ended, action, resource, policy } = filter;
  if (org) tests.push((op) => (op.orgId ?? '') === org);
  if (team) tests.push((op) => op.teamId === team);
  if (agent) tests.push((op) => op.agentId === agent);
  if (state === 'active') tests.push((op) => !isFinished(op.state));
  else if (state) tests.push((op) => op.state === state || wordOf(op) === state);
  if (ended) tests.push((op) => isFinished(op.state) && wordOf(op) === ended);
  if (action) tests.push(globTest(action, (op) => op.action));
  if (resource) tests.push(globTest(resource, (op) => op.resource));
  if (policy) tests.push((op) => op.policy === policy);
  if (filter.rule_id) tests.push((op) => op.ruleId === filter.rule_id);
  for (const word of wordsOf(q)) tests.push((op) => fits(op, word));
  return (op) => tests.every((test) => test(op));
}

function globTest(pattern: string, textOf: (op: Op) => string): Test {
  const glob = compileGlob(pattern);
  return (op) => glob.matches(textOf(op));
}

export const isEmptyFilter = (filter: OpFilter): boolean => Object.values(filter).every((value) => !value);
