/** All commands of `svc`. */
import { OP_STATES } from '../core/op-state.ts';
import { ROLES, SCOPES } from '../core/scope.ts';
import type { CommandRow, GroupRow, OptionRow } from './command-row.ts';
import { refuseOldNode } from './old-node.ts';

/** The help of `svc`, in this order. */
export const GROUPS: readonly GroupRow[] = [
  { name: 'serve', summary: 'start the gateway' },
  { name: 'login', summary: 'exchange an API key for a session' },
  { name: 'logout', summary: 'forget the session' },
  { name: 'whoami', summary: 'show the session' },
  { name: 'context', summary: 'name gateways and switch between them' },
  { name: 'check', summary: 'ask whether an agent may do something' },
  { name: 'ops', summary: 'see operations in flight, pause, resume and terminate them' },
  { name: 'agents', summary: 'register and remove agents' },
  { name: 'logs', summary: 'read the audit log, also as it grows' },
  { name: 'topology', summary: 'see orgs, teams and agents' },
  { name: 'budgets', summary: 'see what was spent and what may be' },
  { name: 'keys', summary: 'create and revoke API keys' },
  { name: 'accounts', summary: 'manage the accounts of the dashboard' },
  { name: 'policy', summary: 'validate, test, explain and reload policies' },
  { name: 'audit', summary: 'prove that an audit log is whole, and export it' },
  { name: 'completion', summary: 'print completions for bash, zsh or fish' },
];

const ORG: OptionRow = { flags: '--org <org>', meaning: 'only of this org' };
const TEAM: OptionRow = { flags: '--team <team>', meaning: 'only of this team' };
const AGENT: OptionRow = { flags: '--agent <agent>', meaning: 'only of this agent: its id, or <org>/<team>/<agent>' };
const LIMIT: OptionRow = { flags: '--limit <count>', meaning: 'show at most this many, instead of 100' };
const POLICIES: OptionRow = { flags: '--policies <path...>', meaning: 'policy files or folders, instead of those of SVC_POLICY_PATH' };

const CHECKED: readonly OptionRow[] = [
  { flags: '--agent <agent>', meaning: '<org>/<team>/<agent>, or /<team>/<agent>', isRequired: true },
  { flags: '--action <action>', meaning: 'such as tool.call or file.write', isRequired: true },
  { flags: '--resource <resource>', meaning: 'a tool, a model, a path, a host' },
  { flags: '--attr <name=value...>', meaning: 'an attribute; the value is JSON, or else plain text' },
  { flags: '--cost <usd>', meaning: 'what it is expected to cost' },
  { flags: '--caller <agent>', meaning: 'the agent that calls this one' },
];

/** Instead of ids. */
const CHOSEN: readonly OptionRow[] = [
  ORG,
  TEAM,
  AGENT,
  { flags: '--all', meaning: 'all that there are' },
  { flags: '-y, --yes', meaning: 'do not ask whether these are meant' },
];

const LOG_FILTERS: readonly OptionRow[] = [
  ORG,
  TEAM,
  AGENT,
  { flags: '--event <type>', meaning: 'only this event, such as ActionDenied' },
  { flags: '--decision <decision>', meaning: 'only this decision', choices: ['allow', 'deny'] },
  { flags: '--op <op_id>', meaning: 'only of this operation' },
  { flags: '--actor <actor>', meaning: 'only what this one did, such as key:<id>, account:<id> or agent:<org>/<team>/<agent>' },
  { flags: '--since <time>', meaning: 'from a time on (UTC, if it names no zone), or 15m, 2h or 7d ago' },
  { flags: '--until <time>', meaning: 'before a time' },
];

