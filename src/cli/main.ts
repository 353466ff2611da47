#!/usr/bin/env node
/** The `svc` command: `svc serve` is the gateway, everything else is its client. */
import { constants } from 'node:os';
import { codeOf } from '../core/base/text.ts';
import { CliError, EXIT, renderError } from './errors.ts';
import { runCommandLine } from './run.ts';
import { isReaderNeeded } from './terminal/output.ts';

// The reader of a pipe may stop early, as `head` does: that is no error.
process.stdout.on('error', (error) => {
  if (codeOf(error) === 'EPIPE') return isReaderNeeded() ? process.exit() : undefined;
  process.stderr.write(
    renderError(
      new CliError(`the output cannot be written: ${error.message}`, 'Check where the output goes.', { cause: error }),
      process.argv.includes('--debug'),
    ),
  );
  process.exit(EXIT.failed);
});
process.stderr.on('error', (error) => {
  if (codeOf(error) !== 'EPIPE') process.exit(EXIT.failed); // there is nowhere left to report it
});

// For process 1, as in a container, signals that nobody handles do nothing: also until `serve` has been loaded.
if (process.pid === 1) {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
    });
  }
}

const status = await runCommandLine(process.argv.slice(2), process.env);
if (status !== undefined) process.exitCode = status;
