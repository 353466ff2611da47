/** The indexes of a log's segments: from memory, from a file, or newly built. */

import { closeSync, fstatSync, openSync, rmSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { dropFirst } from '../core/base/lists.ts';
import { OneByOne } from '../core/base/one-by-one.ts';
import { codeOf } from '../core/base/text.ts';
import { ifThereSync } from '../system/files.ts';
import { IndexBuilder } from './index-builder.ts';
import { loadIndexFile, writeIndexFile } from './index-file.ts';
import type { SegmentIndex } from './segment-index.ts';
import type { Segment } from './segments.ts';

/** About 60 KB each. */
const MAX_IN_MEMORY = 512;

/** An indexed segment: chunks up to `index.endOffset`, unindexed lines from there to `size`. */
export type IndexedSegment = { readonly index: SegmentIndex; readonly size: number; readonly wasBuilt: boolean };

export class SegmentIndexes {
  /** The least recently used first. */
  readonly #sealed = new Map<number, SegmentIndex>();
  /** The builder of the segment that still grows, or grew when it was last looked at. */
  #growing: { readonly firstId: number; builder: IndexBuilder } | undefined;
  /** Builders are changed by one caller at a time. */
  readonly #builds = new OneByOne();

  /** `fd` is the open segment. `grows` says that it is the newest. */
  async of(segment: Segment, fd: number, grows: boolean): Promise<IndexedSegment> {
    const size = fstatSync(fd).size;
    const known = grows ? undefined : this.#known(segment, size);
    if (known !== undefined) return { index: known, size, wasBuilt: false };
    return this.#builds.run(() => this.#built(segment, fd, grows, size));
  }

  #known(segment: Segment, size: number): SegmentIndex | undefined {
    const index = this.#sealed.get(segment.firstId) ?? loadIndexFile(indexPath(segment), size);
    if (index === undefined || index.endOffset !== size) return undefined;
    this.#remember(segment, index);
    return index;
  }

  #remember(segment: Segment, index: SegmentIndex): void {
    this.#sealed.delete(segment.firstId);
    this.#sealed.set(segment.firstId, index);
    if (this.#sealed.size > MAX_IN_MEMORY) dropFirst(this.#sealed);
  }

  async #built(segment: Segment, fd: number, grows: boolean, size: number): Promise<IndexedSegment> {
    const known = grows ? undefined : this.#known(segment, size);
    if (known !== undefined) return { index: known, size, wasBuilt: false };
    let builder = this.#growing?.firstId === segment.firstId ? this.#growing.builder : this.#begin(segment, grows);
    let wasBuilt = false;
    for (;;) {
      if (!builder.isStillTrue(fd)) builder = this.#begin(segment, grows);
      if (!builder.extend(fd, size, !grows)) break;
      wasBuilt = true;
      await nextTurn();
    }
    if (grows) return { index: builder, size, wasBuilt };
    if (this.#growing?.firstId === segment.firstId) this.#growing = undefined;
    return { index: this.#seal(segment, fd, builder, size), size, wasBuilt: true };
  }

  #begin({ firstId }: Segment, grows: boolean): IndexBuilder {
    const builder = new IndexBuilder();
    if (grows) this.#growing = { firstId, builder };
    return builder;
  }

  #seal(segment: Segment, fd: number, builder: IndexBuilder, size: number): SegmentIndex {
    // A torn end in the middle of a log is not indexed; then nothing is stored, and verification names it.
    if (builder.endOffset !== size) return builder;
    try {
      writeIndexFile(indexPath(segment), builder);
    } catch (error) {
      // A copy on a read-only or full disk is still read; only the index is built again next time, because one that
      // was not written is too large to keep.
      if (!['EROFS', 'EACCES', 'EPERM', 'ENOSPC', 'EDQUOT'].includes(codeOf(error) ?? '')) throw error;
      return builder;
    }
    // Retention may have deleted the segment before it looked for an index.
    if (fstatSync(fd).nlink === 0) rmSync(indexPath(segment), { force: true });
    return this.#known(segment, size) ?? builder;
  }
}

export const indexPath = ({ path }: Segment): string => path.replace(/\.ndjson$/, '.idx');

/** Keeps a segment open while `use` runs; undefined when retention has deleted it meanwhile. */
export async function withSegment<T>(segment: Segment, use: (fd: number) => Promise<T>): Promise<T | undefined> {
  const fd = ifThereSync(() => openSync(segment.path, 'r'));
  if (fd === undefined) return undefined;
  try {
    return await use(fd);
  } finally {
    closeSync(fd);
  }
}
