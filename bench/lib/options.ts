/** The words behind a benchmark on the command line. */
import { basename } from 'node:path';

const USAGE = `usage: node dist/bench/<name>.js [--brief | --write]
       npm run bench -- [--brief | --write]   runs all of them, one after the other

  --brief   runs each part for a moment, to see that it still works; the figures mean nothing
  --write   also writes what it measures into docs/performance.md and the README, where they have a place for it

audit-query also takes the number of entries; stream takes those of dashboards, of transitions a second, and of seconds.
The files of a run are in the folder for temporary files (TMPDIR), and removed at its end.
`;

const words = process.argv.slice(2);

/** `--brief` runs each part for a moment, to see that it still works; its figures mean nothing. */
export const isBrief = words.includes('--brief');

/** `--write` writes what is measured into docs/performance.md; what is brief is no measurement. */
export const isWriting = words.includes('--write') && !isBrief;

/** The numbers among the words, in their order. */
export const numbers: readonly number[] = words.map(Number).filter(Number.isFinite);

/** How many numbers a benchmark takes. */
const TAKES: ReadonlyMap<string, number> = new Map([
  ['audit-query.js', 1],
  ['stream.js', 3],
]);
const tooMany = words.filter((word) => Number.isFinite(Number(word)))[TAKES.get(basename(process.argv[1] ?? '')) ?? 0];

/** A process that a benchmark has forked has words that nobody has typed. */
const isForked = process.send !== undefined;
const unknown =
  words.find(
    (word) =>
      !['--brief', '--write', '--help', '-h'].includes(word) && !(/^\d+(\.\d+)?$/.test(word) && Number(word) > 0),
  ) ?? tooMany;
if (words.includes('--help') || words.includes('-h')) {
  process.stdout.write(USAGE);
  process.exit(0);
}
if (unknown !== undefined && !isForked) {
  process.stderr.write(`this benchmark knows no ${JSON.stringify(unknown)}\n\n${USAGE}`);
  process.exit(2);
}
