/** The commands by which people step in: `svc halt`, `svc halts` and `svc approvals`. */
import { APPROVAL_STATES } from '../core/approvals/approval.ts';
import type { CommandRow, OptionRow } from './command-row.ts';
import { LIMIT, ORG } from './common-options.ts';

const HALTS: readonly CommandRow[] = [
  {
    synopsis: 'halt <scope>',
    summary: 'stop everything in global, org:…, team:…, agent:… or lineage:…, until released',
    options: [
      { flags: '--reason <text>', meaning: 'why; agents and operators see it', isRequired: true },
      { flags: '--pause', meaning: 'pause what runs instead of terminating it' },
      { flags: '--action <glob...>', meaning: 'only these actions' },
      { flags: '--expires <time>', meaning: 'when it ends by itself: a time, or 2h from now' },
      { flags: '--yes', meaning: 'halt global without confirmation' },
    ],
    example: 'svc halt org:acme --reason "leaked credential"',
    load: async () => (await import('./commands/halts.ts')).create,
  },
  {
    synopsis: 'halts ls',
    summary: 'list the halts in force',
    options: [{ flags: '--all', meaning: 'with those released' }, LIMIT],
    prints: 'list',
    example: 'svc halts ls',
    load: async () => (await import('./commands/halts.ts')).ls,
  },
  {
    synopsis: 'halts release <id>',
    summary: 'release a halt; operations it had paused run again; the beginning of its id is enough',
    options: [{ flags: '--reason <text>', meaning: 'why', isRequired: true }],
    example: 'svc halts release 0b0c2a51 --reason "rotated"',
    load: async () => (await import('./commands/halts.ts')).release,
  },
];

const REASON: OptionRow = { flags: '--reason <text>', meaning: 'why; the agent reads it', isRequired: true };

const APPROVALS: readonly CommandRow[] = [
  {
    synopsis: 'approvals ls',
    summary: 'list the requests that wait for a decision',
    options: [
      { flags: '--state <state>', meaning: 'those in this state instead', choices: APPROVAL_STATES },
      { flags: '--all', meaning: 'those in every state' },
      ORG,
      LIMIT,
    ],
    prints: 'list',
    example: 'svc approvals ls',
    load: async () => (await import('./commands/approvals.ts')).ls,
  },
  {
    synopsis: 'approvals show <id>',
    summary: 'show a request with its arguments; the beginning of its id is enough',
    example: 'svc approvals show 0b0c2a51',
    load: async () => (await import('./commands/approvals.ts')).showOne,
  },
  {
    synopsis: 'approvals approve <id>',
    summary: 'approve exactly what is asked for',
    options: [REASON],
    example: 'svc approvals approve 0b0c2a51 --reason "agreed with ops"',
    load: async () => (await import('./commands/approvals.ts')).decide('approve'),
  },
  {
    synopsis: 'approvals deny <id>',
    summary: 'deny it; the operation that waits is terminated',
    options: [REASON],
    example: 'svc approvals deny 0b0c2a51 --reason "not on a Friday"',
    load: async () => (await import('./commands/approvals.ts')).decide('deny'),
  },
  {
    synopsis: 'approvals watch',
    summary: 'show requests as they come, and decide them by keys on a terminal',
    options: [ORG],
    example: 'svc approvals watch',
    load: async () => (await import('./commands/approvals.ts')).watch,
  },
];

export const INTERVENTIONS: readonly CommandRow[] = [...HALTS, ...APPROVALS];
