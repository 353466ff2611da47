/** Runs a command line from its words to its exit status, in the streams of the process. */
import { COMMANDS, GROUPS, HIDDEN_COMMANDS } from './commands.ts';
import { CliError, EXIT, renderError } from './errors.ts';
import { parseCommandLine } from './program.ts';

/** Failures are reported on standard error. Undefined where the command sets the status itself, or all went well. */
export async function runCommandLine(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number | undefined> {
  try {
    const parsed = await parseCommandLine([...COMMANDS, ...HIDDEN_COMMANDS], GROUPS, argv);
    if (parsed.kind === 'over') return parsed.status;
    const { output } = parsed.invocation.globals;
    // Before anything is done: a mistyped filter must not swallow the only showing of a new key.
    if (typeof output === 'object') await (await import('./terminal/jq.ts')).refuseWrongFilter(output.jq);
    return (await parsed.run({ ...parsed.invocation, env })) ?? undefined;
  } catch (error) {
    process.stderr.write(renderError(error, argv.includes('--debug')));
    return error instanceof CliError ? error.status : EXIT.failed;
  }
}
