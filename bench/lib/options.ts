/** The words behind a benchmark on the command line. */
import { basename } from 'node:path';

const USAGE = `usage: node dist/bench/<name>.js [--brief | --write]
       npm run bench -- [<name> …] [--brief | --write]        runs all of them, or those named, one after the other
       npm run bench -- [<name> …] --against <commit>         builds that commit aside, and measures both in turn

  --brief     runs each part for a moment, to see that it still works; the figures mean nothing
  --write     also writes what it measures into docs/performance.md and the README, where they have a place for it
  --against   governor (the default), policy-decide, connect, doors, everyday, grpc, http-api and steady: their
              workloads are those of this commit, decided by the code of both

audit-query and replay also take the number of entries; stream takes those of dashboards, of transitions a second, and of seconds.
The files of a run are in the folder for temporary files (TMPDIR), and removed at its end.
`;

const words = process.argv.slice(2);

/** `--brief` runs each part for a moment, to see that it still works; its figures mean nothing. */
export const isBrief = words.includes('--brief');

/** `--write` writes what is measured into docs/performance.md; what is brief is no measurement. */
export const isWriting = words.includes('--write') && !isBrief;

/** `--against <commit>` measures another commit in turn with this one. */
export const against: string | undefined = words.includes('--against')
  ? words[words.indexOf('--against') + 1]
  : undefined;

/** The benchmarks that are named, for `npm run bench`. */
export const names: readonly string[] = words.filter((word) => /^[a-z][a-z-]*$/.test(word) && word !== against);

const isRunner = basename(process.argv[1] ?? '') === 'all.js';

/** The numbers among the words, in their order. */
export const numbers: readonly number[] = words.map(Number).filter(Number.isFinite);

/** How many numbers a benchmark takes. */
const TAKES: ReadonlyMap<string, number> = new Map([
  ['audit-query.js', 1],
  ['replay.js', 1],
  ['stream.js', 3],
]);
const tooMany = words.filter((word) => Number.isFinite(Number(word)))[TAKES.get(basename(process.argv[1] ?? '')) ?? 0];

/** A process that a benchmark has forked has words that nobody has typed. */
const isForked = process.send !== undefined;
const unknown =
  words.find(
    (word) =>
      !['--brief', '--write', '--help', '-h'].includes(word) &&
      !(isRunner && (word === '--against' || word === against || names.includes(word))) &&
      !(/^\d+(\.\d+)?$/.test(word) && Number(word) > 0),
  ) ?? tooMany;
if (words.includes('--help') || words.includes('-h')) {
  process.stdout.write(USAGE);
  process.exit(0);
}
if (unknown !== undefined && !isForked) {
  process.stderr.write(`this benchmark knows no ${JSON.stringify(unknown)}\n\n${USAGE}`);
  process.exit(2);
}
