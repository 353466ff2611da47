/** The commands of `svc` about operations and the agents that run them. */
import { SUPPORTED_OBLIGATIONS } from '../core/check/obligations.ts';
import { OP_ENDS, OP_STATES } from '../core/ops/op-state.ts';
import type { CommandRow, OptionRow } from './command-row.ts';
import { AGENT, CHECKED, DECIDED_BY, LIMIT, ORG, TEAM } from './common-options.ts';

/** An option of commands that name an operation by its id. */
const OP_HOME: OptionRow = {
  flags: '--op-home <op_home>',
  meaning: 'only at this gateway of a cluster, as `svc ops show` names it (default: at all that have one of the id)',
};
/** Instead of ids. */
const CHOSEN: readonly OptionRow[] = [
  OP_HOME,
  ORG,
  TEAM,
  AGENT,
  { flags: '--all', meaning: 'all operations' },
  { flags: '-y, --yes', meaning: 'do not ask for confirmation' },
];

/** The states as people read them: that of a finished operation is how it ended. */
const SHOWN_STATES: readonly string[] = [
  ...new Set([...OP_STATES.filter((state) => state !== 'completing'), ...OP_ENDS]),
];

export const OPERATION_COMMANDS: readonly CommandRow[] = [
  {
    synopsis: 'check',
    summary:
      'ask whether an agent may do something, as the agent itself if SVC_CLI_AGENT_TOKEN is set; exits with 3 unless allowed',
    options: [
      ...CHECKED,
      { flags: '--op <op_id>', meaning: '<trace_id>:<span_id> (default: a new one)' },
      { flags: '--op-home <op_home>', meaning: 'the gateway of a cluster that has it, as answers name it' },
      { flags: '--supports <type...>', meaning: 'an obligation you fulfil', choices: SUPPORTED_OBLIGATIONS },
      { flags: '--dry-run', meaning: 'register no operation and reserve no money' },
      { flags: '--explain', meaning: 'show what decided; implies --dry-run' },
    ],
    example: 'svc check --agent acme/ops/a1 --action tool.call --resource web_search',
    load: async () => (await import('./commands/check.ts')).run,
  },
  {
    synopsis: 'ops ls',
    summary: 'list operations in flight and recently ended ones',
    options: [
      { flags: '--state <state>', meaning: 'only in this state', choices: [...new Set([...OP_STATES, ...OP_ENDS])] },
      { flags: '--ended <how>', meaning: 'only operations that ended in this way', choices: OP_ENDS },
      ...DECIDED_BY,
      ORG,
      TEAM,
      AGENT,
      LIMIT,
    ],
    prints: 'list',
    example: 'svc ops ls --state running --org acme',
    load: async () => (await import('./commands/ops.ts')).ls,
  },
  {
    synopsis: 'ops show <op_id>',
    summary: 'show one operation; its id may be shortened as in `svc ops ls`',
    options: [OP_HOME, ORG],
    example: 'svc ops show 4bf92f:00f067',
    load: async () => (await import('./commands/ops.ts')).showOne,
  },
  {
    synopsis: 'ops pause [op_id...]',
    summary: 'pause running operations',
    options: CHOSEN,
    example: 'svc ops pause 4bf92f:00f067',
    load: async () => (await import('./commands/ops-control.ts')).control('pause'),
  },
  {
    synopsis: 'ops resume [op_id...]',
    summary: 'resume paused operations',
    options: CHOSEN,
    example: 'svc ops resume 4bf92f:00f067',
    load: async () => (await import('./commands/ops-control.ts')).control('resume'),
  },
  {
    synopsis: 'ops terminate [op_id...]',
    summary: 'terminate operations; their agents fail fast',
    options: CHOSEN,
    example: 'svc ops terminate --agent acme/search/crawler',
    load: async () => (await import('./commands/ops-control.ts')).control('terminate'),
  },
  {
    synopsis: 'ops complete <op_id...>',
    summary: 'mark running operations as done',
    options: [OP_HOME, ORG],
    example: 'svc ops complete 4bf92f:00f067',
    load: async () => (await import('./commands/ops-control.ts')).control('complete'),
  },
  {
    synopsis: 'ops watch',
    summary: 'watch operations change; a live table on a terminal, lines elsewhere',
    options: [
      { flags: '--state <state>', meaning: 'only in this state, as shown', choices: SHOWN_STATES },
      ORG,
      TEAM,
      AGENT,
    ],
    example: 'svc ops watch --org acme',
    load: async () => (await import('./commands/watch.ts')).watch,
  },
  {
    synopsis: 'agents ls',
    summary: 'list registered agents',
    options: [ORG, TEAM, AGENT, LIMIT],
    prints: 'list',
    example: 'svc agents ls --org acme',
    load: async () => (await import('./commands/agents.ts')).ls,
  },
  {
    synopsis: 'agents register <agent>',
    summary: 'register <org>/<team>/<agent>, or rotate its token; SVC_CLI_AGENT_TOKEN sets it',
    options: [{ flags: '--parent <agent>', meaning: 'the agent that started it' }],
    example: 'svc agents register acme/search/crawler',
    load: async () => (await import('./commands/agents.ts')).register,
  },
  {
    synopsis: 'agents rm <agent>',
    summary: 'remove an agent; its token becomes invalid, and it receives no more signals',
    example: 'svc agents rm acme/search/crawler',
    load: async () => (await import('./commands/agents.ts')).rm,
  },
];
