/** The commands of `svc` about the gateway to talk to, and the session there. */
import { SCOPES } from '../core/identity/roles.ts';
import type { CommandRow } from './command-row.ts';
import { GATEWAY_COMMANDS } from './gateway-commands.ts';

export const SESSION_COMMANDS: readonly CommandRow[] = [
  ...GATEWAY_COMMANDS,
  {
    synopsis: 'login',
    summary:
      'exchange an API key for a session, stored in ~/.svc; the key comes from --api-key, SVC_CLI_API_KEY or the context, otherwise from a prompt',
    options: [
      { flags: '--scope <scope>', meaning: 'request only this scope, not all that the key has', choices: SCOPES },
    ],
    example: 'svc login --scope read',
    load: async () => (await import('./commands/login.ts')).run,
  },
  {
    synopsis: 'logout',
    summary: 'delete the session of this context; the API key stays valid',
    example: 'svc logout --context prod',
    load: async () => (await import('./commands/login.ts')).logout,
  },
  {
    synopsis: 'whoami',
    summary: 'show the session, without its secrets',
    example: 'svc whoami --output json',
    load: async () => (await import('./commands/context.ts')).run,
  },
  {
    synopsis: 'context add <name> <url>',
    summary: 'add or replace a named gateway',
    options: [
      { flags: '--use', meaning: 'switch to it' },
      { flags: '--with-key', meaning: 'store an API key with it: --api-key, SVC_CLI_API_KEY, or prompt' },
    ],
    example: 'svc context add prod https://svc.example.com --use',
    load: async () => (await import('./commands/context.ts')).add,
  },
  {
    synopsis: 'context use <name>',
    summary:
      'switch to a context; --context or SVC_CLI_CONTEXT overrides it for one command, --api-url or SVC_CLI_API_URL names a gateway without one',
    example: 'svc context use prod',
    load: async () => (await import('./commands/context.ts')).use,
  },
  {
    synopsis: 'context ls',
    summary: 'list contexts and their sessions',
    prints: 'list',
    example: 'svc context ls',
    load: async () => (await import('./commands/context.ts')).ls,
  },
  {
    synopsis: 'context rm <name>',
    summary: 'remove a context, its key and its session',
    example: 'svc context rm staging',
    load: async () => (await import('./commands/context.ts')).rm,
  },
];