const SESSION: readonly CommandRow[] = [
  {
    synopsis: 'serve',
    summary: 'start the gateway; SVC_* variables configure it',
    example: 'SVC_DATA_DIR=./data svc serve',
    load: async () => {
      refuseOldNode(); // which could not even read what follows
      const { serve } = await import('./serve.ts');
      return async ({ env }) => void (process.exitCode = await serve(env));
    },
  },
  {
    synopsis: 'login',
    summary: 'exchange an API key for a session, which is kept in ~/.svc; the key is that of --api-key, SVC_CLI_API_KEY or the context, or else asked for',
    options: [{ flags: '--scope <scope>', meaning: 'ask for this scope only, not for all that the key holds', choices: SCOPES }],
    example: 'svc login --scope read',
    load: async () => (await import('./commands/login.ts')).run,
  },
  { synopsis: 'logout', summary: 'forget the session of this context; the API key stays good', example: 'svc logout --context prod', load: async () => (await import('./commands/logout.ts')).run },
  { synopsis: 'whoami', summary: 'show the session, without its secrets', example: 'svc whoami --output json', load: async () => (await import('./commands/whoami.ts')).run },
  {
    synopsis: 'context add <name> <url>',
    summary: 'name a gateway, or replace one of this name',
    options: [
      { flags: '--use', meaning: 'make it the one in use' },
      { flags: '--with-key', meaning: 'store an API key with it: --api-key, SVC_CLI_API_KEY, or asked for' },
    ],
    example: 'svc context add prod https://svc.example.com --use',
    load: async () => (await import('./commands/context.ts')).add,
  },
  { synopsis: 'context use <name>', summary: 'make a context the one in use; for once, --context or SVC_CLI_CONTEXT names another, --api-url or SVC_CLI_API_URL a gateway without one', example: 'svc context use prod', load: async () => (await import('./commands/context.ts')).use },
  { synopsis: 'context ls', summary: 'list contexts and their sessions', example: 'svc context ls', load: async () => (await import('./commands/context.ts')).ls },
  { synopsis: 'context rm <name>', summary: 'remove a context, its key and its session', example: 'svc context rm staging', load: async () => (await import('./commands/context.ts')).rm },
];

const OPERATIONS: readonly CommandRow[] = [
  {
    synopsis: 'check',
    summary: 'ask whether an agent may do something, as the agent itself where SVC_CLI_AGENT_TOKEN has its token; 3 is the exit status of a deny',
    options: [
      ...CHECKED,
      { flags: '--op <op_id>', meaning: '<trace_id>:<span_id>, instead of a fresh one' },
      { flags: '--dry-run', meaning: 'register no operation and reserve no money' },
      { flags: '--explain', meaning: 'show what decided; registers nothing either' },
    ],
    example: 'svc check --agent acme/ops/a1 --action tool.call --resource web_search',
    load: async () => (await import('./commands/check.ts')).run,
  },
  {
    synopsis: 'ops ls',
    summary: 'list operations in flight, and those that have ended lately',
    options: [{ flags: '--state <state>', meaning: 'only in this state', choices: OP_STATES }, ORG, TEAM, AGENT, LIMIT],
    example: 'svc ops ls --state running --org acme',
    load: async () => (await import('./commands/ops.ts')).ls,
  },
  { synopsis: 'ops show <op_id>', summary: 'show one operation', example: 'svc ops show 4bf92f:00f067', load: async () => (await import('./commands/ops.ts')).showOne },
  { synopsis: 'ops pause [op_id...]', summary: 'pause running operations', options: CHOSEN, example: 'svc ops pause 4bf92f:00f067', load: async () => (await import('./commands/ops-control.ts')).control('pause') },
  { synopsis: 'ops resume [op_id...]', summary: 'let paused operations run on', options: CHOSEN, example: 'svc ops resume 4bf92f:00f067', load: async () => (await import('./commands/ops-control.ts')).control('resume') },
  { synopsis: 'ops terminate [op_id...]', summary: 'end operations; their agents fail fast', options: CHOSEN, example: 'svc ops terminate --agent acme/search/crawler', load: async () => (await import('./commands/ops-control.ts')).control('terminate') },
  { synopsis: 'ops complete <op_id...>', summary: 'mark running operations as done', example: 'svc ops complete 4bf92f:00f067', load: async () => (await import('./commands/ops-control.ts')).control('complete') },
  { synopsis: 'ops watch', summary: 'watch operations change; a live table on a terminal, lines elsewhere', options: [ORG], example: 'svc ops watch --org acme', load: async () => (await import('./commands/watch.ts')).watch },
  { synopsis: 'agents ls', summary: 'list registered agents', options: [ORG, TEAM, AGENT, LIMIT], example: 'svc agents ls --org acme', load: async () => (await import('./commands/agents.ts')).ls },
  {
    synopsis: 'agents register <agent>',
    summary: 'register <org>/<team>/<agent>, or rotate its token; SVC_CLI_AGENT_TOKEN sets it',
    options: [{ flags: '--parent <agent>', meaning: 'the agent it is a sub-agent of' }],
    example: 'svc agents register acme/search/crawler',
    load: async () => (await import('./commands/agents.ts')).register,
  },
  { synopsis: 'agents rm <agent>', summary: 'remove an agent; its token is no longer good, and it hears no more signals by it', example: 'svc agents rm acme/search/crawler', load: async () => (await import('./commands/agents.ts')).rm },
];

