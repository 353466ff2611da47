/** The log without one of its rules, to show that the simulation finds each that is left out. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { HeadRule } from '../../support/model-log.ts';
import type { Code } from './world.ts';

const SOURCES = resolve(import.meta.dirname, '../../../src/cluster');
const FILES = ['log.ts', 'log-ring.ts', 'applied.ts'] as const;

/** `without`: a rule of the head; else a place in the code of a gateway, and what is there instead. */
export type Mutant = { readonly rule: string } & (
  | { readonly without: HeadRule }
  | { readonly file: (typeof FILES)[number]; readonly code: string; readonly instead: string }
);

const HEAD: readonly HeadRule[] = [
  'enters a nonce once',
  'puts nothing older in the place of newer',
  'judges by versions',
  'judges a group as a whole',
  'gives a credential to one agent',
  'notices what it has lost',
  'notices a gap',
];

export const MUTANTS: readonly Mutant[] = [
  ...HEAD.map((without) => ({ rule: without, without })),
  {
    rule: 'applies nothing before it came back',
    file: 'log.ts',
    code: 'this.#queue.push(queued);',
    instead: `this.#queue.push(queued);
      for (const entry of proposal.entries) this.#options.follower.apply(entry, { ...this.#place, entries: [] } as never, true);`,
  },
  {
    rule: 'sends an append again under its nonce',
    file: 'log.ts',
    code: 'store.append(batch.nonce, this.#place, groups)',
    instead: 'store.append(randomUUID(), this.#place, groups)',
  },
  {
    rule: 'applies no row twice, and leaves none out',
    file: 'log.ts',
    code: 'if (row.seq !== this.#place.seq + 1) return;',
    instead: 'if (row.seq % 5 === 0) this.#place = placeOf(row);\n    if (row.seq !== this.#place.seq + 1) return;',
  },
  {
    rule: 'offers again what a server has lost',
    file: 'log.ts',
    code: 'for (const { nonce, entries, atMs } of lost) {',
    instead: 'for (const { nonce, entries, atMs } of lost.slice(1)) {',
  },
  {
    rule: 'offers what is as old as it was first',
    file: 'log.ts',
    code: 'at: at ?? atMs });',
    instead: 'at: atMs });',
  },
  {
    rule: 'offers the last word of an id',
    file: 'log.ts',
    code: 'const latest = new Map(entries.map((entry) => [keyOf(entry), entry]));',
    instead: 'const latest = new Map(entries.toReversed().map((entry) => [keyOf(entry), entry]));',
  },
  {
    rule: 'reads the state of a server that has lost something',
    file: 'log.ts',
    code: 'const act = this.#options.follower.restore(whole);',
    instead: 'const act = undefined;',
  },
  {
    rule: 'keeps what it may have to offer',
    file: 'log-ring.ts',
    code: 'const KEPT_MS = 5 * 60_000;',
    instead: 'const KEPT_MS = 100;',
  },
  {
    rule: 'says that it acts once all of it does',
    file: 'log.ts',
    code: 'isDone: acting.length === 0',
    instead: 'isDone: true',
  },
  {
    rule: 'acts until it is done',
    file: 'log.ts',
    code: 'if (await act()) return;',
    instead: 'await act();\n        return;',
  },
  {
    rule: 'names who does not act by it',
    file: 'applied.ts',
    code: 'return missing.map(({ name }) => name);',
    instead: 'return missing.slice(1).map(({ name }) => name);',
  },
  {
    rule: 'waits for itself',
    file: 'applied.ts',
    code: 'const lacking = concerned.filter(({ run }) => this.#lacks(run, seq));',
    instead: 'const lacking = concerned.filter(({ run }) => run !== this.#options.self && this.#lacks(run, seq));',
  },
  {
    rule: 'names who was replaced and may go on',
    file: 'applied.ts',
    code: "state !== 'suspect' || onOutage === 'serve'",
    instead: "state === 'live' || (state === 'suspect' && onOutage === 'serve')",
  },
  {
    rule: 'believes places of the same log only',
    file: 'applied.ts',
    code: 'if (!isSame || place.seq',
    instead: 'if (place.seq',
  },
  {
    rule: 'forgets places of a server that was lost',
    file: 'applied.ts',
    code: 'this.#acted.clear();',
    instead: '',
  },
  {
    rule: 'waits for what it entered where it was offered again',
    file: 'applied.ts',
    code: 'for (const each of waiting) each.seq = seq;',
    instead: 'for (const each of waiting) each.seq = Math.min(each.seq, seq);',
  },
];

/** The classes with the rule left out. */
export async function codeOf(mutant: Mutant): Promise<Code> {
  const folder = mkdtempSync(join(import.meta.dirname, 'mutant-'));
  try {
    for (const file of FILES) {
      const source = readFileSync(join(SOURCES, file), 'utf8').replaceAll(/from '\.\.\//g, "from '../../../../src/");
      if (!('file' in mutant) || mutant.file !== file) {
        writeFileSync(join(folder, file), source);
        continue;
      }
      if (source.split(mutant.code).length !== 2) throw new Error(`${file} does not have once: ${mutant.code}`);
      writeFileSync(
        join(folder, file),
        source.replace(mutant.code, () => mutant.instead),
      );
    }
    const [{ SharedLog }, { AppliedEverywhere }] = await Promise.all([
      import(/* @vite-ignore */ join(folder, 'log.ts')),
      import(/* @vite-ignore */ join(folder, 'applied.ts')),
    ]);
    return { SharedLog, AppliedEverywhere };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
