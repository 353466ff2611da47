/** The words behind a benchmark on the command line. */
const USAGE = `usage: node dist/bench/<name>.js [--brief]
       npm run bench -- [--brief]   runs all of them, one after the other

  --brief   runs each part for a moment, to see that it still works; the figures mean nothing

audit-query also takes the number of entries; stream takes those of dashboards, of transitions a second, and of seconds.
The files of a run are in the folder for temporary files (TMPDIR), and removed at its end.
`;

const words = process.argv.slice(2);

/** `--brief` runs each part for a moment, to see that it still works; its figures mean nothing. */
export const isBrief = words.includes('--brief');

/** The numbers among the words, in their order. */
export const numbers: readonly number[] = words.map(Number).filter(Number.isFinite);

/** A process that a benchmark has forked has words that nobody has typed. */
const isForked = process.send !== undefined;
const unknown = words.find((word) => !['--brief', '--help', '-h'].includes(word) && !/^\d+(\.\d+)?$/.test(word));
if (words.includes('--help') || words.includes('-h')) {
  process.stdout.write(USAGE);
  process.exit(0);
}
if (unknown !== undefined && !isForked) {
  process.stderr.write(`a benchmark knows no ${JSON.stringify(unknown)}\n\n${USAGE}`);
  process.exit(2);
}