const READING: readonly CommandRow[] = [
  {
    synopsis: 'logs',
    summary: 'read the audit log, the newest entries last',
    options: [{ flags: '-f, --follow', meaning: 'go on as entries are written' }, ...LOG_FILTERS, LIMIT],
    example: 'svc logs --follow --decision deny --since 1h',
    load: async () => (await import('./commands/logs.ts')).run,
  },
  {
    synopsis: 'topology [view]',
    summary: 'see orgs, teams and agents: overview (the default), tree or stats',
    options: [ORG, { flags: '--team <team>', meaning: 'this team, instead of a view' }, { flags: '--lineage <agent>', meaning: 'who this agent id descends from, and who from it' }, LIMIT],
    argumentWords: ['overview', 'tree', 'stats'],
    example: 'svc topology tree --org acme',
    load: async () => (await import('./commands/topology.ts')).run,
  },
  { synopsis: 'budgets', summary: 'see what was spent, is reserved, and may be spent', options: [ORG, LIMIT], example: 'svc budgets --org acme', load: async () => (await import('./commands/budgets.ts')).run },
];

const ADMINISTRATION: readonly CommandRow[] = [
  {
    synopsis: 'keys create <name>',
    summary: 'create an API key, which is shown once',
    options: [
      { flags: '--scope <scope...>', meaning: 'what it may do', choices: SCOPES, isRequired: true },
      { flags: '--org <org>', meaning: 'binds it to this org' },
      { flags: '--expires <time>', meaning: 'when it ends, such as 2027-01-31T12:00:00Z, or 90d from now' },
    ],
    example: 'svc keys create ci --scope read --scope write --org acme',
    load: async () => (await import('./commands/keys.ts')).create,
  },
  { synopsis: 'keys ls', summary: 'list API keys, newest first', options: [ORG, LIMIT], example: 'svc keys ls', load: async () => (await import('./commands/keys.ts')).ls },
  { synopsis: 'keys revoke <id>', summary: 'revoke an API key and every session made with it', example: 'svc keys revoke 4fYc81kQz0A', load: async () => (await import('./commands/keys.ts')).revoke },
  { synopsis: 'keys rotate-signing', summary: 'sign tokens with a new key; the one before still verifies', example: 'svc keys rotate-signing', load: async () => (await import('./commands/keys.ts')).rotateSigning },
  { synopsis: 'accounts ls', summary: 'list accounts', options: [LIMIT], example: 'svc accounts ls', load: async () => (await import('./commands/accounts.ts')).ls },
  { synopsis: 'accounts role <account> <role>', summary: 'give an account, by e-mail or id, another role', example: 'svc accounts role ann@example.com viewer', load: async () => (await import('./commands/accounts.ts')).role },
  { synopsis: 'accounts disable <account>', summary: 'disable an account and sign it out everywhere', example: 'svc accounts disable ann@example.com', load: async () => (await import('./commands/accounts.ts')).setDisabled('disable') },
  { synopsis: 'accounts enable <account>', summary: 'enable a disabled account', example: 'svc accounts enable ann@example.com', load: async () => (await import('./commands/accounts.ts')).setDisabled('enable') },
  {
    synopsis: 'accounts invite <email>',
    summary: 'invite somebody; the link is shown once',
    options: [{ flags: '--role <role>', meaning: 'developer if left out', choices: ROLES }, { flags: '--org <org>', meaning: 'binds the account to this org' }],
    example: 'svc accounts invite ann@example.com --role viewer',
    load: async () => (await import('./commands/accounts.ts')).invite,
  },
  { synopsis: 'accounts invites', summary: 'list invites that can still be accepted', options: [ORG, LIMIT], example: 'svc accounts invites', load: async () => (await import('./commands/accounts.ts')).invites },
  { synopsis: 'accounts uninvite <invite>', summary: 'revoke an invite, by e-mail or id', example: 'svc accounts uninvite ann@example.com', load: async () => (await import('./commands/accounts.ts')).uninvite },
  { synopsis: 'policy ls', summary: 'list the policies in force', options: [LIMIT], example: 'svc policy ls', load: async () => (await import('./commands/policy.ts')).ls },
  { synopsis: 'policy reload', summary: 'have the gateway read its policy files again', example: 'svc policy reload', load: async () => (await import('./commands/policy.ts')).reload },
  { synopsis: 'policy validate [path...]', summary: 'find every mistake in policy files, offline', example: 'svc policy validate ./policies', load: async () => (await import('./commands/policy-validate.ts')).run },
  {
    synopsis: 'policy test <file...>',
    summary: 'run the cases of *.test.yaml against policies, offline',
    options: [{ ...POLICIES, meaning: 'policies, instead of x.yaml beside x.test.yaml' }],
    example: 'svc policy test policies/search.test.yaml',
    load: async () => (await import('./commands/policy-test.ts')).run,
  },
  {
    synopsis: 'policy explain',
    summary: 'show which rules a check meets, and what each says, offline',
    options: [...CHECKED, POLICIES],
    example: 'svc policy explain --agent acme/search/a1 --action llm.call',
    load: async () => (await import('./commands/policy-explain.ts')).run,
  },
  {
    synopsis: 'audit verify [dir]',
    summary: 'walk the chain of a log, live or copied, and name the first broken entry',
    options: [{ flags: '--key <file>', meaning: 'check checkpoints with this key in PEM, not the one in the data directory' }],
    example: 'svc audit verify ./data',
    load: async () => (await import('./commands/audit.ts')).verify,
  },
  {
    synopsis: 'audit export',
    summary: 'export the log from the gateway, or offline from a folder',
    options: [
      { flags: '--format <format>', meaning: 'instead of ndjson', choices: ['ndjson', 'csv'] },
      { flags: '--file <file>', meaning: 'write there, instead of to standard output' },
      { flags: '--force', meaning: 'replace the file when it is there' },
      { flags: '--dir <dir>', meaning: 'read this data directory instead of the gateway' },
      ...LOG_FILTERS,
    ],
    example: 'svc audit export --org acme --since 7d --file acme.ndjson',
    load: async () => (await import('./commands/audit.ts')).exportLog,
  },
  {
    synopsis: 'completion <shell>',
    summary: 'print completions for bash, zsh or fish',
    argumentWords: ['bash', 'zsh', 'fish'],
    example: 'source <(svc completion bash)',
    load: async () => (await import('./commands/completion.ts')).run,
  },
];

export const COMMANDS: readonly CommandRow[] = [...SESSION, ...OPERATIONS, ...READING, ...ADMINISTRATION];
