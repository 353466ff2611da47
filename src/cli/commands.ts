/** All commands of `svc`. */

import { DECISION_CAUSES } from '../core/check/cause.ts';
import { ROLES, SCOPES } from '../core/identity/roles.ts';
import { LIMIT_PERS } from '../core/limits/limit.ts';
import { STATS_WINDOWS } from '../core/stats/windows.ts';
import { WEBHOOK_EVENTS } from '../core/webhooks/webhook.ts';
import type { CommandRow, GroupRow, OptionRow } from './command-row.ts';
import { AGENT, DECIDED_BY, LIMIT, ORG, TEAM } from './common-options.ts';
import { INTERVENTIONS } from './interventions.ts';
import { OPERATION_COMMANDS } from './operation-commands.ts';
import { POLICY_COMMANDS } from './policy-commands.ts';
import { SESSION_COMMANDS } from './session-commands.ts';

/** The help of `svc`, in this order. */
export const GROUPS: readonly GroupRow[] = [
  { name: 'serve', summary: 'start the gateway' },
  { name: 'status', summary: 'show the health of the gateway, and what needs attention' },
  { name: 'login', summary: 'exchange an API key for a session' },
  { name: 'logout', summary: 'delete the local session' },
  { name: 'whoami', summary: 'show the session' },
  { name: 'context', summary: 'name gateways and switch between them' },
  { name: 'check', summary: 'ask whether an agent may do something' },
  { name: 'ops', summary: 'list, watch, pause, resume and terminate operations' },
  { name: 'halt', summary: 'stop everything in a scope' },
  { name: 'halts', summary: 'list and release halts' },
  { name: 'approvals', summary: 'decide on the approvals that agents request' },
  { name: 'agents', summary: 'register and remove agents' },
  { name: 'logs', summary: 'read and follow the audit log' },
  { name: 'changes', summary: 'list changes made by people and files' },
  { name: 'topology', summary: 'show orgs, teams and agents' },
  { name: 'stats', summary: 'count checks, denies and spend' },
  { name: 'budgets', summary: 'show spend and caps' },
  { name: 'limits', summary: 'show what limits of policies have counted' },
  { name: 'prices', summary: 'show the token prices of models' },
  { name: 'keys', summary: 'create and revoke API keys' },
  { name: 'accounts', summary: 'manage the accounts of the dashboard' },
  { name: 'webhooks', summary: 'report events to people by HTTP calls' },
  { name: 'policy', summary: 'validate, test, explain, reload and publish policies' },
  { name: 'cluster', summary: 'show and forget gateways of a cluster, or leave it' },
  { name: 'audit', summary: 'verify and export the audit log, and send it elsewhere' },
  { name: 'mcp', summary: 'put MCP servers behind the gateway' },
  { name: 'hooks', summary: 'have coding agents ask before they use a tool' },
  { name: 'load', summary: 'measure how long agents wait for the gateway' },
  { name: 'completion', summary: 'print completions for bash, zsh or fish' },
];

/** Options of commands that end a credential. */
const MADE_KEYS: readonly OptionRow[] = [
  { flags: '--keep-keys', meaning: 'keep the API keys and webhooks that it made, which end with it otherwise' },
  { flags: '--yes', meaning: 'end them without confirmation' },
];
const CODING_AGENT_NAMES = ['claude-code', 'codex', 'cursor', 'copilot', 'gemini'];
const HOOKS: readonly OptionRow[] = [
  { flags: '--managed', meaning: 'the settings of the machine, which its users cannot change' },
];
const ASKED: readonly OptionRow[] = [
  { flags: '--url <url>', meaning: 'the gateway (default: SVC_GATEWAY_URL, or http://127.0.0.1:8080)' },
  { flags: '--agent <agent>', meaning: '<org>/<team>/<agent>, which an API key needs (default: SVC_AGENT)' },
];

