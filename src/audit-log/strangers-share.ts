/**
 * How much of the log comes from callers that are not identified. They have a share of its size that is their own:
 * beyond it their checks are only counted, and what they have of it never makes retention delete what others did
 * (docs/spec.md, Audit).
 */
import { basename, join } from 'node:path';
import { replaceFileSync, textIfThereSync } from '../system/files.ts';
import { listSegments } from './segments.ts';

const FILE = 'strangers.json';

export class StrangersShare {
  readonly #path: string;
  readonly #maxBytes: number;
  /** By the name of the segment. */
  readonly #bytes = new Map<string, number>();
  #isSaved = true;

  /** Reads what was noted before. Bytes whose note is lost in a crash count as everybody else's. */
  constructor(directory: string, maxBytes: number) {
    this.#path = join(directory, FILE);
    this.#maxBytes = maxBytes;
    const there = new Set(listSegments(directory).map(({ name }) => name));
    for (const [name, bytes] of notedIn(this.#path)) if (there.has(name)) this.#bytes.set(name, bytes);
  }

  get isFull(): boolean {
    return this.#total >= this.#maxBytes;
  }

  add(segmentPath: string, bytes: number): void {
    const name = basename(segmentPath);
    this.#bytes.set(name, (this.#bytes.get(name) ?? 0) + bytes);
    this.#isSaved = false;
  }

  /** Returns the bytes of the segment that do not count when the log has to fit into its limit. */
  of(segmentName: string): number {
    return this.#bytes.get(segmentName) ?? 0;
  }

  /** More than their share is counted like everything else. */
  get uncountedBytes(): number {
    return Math.min(this.#total, this.#maxBytes);
  }

  drop(segmentNames: readonly string[]): void {
    for (const name of segmentNames) if (this.#bytes.delete(name)) this.#isSaved = false;
  }

  /** Throws what the file system says. */
  save(): void {
    if (this.#isSaved) return;
    replaceFileSync(this.#path, `${JSON.stringify(Object.fromEntries(this.#bytes))}\n`);
    this.#isSaved = true;
  }

  get #total(): number {
    let total = 0;
    for (const bytes of this.#bytes.values()) total += bytes;
    return total;
  }
}

function notedIn(path: string): readonly [string, number][] {
  try {
    const noted = JSON.parse(textIfThereSync(path) ?? '{}') as Readonly<Record<string, unknown>>;
    return Object.entries(noted).filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1]));
  } catch {
    return []; // damaged: as if nothing had been noted, which deletes too much rather than too little
  }
}
