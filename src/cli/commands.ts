/** All commands of `svc`. */
import type { CommandRow, GroupRow } from './command-row.ts';

export const GROUPS: readonly GroupRow[] = [
  { name: 'serve', summary: 'start the gateway' },
  { name: 'login', summary: 'exchange an API key for a session' },
  { name: 'logout', summary: 'forget the session' },
  { name: 'whoami', summary: 'show the session' },
  { name: 'context', summary: 'name gateways and switch between them' },
];

export const COMMANDS: readonly CommandRow[] = [
  {
    synopsis: 'serve',
    summary: 'start the gateway; SVC_* variables configure it',
    example: 'SVC_DATA_DIR=./data svc serve',
    load: async () => {
      const { serve } = await import('./serve.ts');
      return async ({ env }) => void (process.exitCode = await serve(env));
    },
  },
  {
    synopsis: 'login',
    summary: 'exchange an API key for a session, which is kept in ~/.svc',
    options: [{ flags: '--scope <scope>', meaning: 'ask for this scope only, not for all that the key holds', choices: ['read', 'write', 'admin'] }],
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
  { synopsis: 'context use <name>', summary: 'make a context the one in use', example: 'svc context use prod', load: async () => (await import('./commands/context.ts')).use },
  { synopsis: 'context ls', summary: 'list contexts and their sessions', example: 'svc context ls', load: async () => (await import('./commands/context.ts')).ls },
  { synopsis: 'context rm <name>', summary: 'remove a context, its key and its session', example: 'svc context rm staging', load: async () => (await import('./commands/context.ts')).rm },
];
