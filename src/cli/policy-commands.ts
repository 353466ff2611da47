import type { CommandRow, OptionRow } from './command-row.ts';
import { CHECKED, LIMIT } from './common-options.ts';

const POLICIES: OptionRow = {
  flags: '--policies <path...>',
  meaning: 'policy files or folders (default: SVC_POLICY_PATH)',
};

const HALTS: OptionRow = {
  flags: '--halts <file>',
  meaning: 'as if these halts were in force: a list `halts`, such as of `svc halts ls -o yaml`',
};

/** `svc policy …`, in the order of its help. */
export const POLICY_COMMANDS: readonly CommandRow[] = [
  {
    synopsis: 'policy ls',
    summary: 'list the policies in force',
    options: [LIMIT],
    prints: 'list',
    example: 'svc policy ls',
    load: async () => (await import('./commands/policy.ts')).ls,
  },
  {
    synopsis: 'policy rules [policy]',
    summary: 'list the rules in force, in their order',
    options: [LIMIT],
    prints: 'list',
    example: 'svc policy rules search-team',
    load: async () => (await import('./commands/policy.ts')).rules,
  },
  {
    synopsis: 'policy reload',
    summary: 'reload the policy files of the gateway',
    example: 'svc policy reload',
    load: async () => (await import('./commands/policy.ts')).reload,
  },
  {
    synopsis: 'policy publish [path...]',
    summary: 'put policy files in force at all gateways of a cluster',
    options: [{ flags: '--set <version>', meaning: 'instead of files, a set that was published before' }],
    example: 'svc policy publish ./policies',
    load: async () => (await import('./commands/policy.ts')).publish,
  },
  {
    synopsis: 'policy history',
    summary: 'list the sets that were in force',
    options: [LIMIT],
    prints: 'list',
    example: 'svc policy history',
    load: async () => (await import('./commands/policy-life.ts')).history,
  },
  {
    synopsis: 'policy diff <from> <to>',
    summary: 'compare versions or folders, rule by rule; exit status 1 if they differ',
    example: 'svc policy diff 0f1e2d3c4b5a6978 ./policies',
    load: async () => (await import('./commands/policy-life.ts')).diff,
  },
  {
    synopsis: 'policy show <version>',
    summary: 'print the files of a set once in force',
    options: [{ flags: '--out <dir>', meaning: 'write them into this folder instead' }],
    example: 'svc policy show 0f1e2d3c4b5a6978 --out before',
    load: async () => (await import('./commands/policy-life.ts')).showVersion,
  },
  {
    synopsis: 'policy shadow <start|status|stop> [path...]',
    summary: 'ask a second set of policies on every check; it decides nothing',
    options: [{ flags: '--for <duration>', meaning: 'until it ends by itself, up to 30d (default: 7d)' }],
    argumentWords: ['start', 'status', 'stop'],
    prints: 'list',
    example: 'svc policy shadow start ./policies --for 7d',
    load: async () => (await import('./commands/policy-shadow.ts')).run,
  },
  {
    synopsis: 'policy replay <set>',
    summary: 'decide recorded checks again, by a file, a folder or a version',
    options: [
      { flags: '--dir <dir>', meaning: 'read this data directory instead of the gateway' },
      { flags: '--org <org>', meaning: 'only this org' },
      { flags: '--agent <agent>', meaning: 'only this agent: its id, or <org>/<team>/<agent>' },
      { flags: '--since <time>', meaning: 'from this time on (UTC unless it has a zone), or 7d ago' },
      { flags: '--until <time>', meaning: 'before this time' },
      { flags: '--fail-on-change', meaning: 'exit status 1 if any is decided otherwise' },
    ],
    prints: 'list',
    example: 'svc policy replay ./policies --since 7d',
    load: async () => (await import('./commands/policy-replay.ts')).run,
  },
  {
    synopsis: 'policy suggest',
    summary: 'suggest rules for what was denied for want of one',
    options: [
      { flags: '--from <denials|shadow>', meaning: 'what was denied, or what the shadow would deny' },
      { flags: '--dir <dir>', meaning: 'read this data directory instead of the gateway' },
      { flags: '--org <org>', meaning: 'only this org' },
      { flags: '--since <time>', meaning: 'from this time on (UTC unless it has a zone), or 7d ago' },
      { flags: '--out <dir>', meaning: 'write a policy and its test into this folder' },
    ],
    example: 'svc policy suggest --from shadow --out suggested',
    load: async () => (await import('./commands/policy-suggest.ts')).run,
  },
  {
    synopsis: 'policy validate [path...]',
    summary: 'find every mistake in policy files, offline',
    example: 'svc policy validate ./policies',
    load: async () => (await import('./commands/policy.ts')).run,
  },
  {
    synopsis: 'policy test <file...>',
    summary: 'run the cases of *.test.yaml against policies, offline',
    options: [{ ...POLICIES, meaning: 'policies (default: x.yaml next to x.test.yaml)' }, HALTS],
    example: 'svc policy test policies/search.test.yaml',
    load: async () => (await import('./commands/policy-test.ts')).run,
  },
  {
    synopsis: 'policy explain',
    summary: 'show which rules apply to a check, and their results, offline',
    options: [...CHECKED, POLICIES, HALTS],
    example: 'svc policy explain --agent acme/search/a1 --action llm.call',
    load: async () => (await import('./commands/check.ts')).explain,
  },
];
