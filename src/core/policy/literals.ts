/**
 * Many texts that are looked for in another, all of them in one walk over its characters: those that it begins with,
 * ends with, or contains. A walk takes a step for each character, however many texts there are.
 */
import type { Steps } from '../base/steps.ts';

/** A text that is looked for, and the number that reports it. */
export type Literal = { readonly text: string; readonly key: number };

const NONE = -1;
const ROOT = 0;
/** A power of two. */
const BEGINNINGS = 256;
/** Nodes that are linked in one step. */
const LINKED_PER_STEP = 256;

/**
 * The texts as a tree with a node for each beginning of one. Nodes are numbers, and the ways between them lie in one
 * table of typed arrays: hundreds of thousands of objects would keep the garbage collection busy.
 */
class Tree {
  readonly #from: Int32Array;
  readonly #code: Uint16Array;
  /** `ROOT`, to which no way leads, marks a free place. */
  readonly #to: Int32Array;
  /** The key of the text that ends at the node. */
  readonly keys: Int32Array;
  readonly parents: Int32Array;
  /** The character that leads from the parent to the node. */
  readonly codes: Uint16Array;
  #size = 1;

  constructor(literals: readonly Literal[]) {
    const characters = literals.reduce((sum, { text }) => sum + text.length, 0);
    // At most half full, so that a way is found at its place or near it.
    const places = 2 ** Math.ceil(Math.log2(2 * characters + 2));
    this.#from = new Int32Array(places);
    this.#code = new Uint16Array(places);
    this.#to = new Int32Array(places);
    this.keys = new Int32Array(characters + 1).fill(NONE);
    this.parents = new Int32Array(characters + 1);
    this.codes = new Uint16Array(characters + 1);
  }

  get size(): number {
    return this.#size;
  }

  /** The node that this character leads to; `ROOT` where there is none. */
  next(node: number, code: number): number {
    return this.#to[this.#placeOf(node, code)]!;
  }

  /** `codeAt`: the text's characters in the order in which it is looked for. */
  add(length: number, codeAt: (at: number) => number, key: number): void {
    let node = ROOT;
    for (let at = 0; at < length; at += 1) node = this.#grow(node, codeAt(at));
    this.keys[node] = key;
  }

  #grow(node: number, code: number): number {
    const place = this.#placeOf(node, code);
    if (this.#to[place] !== ROOT) return this.#to[place]!;
    const grown = this.#size;
    this.#size += 1;
    this.#from[place] = node;
    this.#code[place] = code;
    this.#to[place] = grown;
    this.parents[grown] = node;
    this.codes[grown] = code;
    return grown;
  }

  #placeOf(node: number, code: number): number {
    const mask = this.#to.length - 1;
    let place = Math.imul(Math.imul(node, 0x9e3779b1) + code, 0x85ebca6b);
    place = (place ^ (place >>> 15)) & mask;
    while (this.#to[place] !== ROOT && (this.#from[place] !== node || this.#code[place] !== code))
      place = (place + 1) & mask;
    return place;
  }
}

/**
 * The keys that were found, of which there are `count`; what follows them is of earlier times. To shorten an array
 * would cost more than most walks.
 */
export class FoundKeys {
  readonly keys: number[] = [];
  count = 0;

  add(key: number): void {
    this.keys[this.count] = key;
    this.count += 1;
  }
}

export type FindLiterals = (text: string, found: FoundKeys) => void;

function* treeOf(literals: readonly Literal[], codeAt: (text: string, at: number) => number): Steps<Tree> {
  const tree = new Tree(literals);
  for (const { text, key } of literals) {
    tree.add(text.length, (at) => codeAt(text, at), key);
    yield;
  }
  return tree;
}

/** Adds to `found` the keys of all texts that a text begins with. Undefined where there are none to look for. */
export function* findingBeginnings(literals: readonly Literal[]): Steps<FindLiterals | undefined> {
  if (literals.length === 0) return undefined;
  const tree = yield* treeOf(literals, (text, at) => text.charCodeAt(at));
  const { keys } = tree;
  return (text, found) => {
    for (let at = 0, node = ROOT; at < text.length; at += 1) {
      node = tree.next(node, text.charCodeAt(at));
      if (node === ROOT) return;
      if (keys[node] !== NONE) found.add(keys[node]!);
    }
  };
}

/** Finds the texts that it ends with, by the same method. */
export function* findingEndings(literals: readonly Literal[]): Steps<FindLiterals | undefined> {
  if (literals.length === 0) return undefined;
  const tree = yield* treeOf(literals, (text, at) => text.charCodeAt(text.length - 1 - at));
  const { keys } = tree;
  return (text, found) => {
    for (let at = text.length - 1, node = ROOT; at >= 0; at -= 1) {
      node = tree.next(node, text.charCodeAt(at));
      if (node === ROOT) return;
      if (keys[node] !== NONE) found.add(keys[node]!);
    }
  };
}

/** Finds the texts that it contains, each once (the algorithm of Aho and Corasick). */
export function* findingContained(literals: readonly Literal[]): Steps<FindLiterals | undefined> {
  if (literals.length === 0) return undefined;
  const tree = yield* treeOf(literals, (text, at) => text.charCodeAt(at));
  const { keys } = tree;
  const links = new Links(tree);
  for (let node = 1; node < tree.size; node += 1) {
    links.link(node);
    if (node % LINKED_PER_STEP === 0) yield;
  }
  const { shorter, reported } = links;
  /** Whether a text may begin with such a character: nearly all places of a text are passed by one look. */
  const beginnings = new Uint8Array(BEGINNINGS);
  for (const { text } of literals) beginnings[text.charCodeAt(0) % BEGINNINGS] = 1;
  /** In which walk a node was reported last; a double counts longer than any process runs. */
  const reportedIn = new Float64Array(tree.size);
  let walk = 0;
  return (text, found) => {
    walk += 1;
    for (let at = 0, node = ROOT; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (node === ROOT && beginnings[code % BEGINNINGS] === 0) continue;
      let next = tree.next(node, code);
      while (next === ROOT && node !== ROOT) {
        node = shorter[node]!;
        next = tree.next(node, code);
      }
      node = next;
      for (let end = keys[node] === NONE ? reported[node]! : node; end !== ROOT; end = reported[end]!) {
        if (reportedIn[end] === walk) break; // and with it all that follow
        reportedIn[end] = walk;
        found.add(keys[end]!);
      }
    }
  };
}

const UNKNOWN = -1;

class Links {
  readonly #tree: Tree;
  /** The fallback of a node when no edge leads further: the longest ending of the node's text that is a node. */
  readonly shorter: Int32Array;
  /** The nearest of these at which a text ends; `ROOT` where there is none. */
  readonly reported: Int32Array;

  constructor(tree: Tree) {
    this.#tree = tree;
    this.shorter = new Int32Array(tree.size).fill(UNKNOWN);
    this.reported = new Int32Array(tree.size);
    this.shorter[ROOT] = ROOT;
  }

  /** Needs only nodes of shorter texts, so it calls itself at most as often as the text is long. */
  link(node: number): number {
    const known = this.shorter[node]!;
    if (known !== UNKNOWN) return known;
    const { parents, codes, keys } = this.#tree;
    let shorter = ROOT;
    for (let from = parents[node]!; from !== ROOT && shorter === ROOT; ) {
      from = this.link(from);
      shorter = this.#tree.next(from, codes[node]!);
    }
    if (shorter !== ROOT) this.link(shorter); // for what is reported there
    this.shorter[node] = shorter;
    this.reported[node] = keys[shorter] === NONE ? this.reported[shorter]! : shorter;
    return shorter;
  }
}
