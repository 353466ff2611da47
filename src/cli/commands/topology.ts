/** `svc topology [overview|tree|stats]`, `--team`, `--lineage`: orgs, teams, agents, and who descends from whom. */

import { usageError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { Api, MAX_PAGE } from '../remote/api.ts';
import { bold, dim, note, show, styledTable } from '../terminal/output.ts';
import { awayAt, type Column, cellText, isRows, type Row, valueAt } from '../terminal/table.ts';
import { counted } from '../terminal/words.ts';
import { agentText, limitOf, moreNote } from './listing.ts';

type View = { readonly path: string; readonly lines: (answer: Row) => readonly string[] };

export async function run(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const { path, lines } = viewOf(invocation);
  const limit = limitOf(options);
  if (limit > MAX_PAGE)
    throw usageError(
      `--limit must be at most ${MAX_PAGE} here`,
      'Narrow it down with --org or --team, or list agents with `svc agents ls`.',
    );
  const answer = await (await Api.of(invocation)).get(path, 'next_cursor', {
    org_id: options.text('org'),
    per_page: limit,
  });
  await show(globals.output, answer, () => {
    const text = lines(answer);
    if (text.length === 0) note('No agents are registered.');
    return text;
  });
  if (typeof answer.next_cursor === 'string')
    note(
      limit < MAX_PAGE
        ? moreNote(limit)
        : `There are more than these ${limit}; narrow it down with --org or --team, or list them with \`svc agents ls\`.`,
    );
}

function viewOf({ args: [asked], options }: Invocation): View {
  const view = asked ?? 'overview';
  const team = options.text('team');
  const lineage = options.text('lineage');
  if (team !== undefined && lineage !== undefined) throw usageError('--team and --lineage cannot be combined');
  if (asked !== undefined && (team ?? lineage) !== undefined)
    throw usageError(`${asked} and --${team === undefined ? 'lineage' : 'team'} cannot be combined`);
  if (team !== undefined) return { path: `/api/v1/topology/team/${encodeURIComponent(team)}`, lines: teamLines };
  if (lineage !== undefined)
    return { path: `/api/v1/topology/lineage/${encodeURIComponent(lineage)}`, lines: lineageLines };
  const chosen = VIEWS.get(view);
  if (chosen === undefined) throw usageError(`the view must be one of ${[...VIEWS.keys()].join(', ')}`);
  return chosen;
}

const AGENTS: readonly Column[] = [
  { title: 'AGENT', cell: agentText, isWhole: true },
  { title: 'PARENT', cell: 'parent' },
  { title: 'OPS', cell: 'active_ops' },
  { title: 'SEEN', cell: awayAt('last_seen_at'), isSpare: true },
];

const GROUPS: readonly Column[] = [
  { title: 'ORG', cell: 'org_id' },
  { title: 'TEAM', cell: 'team_id' },
  { title: 'AGENTS', cell: 'agent_count' },
  { title: 'SEEN', cell: 'agents_seen' },
  { title: 'PENDING', cell: 'ops.pending' },
  { title: 'RUNNING', cell: 'ops.running' },
  { title: 'PAUSED', cell: 'ops.paused' },
];

/** Statistics show orgs; for a single org, its teams. */
const numbersTable = (groups: readonly Row[]): readonly string[] =>
  tableOf(
    groups.some(({ team_id: team }) => team !== undefined) ? GROUPS : GROUPS.filter(({ cell }) => cell !== 'team_id'),
    groups,
  );

const VIEWS: ReadonlyMap<string, View> = new Map([
  [
    'overview',
    { path: '/api/v1/topology/overview', lines: (answer) => blocks([countsOf(answer)], ...teamTables(answer)) },
  ],
  ['tree', { path: '/api/v1/topology/tree', lines: (answer) => rowsIn(answer, 'orgs').flatMap(orgLines) }],
  [
    'stats',
    {
      path: '/api/v1/topology/stats',
      lines: (answer) => blocks([countsOf(answer)], numbersTable(rowsIn(answer, 'groups'))),
    },
  ],
]);

const teamTables = (answer: Row): readonly (readonly string[])[] => [
  tableOf(GROUPS, rowsIn(answer, 'teams')),
  tableOf(AGENTS, rowsIn(answer, 'agents')),
];

const teamLines = (answer: Row): readonly string[] => blocks(...teamTables(answer));

const tableOf = (columns: readonly Column[], rows: readonly Row[]): readonly string[] =>
  rows.length === 0 ? [] : styledTable(columns, rows);

/** An empty line between two blocks, none around them. */
const blocks = (...all: readonly (readonly string[])[]): readonly string[] =>
  all.filter(({ length }) => length > 0).flatMap((lines, at) => (at === 0 ? lines : ['', ...lines]));

function countsOf(answer: Row): string {
  const number = (name: string): number => (typeof answer[name] === 'number' ? answer[name] : 0);
  return [
    counted(number('org_count'), 'org'),
    counted(number('team_count'), 'team'),
    counted(number('agent_count'), 'agent'),
  ].join(', ');
}

const rowsIn = (row: Row, name: string): readonly Row[] => {
  const value = valueAt(row, name);
  return isRows(value) ? value : [];
};

const orgLines = (org: Row): readonly string[] => [
  org.org_id === '' ? dim('without an org') : bold(cellText(org.org_id)),
  ...rowsIn(org, 'teams').flatMap((team) => [
    `  ${cellText(team.team_id)}`,
    ...rowsIn(team, 'agents').flatMap((agent) => nodeLines(agent, 2)),
  ]),
];

const nodeLines = (agent: Row, depth: number): readonly string[] => [
  nodeLine(agent, depth),
  ...rowsIn(agent, 'children').flatMap((child) => nodeLines(child, depth + 1)),
  ...(agent.truncated === true ? [dim(`${'  '.repeat(depth + 1)}…`)] : []),
];

/** Operations in flight are what one looks for in a tree of agents. */
const nodeLine = (agent: Row, depth: number): string =>
  `${'  '.repeat(depth)}${cellText(agent.agent_id)}${typeof agent.active_ops === 'number' && agent.active_ops > 0 ? dim(`  ${counted(agent.active_ops, 'operation')}`) : ''}`;

/** From the oldest ancestor down to the last descendant, each indented below the one it descends from. */
const lineageLines = (answer: Row): readonly string[] =>
  rowsIn(answer, 'lineages').flatMap((lineage) => {
    const ancestors = rowsIn(lineage, 'ancestors');
    const self = valueAt(lineage, 'agent') as Row | undefined;
    const own = ancestors.length;
    return [
      ...[...ancestors].reverse().map((agent, depth) => wholeLine(agent, depth)),
      bold(wholeLine(self ?? {}, own)),
      ...rowsIn(lineage, 'descendants').map((agent) =>
        wholeLine(agent, own + (typeof agent.depth === 'number' ? agent.depth : 1)),
      ),
      ...(lineage.truncated === true ? [dim(`${'  '.repeat(own + 1)}…`)] : []),
    ];
  });

const wholeLine = (agent: Row, depth: number): string => `${'  '.repeat(depth)}${cellText(agentText(agent))}`;
