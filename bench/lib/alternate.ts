/** This commit and another one, measured in turn, so that a mood of the machine meets both. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { buildAside, linkWith } from './aside.ts';
import { endingOf, scratchFolder } from './ending.ts';
import { isBrief } from './options.ts';
import { type Figure, heading, median, shown } from './report.ts';

const ROUNDS = isBrief ? 1 : 3;

/** How a benchmark meets the other commit's code: linked with its sources, or by starting its gateway. */
const MEETS: Readonly<Record<string, 'sources' | 'gateway'>> = {
  governor: 'sources',
  'policy-decide': 'sources',
  connect: 'gateway',
  doors: 'gateway',
  everyday: 'gateway',
  grpc: 'gateway',
  'http-api': 'gateway',
  steady: 'gateway',
};

export const ALTERNATING = Object.keys(MEETS);

type Side = { readonly root: string; readonly file: string };

export async function alternate(bench: string, commit: string): Promise<void> {
  const other = buildAside(commit);
  const side = async (root: string): Promise<Side> => ({
    root,
    file: MEETS[bench] === 'sources' ? await linkWith(root, bench) : join(PACKAGE_ROOT, 'dist', 'bench', `${bench}.js`),
  });
  const sides = [await side(PACKAGE_ROOT), await side(other)] as const;
  const rounds: (readonly [readonly Figure[], readonly Figure[]])[] = [];
  for (let round = 0; round < ROUNDS; round += 1) rounds.push([await measured(sides[0]), await measured(sides[1])]);
  heading(`${bench}: this commit, ${commit}, and the ratio of each round`);
  for (const { name, unit } of rounds[0]?.[0] ?? []) {
    const [ours, theirs] = [0, 1].map((at) => rounds.map((round) => figureOf(round[at as 0 | 1], name)));
    if (ours === undefined || theirs === undefined || theirs.some((figure) => Number.isNaN(figure))) continue;
    const ratios = ours.map((figure, round) => figure / (theirs[round] ?? Number.NaN));
    console.log(
      `  ${name.padEnd(52)} ${shown(median(ours)).padStart(11)} ${shown(median(theirs)).padStart(11)} ${unit.padEnd(9)} ${[Math.min(...ratios), median(ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(2)).join(' / ')}`,
    );
  }
}

const figureOf = (figures: readonly Figure[] | undefined, name: string): number =>
  figures?.find((figure) => figure.name === name)?.figure ?? Number.NaN;

async function measured({ root, file }: Side): Promise<readonly Figure[]> {
  const figures = join(scratchFolder(), 'figures.json');
  const child = spawn(process.execPath, ['--expose-gc', file, ...(isBrief ? ['--brief'] : [])], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, BENCH_FIGURES: figures, BENCH_GATEWAY: root },
  });
  endingOf(child);
  const [status] = (await once(child, 'exit')) as [number | null];
  if (status !== 0) throw new Error(`${file} ended with ${status}`);
  return JSON.parse(readFileSync(figures, 'utf8')) as readonly Figure[];
}
