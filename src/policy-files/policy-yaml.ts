/** Policy documents as YAML text, and the way back from a place in a document to a line and column of its file. */
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  visit,
} from 'yaml';
import type { DocumentPath, DocumentProblem } from '../core/base/mapping.ts';

/** Lines and columns count from 1. */
export type Position = { readonly line: number; readonly column: number };

export type YamlDocument = {
  /** Plain JSON. */
  readonly raw: unknown;
  locate(problem: DocumentProblem): Position;
};

export type YamlProblem = Position & { readonly problem: string };

export const MAX_POLICY_FILE_BYTES = 1024 * 1024;
const MAX_DOCUMENTS = 10_000;
const MAX_SYNTAX_PROBLEMS = 20; // of one document; after so many it is most likely another kind of file
const TOO_DEEP = 'the text is nested too deeply to be a policy';

export type ReadYaml = { readonly documents: readonly YamlDocument[]; readonly problems: readonly YamlProblem[] };

/** Either every document of the text or every mistake of syntax. Empty documents are left out. */
export function readYaml(text: string): ReadYaml {
  try {
    return readDocuments(text);
  } catch (error) {
    // The parser descends into what is nested; a policy never is so deep.
    if (!(error instanceof RangeError)) throw error;
    return { documents: [], problems: [{ line: 1, column: 1, problem: TOO_DEEP }] };
  }
}

function readDocuments(text: string): ReadYaml {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, {
    lineCounter: lines,
    uniqueKeys: true,
    stringKeys: true,
    merge: false,
    version: '1.2',
  });
  const documents = Array.isArray(parsed) ? parsed : [];
  if (documents.length > MAX_DOCUMENTS)
    return { documents: [], problems: [{ line: 1, column: 1, problem: `more than ${MAX_DOCUMENTS} documents` }] };
  const problems = documents.flatMap((document) => [
    ...syntaxProblems(document, text, lines),
    ...aliasProblems(document, lines),
  ]);
  if (problems.length > 0) return { documents: [], problems };
  return {
    documents: documents
      .filter(({ contents }) => contents !== null && !(isScalar(contents) && contents.value === null))
      .map((document) => ({
        raw: withOwnStrings(document.toJS({ maxAliasCount: 0 })),
        locate: (problem) => locate(document, problem, text, lines),
      })),
    problems,
  };
}

const positionAt = (offset: number, lines: LineCounter): Position => {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
};

/** The first mistake at each place: what follows from it at the same place would only hide it. */
function syntaxProblems(
  { errors, warnings }: Document.Parsed,
  text: string,
  lines: LineCounter,
): readonly YamlProblem[] {
  const byPlace = new Map<number, YamlProblem>();
  for (const { message, pos } of [...errors, ...warnings]) {
    // The library passes on how the engine says that a stack is full.
    if (/call stack|stack overflow/i.test(message)) return [{ ...positionAt(pos[0], lines), problem: TOO_DEEP }];
    // It also adds its own position and an excerpt of the text.
    const problem = (message.split('\n', 1)[0] ?? message).replace(/ at line \d+, column \d+:?$/, '');
    if (problem === EMPTY_ALIAS) continue; // reported as an alias
    if (!byPlace.has(pos[0]))
      byPlace.set(pos[0], { ...positionAt(pos[0], lines), problem: `${problem}${hintAt(pos[0], text)}` });
  }
  return [...byPlace.values()].slice(0, MAX_SYNTAX_PROBLEMS);
}

const EMPTY_ALIAS = 'Alias cannot be an empty string';

/**
 * Much of CEL means something else to YAML: `!has(…)` is a tag, `"a" in …` text after a value, `a ? b : c` a mapping in
 * a line. So does a reason with a colon, or with a word in quotes at its beginning.
 */
