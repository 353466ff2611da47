import { isLiteral, MAX_GLOB_LENGTH } from './glob.ts';

/** Resources that one rule allows, and what it was drawn from. */
export type Pattern = {
  readonly globs: readonly string[];
  /** No pattern stands for these alone: a condition compares them. */
  readonly exact: readonly string[];
  readonly resources: readonly string[];
};

/** As many of a folder are named one by one. */
const MAX_NAMED = 3;
/** In one rule, so that it stays readable. */
const MAX_GLOBS = 100;

/**
 * Patterns for resources that one agent has asked for. Only a folder of which more than a few were seen becomes
 * `folder/*`; everything else stands for itself.
 */
export function patternsOf(resources: readonly string[]): readonly Pattern[] {
  const sorted = [...new Set(resources)].sort();
  const plain = sorted.filter(isPlain);
  const folders = new Map<string, string[]>();
  for (const resource of plain) {
    const folder = folderOf(resource);
    const inside = folders.get(folder);
    if (inside === undefined) folders.set(folder, [resource]);
    else inside.push(resource);
  }
  const globs = [...folders].flatMap(([folder, inside]): readonly { glob: string; resources: string[] }[] =>
    isFolder(folder) && inside.length > MAX_NAMED
      ? [{ glob: `${folder}*`, resources: inside }]
      : inside.map((resource) => ({ glob: resource, resources: [resource] })),
  );
  const patterns: Pattern[] = [];
  for (let from = 0; from < globs.length; from += MAX_GLOBS) {
    const some = globs.slice(from, from + MAX_GLOBS);
    patterns.push({
      globs: some.map(({ glob }) => glob),
      exact: [],
      resources: some.flatMap((each) => each.resources),
    });
  }
  for (const exact of inPieces(sorted.filter((resource) => !isPlain(resource))))
    patterns.push({ globs: [], exact, resources: exact });
  return patterns;
}

const isPlain = (resource: string): boolean =>
  resource !== '' && isLiteral(resource) && resource.length <= MAX_GLOB_LENGTH;

/** Up to the last slash; '' where there is none. */
const folderOf = (resource: string): string => resource.slice(0, resource.lastIndexOf('/') + 1);

/** Not the root of a disk, nor `https://`, which would be everything. */
const isFolder = (folder: string): boolean => /[^/:]\/$/.test(folder) && folder.length < MAX_GLOB_LENGTH;

/** Each list in a condition is of this length, so that all of them have room. */
const MAX_LIST_CHARACTERS = 1_000;

/** Lists that are short enough for a condition, unless it is of one text alone. */
export function inPieces(texts: readonly string[]): readonly (readonly string[])[] {
  const pieces: string[][] = [];
  let characters = Infinity;
  for (const text of texts) {
    const length = JSON.stringify(text).length + 1;
    characters += length;
    if (characters > MAX_LIST_CHARACTERS) {
      pieces.push([]);
      characters = length;
    }
    pieces.at(-1)!.push(text);
  }
  return pieces;
}
