/**
 * Detects, before it is opened, a file of the embedded store that is damaged or from another version of the library.
 */
import { existsSync, fstatSync, readSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { withOpenFile } from '../../system/files.ts';
import { openEnvironment } from './lmdb.ts';

// Checks every reachable page of the embedded store. The library itself trusts them: a wrong page, as half a restore or
// a copy of a live store leaves it, fails an assertion that ends the process.

/** A tree: where it begins, and how many pages lie from there to a row. */
export type Tree = { readonly root: bigint; readonly depth: number };

/** The page number that stands for no page. */
const EMPTY = 0xffff_ffff_ffff_ffffn;

/** More than the library can follow. */
const MOST_LEVELS = 32;

const HEADER_BYTES = 24;
const FLAGS_AT = 18;
/** Twice the number of nodes, and where the nodes begin, both counted from behind the header. */
const LOWER_AT = 20;
const UPPER_AT = 22;
const BRANCH = 0x01;
const LEAF = 0x02;
const OVERFLOW = 0x04;
const KIND = BRANCH | LEAF | OVERFLOW;

const NODE_BYTES = 8;
const NODE_FLAGS_AT = 4;
const KEY_BYTES_AT = 6;
const ON_OTHER_PAGES = 0x01;
const IS_TREE = 0x02;

const TREE_BYTES = 48;
const DEPTH_AT = 6;
const ROOT_AT = 40;

/** How a tree is stored, in a head of the file and in the row of a table. */
const treeAt = (bytes: Buffer, at: number): Tree => ({
  root: bytes.readBigUInt64LE(at + ROOT_AT),
  depth: bytes.readUInt16LE(at + DEPTH_AT),
});

type Place = { readonly page: bigint; readonly kind: number /** Levels below it. */; readonly below: number };

/** Whether everything below these trees is present and valid. */
function areSound(fd: number, pageBytes: number, trees: readonly Tree[]): boolean {
  const pages = Math.floor(fstatSync(fd).size / pageBytes);
  const waiting: Place[] = trees.flatMap(placeOf);
  const page = Buffer.alloc(pageBytes);
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    if (place.page >= pages || place.below < 0 || place.below > MOST_LEVELS) return false;
    readSync(fd, page, 0, pageBytes, Number(place.page) * pageBytes);
    if (page.readBigUInt64LE(0) !== place.page || (page.readUInt16LE(FLAGS_AT) & KIND) !== place.kind) return false;
    const next = place.kind === OVERFLOW ? [] : placesIn(page, place);
    if (next === undefined) return false;
    for (const each of next) waiting.push(each);
  }
  return true;
}

const placeOf = ({ root, depth }: Tree): readonly Place[] =>
  root === EMPTY ? [] : [{ page: root, kind: depth === 1 ? LEAF : BRANCH, below: depth - 1 }];

/** What the nodes of the page lead to; undefined where one of them does not fit into it. */
function placesIn(page: Buffer, { kind, below }: Place): readonly Place[] | undefined {
  const lower = page.readUInt16LE(LOWER_AT);
  if (lower > page.readUInt16LE(UPPER_AT) || HEADER_BYTES + page.readUInt16LE(UPPER_AT) > page.length) return undefined;
  const places: Place[] = [];
  for (let at = HEADER_BYTES; at < HEADER_BYTES + lower; at += 2) {
    const node = HEADER_BYTES + page.readUInt16LE(at);
    if (node + NODE_BYTES > page.length) return undefined;
    const flags = page.readUInt16LE(node + NODE_FLAGS_AT);
    if (kind === BRANCH) {
      const child = BigInt(page.readUInt32LE(node)) | (BigInt(flags) << 32n);
      places.push({ page: child, kind: below === 1 ? LEAF : BRANCH, below: below - 1 });
      continue;
    }
    const data = node + NODE_BYTES + page.readUInt16LE(node + KEY_BYTES_AT);
    if ((flags & IS_TREE) !== 0) {
      if (data + TREE_BYTES > page.length) return undefined;
      places.push(...placeOf(treeAt(page, data)));
    } else if ((flags & ON_OTHER_PAGES) !== 0) {
      if (data + NODE_BYTES > page.length) return undefined;
      places.push({ page: page.readBigUInt64LE(data), kind: OVERFLOW, below: 0 });
    }
  }
  return places;
}

/** Every file of the library begins with two pages that carry this mark. */
const MARK = Buffer.from([0xde, 0xc0, 0xef, 0xbe]);
const MARK_AT = 24;
/** It is followed by the version of the layout, in 16 bits; the library reads only its own. */
const VERSION_AT = 28;
export const STORE_VERSION = 2;
const LEAST_BYTES = 2 * 4096;

