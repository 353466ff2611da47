/** The commands of `svc` that start the gateway, and that say how it is. */
import type { CommandRow, OptionRow } from './command-row.ts';
import { refuseOldNode } from './old-node.ts';
import { ensureYoungGeneration } from './young-generation.ts';

const LOAD: readonly OptionRow[] = [
  { flags: '--rate <checks>', meaning: 'checks a second (default: 1000)' },
  { flags: '--duration <time>', meaning: 'such as 60s or 10m (default: 10s)' },
  { flags: '--protocol <protocol>', meaning: 'how to ask', choices: ['connect', 'grpc', 'stream'] },
  { flags: '--connections <count>', meaning: 'default: 64, or 4 over gRPC' },
  { flags: '--agents <count>', meaning: 'registered for the load, and removed (default: 10)' },
  { flags: '--org <org>', meaning: 'of the agents (default: svc-load)' },
  { flags: '--action <action>', meaning: 'what is checked (default: tool.call)' },
  { flags: '--resource <resource>', meaning: 'and on what (default: web_search)' },
  { flags: '--grpc <host:port>', meaning: 'the gRPC address (default: SVC_GATEWAY_GRPC, or port 50051)' },
  { flags: '--html <file>', meaning: 'write a report with pictures' },
  { flags: '--p99 <time>', meaning: 'exit with 1 if more than 1 % wait longer, such as 5ms' },
  { flags: '--errors <count>', meaning: 'exit with 1 if more checks fail' },
];

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
    prints: 'list',
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
  {
    synopsis: 'load',
    summary: 'measure how long agents wait at a given rate, each from when its check was due',
    options: LOAD,
    example: 'svc load --rate 5000 --duration 60s --p99 5ms --html report.html',
    load: async () => (await import('./commands/load.ts')).run,
  },
];
