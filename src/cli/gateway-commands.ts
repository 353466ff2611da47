/** The commands of `svc` that start the gateway, and that say how it is. */
import type { CommandRow } from './command-row.ts';
import { refuseOldNode } from './old-node.ts';
import { ensureYoungGeneration } from './young-generation.ts';

export const GATEWAY_COMMANDS: readonly CommandRow[] = [
  {
    synopsis: 'status',
    summary: 'show how the gateway is; exits with 1 if something needs attention',
    example: 'svc status',
    load: async () => (await import('./commands/status.ts')).status,
  },
  {
    synopsis: 'serve',
    summary: 'start the gateway; SVC_* variables configure it',
    options: [
      {
        flags: '--check',
        meaning: 'only read the settings and the files that they name; exits with 1 if one is wrong',
      },
      { flags: '--print-config', meaning: 'only show every setting, secrets masked' },
    ],
    example: 'SVC_DATA_DIR=./data svc serve',
    load: async () => {
      refuseOldNode(); // which could not even read what follows
      return async (invocation) => {
        const { options, env } = invocation;
        if (options.isSet('check')) return (await import('./commands/serve-check.ts')).check(invocation);
        if (options.isSet('printConfig')) return (await import('./commands/serve-check.ts')).printConfig(invocation);
        ensureYoungGeneration();
        process.exitCode = await (await import('./serve.ts')).serve(env);
      };
    },
  },
];