const BETWEEN: readonly OptionRow[] = [
  { flags: '--since <time>', meaning: 'from this time on (UTC unless it has a zone), or 15m, 2h or 7d ago' },
  { flags: '--until <time>', meaning: 'before this time' },
];
const SHADOW: OptionRow = {
  flags: '--shadow <how>',
  meaning: 'only checks that a shadow decides differently',
  choices: ['differs'],
};
const LOG_FILTERS: readonly OptionRow[] = [
  ORG,
  TEAM,
  AGENT,
  ...DECIDED_BY,
  { flags: '--cause <cause>', meaning: 'only what was denied for this cause', choices: DECISION_CAUSES },
  { flags: '--event <type...>', meaning: 'only these events, as ActionDenied' },
  { flags: '--decision <decision>', meaning: 'only this decision', choices: ['allow', 'deny'] },
  { flags: '--op <op_id>', meaning: 'only this operation' },
  {
    flags: '--actor <actor>',
    meaning: 'only this actor, such as key:<id> or account:<id>',
  },
  ...BETWEEN,
];

const READING: readonly CommandRow[] = [
  {
    synopsis: 'logs',
    summary: 'read the audit log, newest entries last',
    options: [{ flags: '-f, --follow', meaning: 'keep printing new entries' }, ...LOG_FILTERS, SHADOW, LIMIT],
    prints: 'list',
    example: 'svc logs --follow --decision deny --since 1h',
    load: async () => (await import('./commands/logs.ts')).run,
  },
  {
    synopsis: 'changes',
    summary: 'list changes made by people and files, newest first',
    options: [...BETWEEN, ORG, LIMIT],
    prints: 'list',
    example: 'svc changes --since 1d',
    load: async () => (await import('./commands/changes.ts')).ls,
  },
  {
    synopsis: 'topology [view]',
    summary: 'show orgs, teams and agents: overview (the default), tree or stats',
    options: [
      ORG,
      { flags: '--team <team>', meaning: 'this team, instead of a view' },
      { flags: '--lineage <agent_id>', meaning: 'ancestors and descendants of this agent id' },
      LIMIT,
    ],
    argumentWords: ['overview', 'tree', 'stats'],
    example: 'svc topology tree --org acme',
    load: async () => (await import('./commands/topology.ts')).run,
  },
  {
    synopsis: 'stats',
    summary: 'count checks, denies and spend of the last day, or another span',
    options: [
      { flags: '--since <span>', meaning: 'how far back to count; 24h by default', choices: STATS_WINDOWS },
      ORG,
    ],
    example: 'svc stats --since 1h --org acme',
    load: async () => (await import('./commands/stats.ts')).run,
  },
  {
    synopsis: 'budgets ls',
    isDefault: true,
    summary: 'list spend, reservations and caps; `svc budgets` does the same',
    options: [ORG, LIMIT],
    prints: 'list',
    example: 'svc budgets ls --org acme',
    load: async () => (await import('./commands/budgets.ts')).run,
  },
  {
    synopsis: 'limits ls',
    isDefault: true,
    summary: 'list what limits have counted, the fullest first; `svc limits` does the same',
    options: [
      ORG,
      { flags: '--per <per>', meaning: 'only limits per session, agent and so on', choices: LIMIT_PERS },
      { flags: '--policy <policy>', meaning: 'only limits of this policy' },
      { flags: '--id <id>', meaning: 'only the limit of this id' },
      LIMIT,
    ],
    prints: 'list',
    example: 'svc limits ls --org acme --per session',
    load: async () => (await import('./commands/limits.ts')).run,
  },
  {
    synopsis: 'prices show <model>',
    summary: 'show the token prices of models, per million',
    options: [{ flags: '--provider <provider>', meaning: 'who serves the model (default: the model says it)' }],
    example: 'svc prices show claude-sonnet-4-5',
    load: async () => (await import('./commands/prices.ts')).run,
  },
];

