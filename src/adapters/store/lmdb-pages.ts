/**
 * Checks every reachable page of the embedded store. The library itself trusts them: a wrong page, as half a restore or
 * a copy of a live store leaves it, fails an assertion that ends the process.
 */
import { fstatSync, readSync } from 'node:fs';

/** A tree: where it begins, and how many pages lie from there to a row. */
export type Tree = { readonly root: bigint; readonly depth: number };

/** The page number that stands for no page. */
export const EMPTY = 0xffff_ffff_ffff_ffffn;

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
export const treeAt = (bytes: Buffer, at: number): Tree => ({
  root: bytes.readBigUInt64LE(at + ROOT_AT),
  depth: bytes.readUInt16LE(at + DEPTH_AT),
});

type Place = { readonly page: bigint; readonly kind: number /** Levels below it. */; readonly below: number };

/** Whether everything below these trees is present and valid. */
export function areSound(fd: number, pageBytes: number, trees: readonly Tree[]): boolean {
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
