#!/usr/bin/env node
/** The `svc` command: `svc serve` is the gateway, everything else is its client. */
import { COMMANDS, GROUPS } from './commands.ts';
import { codeOf, CliError, renderError } from './errors.ts';
import { parseCommandLine } from './program.ts';

// Whoever reads along may have had enough, as `head` does: that is no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error) => {
    if (codeOf(error) !== 'EPIPE') throw error;
    process.exit();
  });
}

const parsed = await parseCommandLine(COMMANDS, GROUPS, process.argv.slice(2));
if (parsed.kind === 'over') {
  process.exitCode = parsed.status;
} else {
  const { run, args, options, globals } = parsed.chosen;
  try {
    const status = await run({ args, options, globals, env: process.env });
    if (status !== undefined) process.exitCode = status;
  } catch (error) {
    process.stderr.write(renderError(error, globals.debug === true));
    process.exitCode = error instanceof CliError ? error.status : 1;
  }
}