function hintAt(offset: number, text: string): string {
  const line = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
  if (/^\s*(?:- +)?reason:\s/.test(line))
    return "; if YAML misreads a reason, for instance one with a colon, put it in quotes: '…'";
  return /^\s*(?:- +)?when:\s/.test(line)
    ? "; if YAML misreads an expression, write it on lines of its own after `when: |`, or put it in quotes: '…'"
    : '';
}

/** An alias is never needed in a policy, and a few of them can stand for more memory than there is. */
function aliasProblems(document: Document.Parsed, lines: LineCounter): readonly YamlProblem[] {
  const problems: YamlProblem[] = [];
  const anchors = new Set<string>();
  visit(document, {
    Node: (_key, node) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.add(node.anchor);
        return;
      }
      const problem = anchors.has(node.source)
        ? `aliases such as *${node.source} are not allowed in policies`
        : `a pattern that begins with * must be in quotes: "*${node.source}"`;
      problems.push({ ...positionAt(node.range?.[0] ?? 0, lines), problem });
    },
  });
  return problems;
}

function locate(
  document: Document.Parsed,
  { path, onKey, offset }: DocumentProblem,
  text: string,
  lines: LineCounter,
): Position {
  const node = onKey === true ? keyAt(document, path) : nodeAt(document, path);
  const start = node?.range?.[0] ?? 0;
  return positionAt(offset === undefined || node === undefined ? start : offsetWithin(node, offset, text), lines);
}

/**
 * The node at the path, or the nearest one above it that exists: a missing key is shown at the mapping that lacks it.
 */
function nodeAt(document: Document.Parsed, path: DocumentPath): Node | undefined {
  let node: unknown = document.contents;
  for (const step of path) {
    const next: unknown = isMap(node) || isSeq(node) ? node.get(step, true) : undefined;
    if (!isNode(next) || isAlias(next)) break;
    node = next;
  }
  return isNode(node) ? node : undefined;
}

function keyAt(document: Document.Parsed, path: DocumentPath): Node | undefined {
  const owner = nodeAt(document, path.slice(0, -1));
  const wanted = path[path.length - 1];
  const pair: Pair | undefined = isMap(owner)
    ? owner.items.find(({ key }) => (isScalar(key) ? key.value : key) === wanted)
    : undefined;
  return isNode(pair?.key) ? pair.key : owner;
}

/**
 * Finds the position in the text of a character of a scalar's value: exact for a value that is written in one piece and
 * for block scalars with `|`; the beginning of the scalar if folding or escapes stand in between.
 */
function offsetWithin(node: Node, offset: number, text: string): number {
  const start = node.range?.[0] ?? 0;
  if (!isScalar(node) || typeof node.value !== 'string') return start;
  const quote = node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE' ? 1 : 0;
  if (text.startsWith(node.value, start + quote)) return start + quote + offset;
  if (node.type !== 'BLOCK_LITERAL' && node.type !== 'BLOCK_FOLDED') return start;
  const before = node.value.slice(0, offset).split('\n');
  let line = text.indexOf('\n', start) + 1;
  for (let i = 1; i < before.length; i += 1) line = text.indexOf('\n', line) + 1;
  const valueLine = node.value.split('\n')[before.length - 1] ?? '';
  const indent = /^ */.exec(text.slice(line, line + 200))?.[0].length ?? 0;
  const own = /^ */.exec(valueLine)?.[0].length ?? 0;
  const column = before[before.length - 1]?.length ?? 0;
  return text.startsWith(valueLine.trimStart(), line + indent) ? line + indent - own + column : start;
}

/**
 * The parser's strings are cut from the file's text. A single character beyond Latin-1 anywhere, in a comment say,
 * makes that text two bytes a character in memory, and with it every reason that is cut from it and every audit line
 * that quotes one: each check would pay for it. Copies are as narrow as they can be, and do not keep the file in
 * memory.
 */
function withOwnStrings(value: unknown): unknown {
  if (typeof value === 'string') return Buffer.from(value).toString();
  if (Array.isArray(value)) return value.map(withOwnStrings);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [Buffer.from(key).toString(), withOwnStrings(each)]),
  );
}
