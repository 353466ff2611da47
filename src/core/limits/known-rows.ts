import type { LimitPer } from './limit.ts';

/** The rows in which an agent's checks are counted, by the places of limits: found once, and not with each check. */
export class KnownRows {
  readonly #limits: readonly unknown[];
  readonly #generation: number;
  readonly #rows: Int32Array;
  readonly keys: string[] = [];

  /** Holds for these limits, until any row is forgotten: then the generation is another one. */
  constructor(limits: readonly unknown[], generation: number) {
    this.#limits = limits;
    this.#generation = generation;
    this.#rows = new Int32Array(limits.length).fill(-1);
  }

  isOf(limits: readonly unknown[], generation: number): boolean {
    return this.#limits === limits && this.#generation === generation;
  }

  /** -1: it is not known. */
  rowOf(nth: number): number {
    return this.#rows[nth]!;
  }

  set(nth: number, key: string, row: number): void {
    this.#rows[nth] = row;
    this.keys[nth] = key;
  }
}

/** Whose use is the agent's for as long as it is registered. */
export const LASTING_PERS: ReadonlySet<LimitPer> = new Set(['agent', 'team', 'org']);

/** Keeps the rows: the entry of an agent. */
export type KeepsRows = { limitRows: KnownRows | undefined };
