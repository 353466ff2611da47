/** `--jq`: what a filter of jq makes of JSON, by jq itself, compiled to WebAssembly. */
import { CliError, usageError } from '../errors.ts';
import { printableLines } from './printable.ts';

/** Each value is a line, and texts are without quotes. What follows is the filter, even one that begins with a dash. */
const FLAGS = ['--raw-output', '--compact-output', '--'];
/** The exit status of jq for a filter that it cannot read. */
const WRONG_FILTER = 3;

/** Throws a usage error where jq cannot read the filter. */
export async function refuseWrongFilter(filter: string): Promise<void> {
  const { exitCode, stderr } = await jq('', filter); // without input it only reads the filter
  if (exitCode === WRONG_FILTER)
    throw usageError(`--jq: ${oneLine(stderr)}`, 'Filters are those of jq, such as .ops[].op_id');
}

/** Throws where the filter fails on this value, as `.a` does on a number. */
export async function filtered(value: unknown, filter: string): Promise<string> {
  const { stdout, stderr, exitCode } = await jq(JSON.stringify(value), filter);
  if (exitCode !== 0)
    throw new CliError(
      `--jq: ${oneLine(stderr)}`,
      'What the command does has been done, but not its whole answer was printed. See its JSON with -o json.',
    );
  if (stderr !== '') process.stderr.write(`${printable(stderr)}\n`); // of `debug`
  return stdout === '' ? '' : `${printable(stdout)}\n`;
}

async function jq(input: string, filter: string) {
  const { raw } = await import('jq-wasm');
  return raw(input, filter, FLAGS);
}

/** Tabs are of the filter, as of `@tsv`. */
const printable = (text: string): string => text.split('\t').map(printableLines).join('\t');

/** `jq: error: syntax error, …`, without the picture of the place. */
const oneLine = (stderr: string): string => (stderr.split('\n')[0] ?? '').replace(/^jq: error(?: \(at [^)]*\))?: /, '');