/**
 * Where each of its two heads, the first two pages, says how large a page is, where the list of free pages and the
 * tables begin, which the last page is, and which head is newer.
 */
const PAGE_SIZE_AT = 48;
const TREES_AT = [48, 96] as const;
const LAST_PAGE_AT = 144;
const TURN_AT = 152;
const HEAD_BYTES = TURN_AT + 8;
const MAX_PAGE_BYTES = 65_536;

/**
 * The path of the store's file if it is damaged: truncated by a full disk or an aborted copy, overwritten, or with
 * wrong pages, as half a restore leaves them. Call it before opening the file: the library maps it into memory
 * unchecked, and a damaged one crashes the process without a message.
 */
export async function damagedStoreFile(dataDir: string): Promise<string | undefined> {
  const folder = join(dataDir, 'store');
  const path = join(folder, 'data.mdb');
  if (!existsSync(path)) return undefined;
  const { size, start } = readStart(path);
  if (size === 0) return undefined;
  if (size < LEAST_BYTES || !hasMark(start)) return path;
  const claim = claimOf(start);
  if (claim === undefined || size < claim.leastSize) return path;
  if (size < claim.wholeSize && !(await isSoundWhenExtended(folder, path, size, claim.wholeSize))) return path;
  return withOpenFile(path, 'r', (fd) => areSound(fd, claim.pageBytes, claim.trees)) ? undefined : path;
}

/**
 * The store's file if it is from another version of the library, as after a downgrade; undefined otherwise, and for a
 * file that is no store at all. Call it before opening the file: it would crash the process without a message.
 */
export function strangeStoreFile(dataDir: string): { readonly path: string; readonly version: number } | undefined {
  const path = join(dataDir, 'store', 'data.mdb');
  if (!existsSync(path)) return undefined;
  const { size, start } = readStart(path);
  const version = start.readUInt16LE(VERSION_AT);
  return size < LEAST_BYTES || !hasMark(start) || version === STORE_VERSION ? undefined : { path, version };
}

const hasMark = (start: Buffer): boolean => start.subarray(MARK_AT, MARK_AT + MARK.length).equals(MARK);

/** Its length, and its first page with the head of the second. */
function readStart(path: string): { readonly size: number; readonly start: Buffer } {
  return withOpenFile(path, 'r', (fd) => {
    const start = Buffer.alloc(MAX_PAGE_BYTES + HEAD_BYTES);
    readSync(fd, start, 0, start.length, 0);
    return { size: fstatSync(fd).size, start };
  });
}

/**
 * What the newer head claims: `wholeSize` is how long the file is with every page that has a number, `leastSize` with
 * the roots of its trees. Undefined where it claims what cannot be.
 */
function claimOf(start: Buffer):
  | {
      readonly pageBytes: number;
      readonly trees: readonly Tree[];
      readonly wholeSize: number;
      readonly leastSize: number;
    }
  | undefined {
  const pageBytes = start.readUInt32LE(PAGE_SIZE_AT);
  if (pageBytes < HEAD_BYTES || pageBytes > MAX_PAGE_BYTES) return undefined;
  const newer = start.readBigUInt64LE(TURN_AT) > start.readBigUInt64LE(pageBytes + TURN_AT) ? 0 : pageBytes;
  const trees = TREES_AT.map((at) => treeAt(start, newer + at)).filter(({ root }) => root !== EMPTY);
  const endOf = (page: bigint): number => (Number(page) + 1) * pageBytes;
  return {
    pageBytes,
    trees,
    wholeSize: endOf(start.readBigUInt64LE(newer + LAST_PAGE_AT)),
    leastSize: Math.max(0, ...trees.map(({ root }) => endOf(root))),
  };
}

/**
 * The last pages may never have been written, if they were free again before the library came to it. So the file is
 * made as long as it should be, which does a sound one no harm, and all of it is read: the library reports zeros in
 * place of a page that is used.
 */
async function isSoundWhenExtended(folder: string, path: string, size: number, wholeSize: number): Promise<boolean> {
  let isSound = false;
  truncateSync(path, wholeSize);
  try {
    isSound = await isReadable(folder);
  } finally {
    if (!isSound) truncateSync(path, size); // as it was found
  }
  return isSound;
}

async function isReadable(folder: string): Promise<boolean> {
  const environment = openEnvironment(folder);
  try {
    for (const name of [...environment.getKeys()])
      for (const row of environment.openDB({ name: String(name) }).getRange()) void row;
    return true;
  } catch {
    return false; // the caller reports it
  } finally {
    await environment.close();
  }
}