const CLUSTER: readonly CommandRow[] = [
  {
    synopsis: 'cluster ls',
    summary: 'list the gateways that act as one, their leases, clocks and stranded money',
    prints: 'list',
    example: 'svc cluster ls',
    load: async () => (await import('./commands/cluster.ts')).ls,
  },
  {
    synopsis: 'cluster forget <name>',
    summary: 'forget a gateway that will not return, 10 minutes after its lease at the earliest',
    options: [
      { flags: '--unspent', meaning: 'free its unspent grants (default: charge them)' },
      { flags: '-y, --yes', meaning: 'do not ask for confirmation' },
    ],
    example: 'svc cluster forget gateway-3',
    load: async () => (await import('./commands/cluster.ts')).forget,
  },
  {
    synopsis: 'cluster leave',
    summary: 'take the data directory of a stopped gateway (SVC_DATA_DIR) out of its cluster',
    options: [{ flags: '-y, --yes', meaning: 'do not ask for confirmation' }],
    example: 'SVC_DATA_DIR=/var/lib/svc svc cluster leave',
    load: async () => (await import('./commands/cluster-leave.ts')).run,
  },
];

const ADMINISTRATION: readonly CommandRow[] = [
  {
    synopsis: 'keys create <name>',
    summary: 'create an API key and show it once',
    options: [
      { flags: '--scope <scope...>', meaning: 'what it may do', choices: SCOPES, isRequired: true },
      { flags: '--org <org>', meaning: 'bind it to this org' },
      { flags: '--expires <time>', meaning: 'when it ends, such as 2027-01-31T12:00:00Z, or 90d from now' },
    ],
    example: 'svc keys create ci --scope read --scope write --org acme',
    load: async () => (await import('./commands/keys.ts')).create,
  },
  {
    synopsis: 'keys ls',
    summary: 'list API keys, newest first',
    options: [ORG, LIMIT],
    prints: 'list',
    example: 'svc keys ls',
    load: async () => (await import('./commands/keys.ts')).ls,
  },
  {
    synopsis: 'keys revoke <id>',
    summary: 'revoke an API key and every session made with it',
    options: MADE_KEYS,
    example: 'svc keys revoke 4fYc81kQz0A',
    load: async () => (await import('./commands/keys.ts')).revoke,
  },
  {
    synopsis: 'keys rotate-signing',
    summary: 'sign tokens with a new key; the previous key still verifies',
    example: 'svc keys rotate-signing',
    load: async () => (await import('./commands/keys.ts')).rotateSigning,
  },
  {
    synopsis: 'webhooks create <url>',
    summary: 'create a webhook and show its secret once',
    options: [
      { flags: '--event <event...>', meaning: 'what it reports', choices: WEBHOOK_EVENTS, isRequired: true },
      { flags: '--org <org>', meaning: 'report only what concerns this org' },
    ],
    example: 'svc webhooks create https://example.com/hook --event violation',
    load: async () => (await import('./commands/webhooks.ts')).create,
  },
  {
    synopsis: 'webhooks ls',
    summary: 'list webhooks, and whether their calls arrive',
    options: [ORG, LIMIT],
    prints: 'list',
    example: 'svc webhooks ls',
    load: async () => (await import('./commands/webhooks.ts')).ls,
  },
  {
    synopsis: 'webhooks test <id>',
    summary: 'send a test message',
    example: 'svc webhooks test 0b0c…',
    load: async () => (await import('./commands/webhooks.ts')).test,
  },
  {
    synopsis: 'webhooks take-over <id>',
    summary: 'become the maker of a webhook, so that it stays when who made it goes',
    example: 'svc webhooks take-over 0b0c…',
    load: async () => (await import('./commands/webhooks.ts')).takeOver,
  },
  {
    synopsis: 'webhooks rm <id>',
    summary: 'delete a webhook and its waiting messages',
    example: 'svc webhooks rm 0b0c…',
    load: async () => (await import('./commands/webhooks.ts')).rm,
  },
  {
    synopsis: 'accounts ls',
    summary: 'list accounts',
    options: [LIMIT],
    prints: 'list',
    example: 'svc accounts ls',
    load: async () => (await import('./commands/accounts.ts')).ls,
  },
  {
    synopsis: 'accounts role <account> <role>',
    summary: 'change the role of an account, by e-mail or id',
    options: MADE_KEYS,
    example: 'svc accounts role ann@example.com viewer',
    load: async () => (await import('./commands/accounts.ts')).role,
  },
  {
    synopsis: 'accounts disable <account>',
    summary: 'disable an account and sign it out everywhere',
    options: MADE_KEYS,
    example: 'svc accounts disable ann@example.com',
    load: async () => (await import('./commands/accounts.ts')).setDisabled('disable'),
  },
  {
    synopsis: 'accounts enable <account>',
    summary: 'enable a disabled account',
    example: 'svc accounts enable ann@example.com',
    load: async () => (await import('./commands/accounts.ts')).setDisabled('enable'),
  },
  {
    synopsis: 'accounts unlock <account>',
    summary: 'lift the lock after failed sign-ins',
    example: 'svc accounts unlock ann@example.com',
    load: async () => (await import('./commands/accounts.ts')).unlock,
  },
  {
    synopsis: 'accounts reset <account>',
    summary: 'make a link for a new password, which also lifts a lock; shown once',
    options: [
      {
        flags: '--dir <dir>',
        meaning: 'ask the gateway on this data directory, on its own machine: without credential, for owners too',
      },
    ],
    example: 'svc accounts reset ann@example.com',
    load: async () => (await import('./commands/accounts.ts')).reset,
  },
  {
    synopsis: 'accounts invite <email>',
    summary: 'invite someone; shows the link once',
    options: [
      { flags: '--role <role>', meaning: 'default: developer', choices: ROLES },
      { flags: '--org <org>', meaning: 'bind the account to this org' },
    ],
    example: 'svc accounts invite ann@example.com --role viewer',
    load: async () => (await import('./commands/accounts.ts')).invite,
  },
  {
    synopsis: 'accounts invites',
    summary: 'list invites that can still be accepted',
    options: [ORG, LIMIT],
    prints: 'list',
    example: 'svc accounts invites',
    load: async () => (await import('./commands/accounts.ts')).invites,
  },
  {
    synopsis: 'accounts uninvite <invite>',
    summary: 'revoke an invite, by e-mail or id',
    example: 'svc accounts uninvite ann@example.com',
    load: async () => (await import('./commands/accounts.ts')).uninvite,
  },
  ...POLICY_COMMANDS,
  {
    synopsis: 'audit verify [dir...]',
    summary: 'verify the chain of a log, live or copied; reports the first broken entry',
    options: [
      { flags: '--key <file>', meaning: 'verify checkpoints with this PEM key, not the one in the data directory' },
      {
        flags: '--witness <path...>',
        meaning:
          'statements kept by a witness of the log: its file, syslog lines, or the log of another gateway or an export of it',
      },
      {
        flags: '--witness-actor <actor...>',
        meaning: 'the authors of statements about this log in the other one, if it is a witness of several',
      },
      {
        flags: '--peers',
        meaning: 'the folders are those of gateways of a cluster: verify all, and what each has signed of the others',
      },
      {
        flags: '--strict',
        meaning: 'fail unless signatures, checkpoints and a witness vouch for the log, up to its last hour',
      },
    ],
    example: 'svc audit verify ./data --witness witness.ndjson --strict',
    load: async () => (await import('./commands/audit.ts')).verify,
  },
  {
    synopsis: 'audit export',
    summary: 'export the log from the gateway, or offline from a folder',
    options: [
      { flags: '--format <format>', meaning: 'default: ndjson', choices: ['ndjson', 'csv'] },
      { flags: '--file <file>', meaning: 'write to this file, not to standard output' },
      { flags: '--force', meaning: 'overwrite the file if it exists' },
      { flags: '--dir <dir>', meaning: 'read this data directory instead of the gateway' },
      ...LOG_FILTERS,
    ],
    prints: 'text',
    example: 'svc audit export --org acme --since 7d --file acme.ndjson',
    load: async () => (await import('./commands/audit.ts')).exportLog,
  },
  {
    synopsis: 'audit sinks <ls|test|replay> [name]',
    summary: 'list where the log is sent as well, try one, or send it everything from an entry on',
    options: [{ flags: '--from <id>', meaning: 'with replay: the first entry to send' }],
    argumentWords: ['ls', 'test', 'replay'],
    prints: 'list',
    example: 'svc audit sinks replay siem --from 1200',
    load: async () => (await import('./commands/audit-sinks.ts')).run,
  },
  {
    synopsis: 'mcp guard <command...>',
    summary:
      'run an MCP server on standard input and output, and check each call; SVC_GATEWAY_URL, SVC_AGENT and SVC_AGENT_TOKEN name gateway and agent',
    options: [
      { flags: '--agent <agent>', meaning: '<org>/<team>/<agent> (default: SVC_AGENT)' },
      { flags: '--server <name>', meaning: "the server's name in policies (default: the command's)" },
    ],
    prints: 'text',
    example: 'svc mcp guard --server github -- npx -y github-mcp --stdio',
    load: async () => (await import('./commands/mcp.ts')).guard,
  },
  {
    synopsis: 'mcp proxy <config>',
    summary: 'serve MCP servers over HTTP to agents that the gateway knows',
    prints: 'text',
    example: 'svc mcp proxy mcp.yaml',
    load: async () => (await import('./commands/mcp.ts')).proxy,
  },
  {
    synopsis: 'mcp pins <verb> [server] [tool]',
    summary: "list, accept or reset the pinned definitions of servers' tools",
    argumentWords: ['ls', 'accept', 'reset'],
    prints: 'list',
    example: 'svc mcp pins accept github create_issue',
    load: async () => (await import('./commands/mcp.ts')).pins,
  },
  {
    synopsis: 'hooks install <tool>',
    summary: 'have a coding agent ask the gateway before each tool call; the token stays in SVC_AGENT_TOKEN',
    options: [...HOOKS, ...ASKED],
    argumentWords: CODING_AGENT_NAMES,
    prints: 'text',
    example: 'svc hooks install claude-code --url https://svc.example.com',
    load: async () => (await import('./commands/hooks.ts')).install,
  },
  {
    synopsis: 'hooks uninstall <tool>',
    summary: 'remove our hooks, and restore what was there',
    options: HOOKS,
    argumentWords: CODING_AGENT_NAMES,
    prints: 'text',
    example: 'svc hooks uninstall claude-code',
    load: async () => (await import('./commands/hooks.ts')).uninstall,
  },
  {
    synopsis: 'hooks doctor <tool>',
    summary: 'check that hooks ask the gateway, with the token, and block while it is away; exit status 1 if not',
    options: HOOKS,
    argumentWords: CODING_AGENT_NAMES,
    prints: 'text',
    example: 'svc hooks doctor claude-code',
    load: async () => (await import('./commands/hooks-doctor.ts')).doctor,
  },
  {
    synopsis: 'hooks run <tool>',
    summary: 'run by an installed hook: an event on standard input, the answer on standard output; 2 blocks',
    options: [...ASKED, { flags: '--timeout <secs>', meaning: 'how long the hook may take (default: 600)' }],
    argumentWords: CODING_AGENT_NAMES,
    prints: 'text',
    example: 'svc hooks run codex --url https://svc.example.com < event.json',
    load: async () => (await import('./commands/hooks.ts')).run,
  },
  {
    synopsis: 'completion <shell>',
    summary: 'print completions for bash, zsh or fish',
    argumentWords: ['bash', 'zsh', 'fish'],
    prints: 'text',
    example: 'source <(svc completion bash)',
    load: async () => (await import('./commands/completion.ts')).completionOf({ commands: COMMANDS, groups: GROUPS }),
  },
];

export const COMMANDS: readonly CommandRow[] = [
  ...SESSION_COMMANDS,
  ...OPERATION_COMMANDS,
  ...INTERVENTIONS,
  ...READING,
  ...CLUSTER,
  ...ADMINISTRATION,
];

/** Called by the scripts of `svc completion`: no help names them. */
export const HIDDEN_COMMANDS: readonly CommandRow[] = [
  {
    synopsis: 'complete <argument> [prefix]',
    summary: 'print the values of an argument that the gateway knows',
    prints: 'text',
    example: 'svc complete agent acme/',
    load: async () => (await import('./commands/complete.ts')).run,
  },
];
