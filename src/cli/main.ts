#!/usr/bin/env node
/** The `svc` command: `svc serve` is the gateway, everything else is its client. */
import { Command } from 'commander';

const program = new Command('svc').description('Policy gateway for software agents, and its command line client').showHelpAfterError();

program
  .command('serve')
  .description('start the gateway')
  .action(async () => {
    const { serve } = await import('./serve.ts');
    process.exitCode = await serve(process.env);
  });

await program.parseAsync();
