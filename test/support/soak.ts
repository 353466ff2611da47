/** Helpers that all soaks share: how much is to be done, and where their figures go. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { machine } from '../../bench/lib/machine.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

/** The folder of `npm run docs:reliability`, which writes the figures into docs/reliability.md. */
const FOLDER = join(PACKAGE_ROOT, 'artifacts', 'soak');

/** How much of each soak is done: all of it, unless the shell says less, such as SOAK_SHARE=0.01. */
const SHARE = Number(process.env.SOAK_SHARE ?? 1);

export type Soak = {
  /** Random numbers of this run come from it; SOAK_SEED repeats a run. */
  readonly seed: number;
  /** The share of this many, or of this long, that is to be done; at least one. */
  of(whole: number): number;
  /** Saves the figures, in their order; a figure has its unit with it. */
  done(figures: Readonly<Record<string, string | number>>): void;
};

/** A soak has the name of its file in test/soak/, and a place of that name in docs/reliability.md. */
export function startSoak(name: string): Soak {
  const startMs = performance.now();
  const seed = Number(process.env.SOAK_SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`soak ${name}: SOAK_SEED=${seed}`);
  return {
    seed,
    of: (whole) => Math.max(1, Math.ceil(whole * SHARE)),
    done: (figures) => {
      mkdirSync(FOLDER, { recursive: true });
      const run = {
        name,
        date: new Date().toISOString().slice(0, 10),
        machine: machine(),
        secs: Math.round((performance.now() - startMs) / 1_000),
        share: SHARE,
        seed,
        figures,
      };
      writeFileSync(join(FOLDER, `${name}.json`), `${JSON.stringify(run, null, 2)}\n`);
      console.log(figures);
    },
  };
}
