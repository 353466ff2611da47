/** Rows of tools that search in folders. A search reads, or lists, whatever lies below: it is an action of its own. */
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { MAX_PATHS, namesIn, textsIn } from './arguments.ts';
import { absolutePath } from './paths.ts';
import type { Row, Use } from './rows.ts';
import type { Fields, Read, Subject } from './tool.ts';

type SearchRow = {
  /** The arguments that may hold one folder or file, or a list of them. Without one, it is the working directory. */
  readonly path: readonly string[];
  /** The arguments that may hold a pattern of files below the path. */
  readonly patterns: readonly string[];
  /** Whether the result has lines of the files. Else it has their names. */
  readonly hasContent: boolean;
};

const MAX_ALTERNATIVES = 64;

/** Collects the targets and places of a search, one subject for each, without repetition. */
class Found {
  readonly #subjects = new Map<string, Subject>();
  readonly #use: Use;

  constructor(use: Use) {
    this.#use = use;
  }

  add(action: string, path: string, cwd = this.#use.cwd): Read<string> {
    const resolved = absolutePath(path, cwd);
    if (resolved.ok)
      this.#subjects.set(`${action} ${resolved.value}`, {
        action,
        resource: resolved.value,
        attributes: this.#use.input,
      });
    return resolved;
  }

  /**
   * Adds the possible matches of a pattern below a folder: the files that it names, and the folder that contains them.
   */
  addPattern(pattern: string, action: string, folder: string | undefined): Read<unknown> {
    const alternatives = alternativesIn(pattern);
    if (!alternatives.ok) return alternatives;
    for (const each of alternatives.value) {
      const named = this.add(action, each, folder);
      if (!named.ok) return named;
      const base = literalFolder(each);
      if (base === undefined || base === '') continue;
      const searched = this.add('file.search', base, folder);
      if (!searched.ok) return searched;
    }
    return ok(undefined);
  }

  get subjects(): Read<readonly Subject[]> {
    const { size } = this.#subjects;
    return size > MAX_PATHS
      ? invalid('pattern', `must not name more than ${MAX_PATHS} files and folders`)
      : ok([...this.#subjects.values()]);
  }
}

export const search = ({ path: names, patterns, hasContent }: SearchRow): Row => ({
  becomes: hasContent
    ? '`file.search` on the path; `file.read` on a path that is given, and on what a pattern of files names'
    : '`file.search` on the path, and on what the pattern names',
  reads: [...names, ...patterns],
  digests: [],
  others: [],
  refuses: 'with a pattern that leads out of the path or has a backslash',
  subjects: (use) => {
    const globs = globsIn(use.input, patterns);
    if (!globs.ok) return globs;
    const paths = textsIn(use.input, names);
    if (!paths.ok) return paths;
    const found = new Found(use);
    for (const path of paths.value.length === 0 ? ['.'] : paths.value) {
      const folder = found.add('file.search', path);
      if (!folder.ok) return folder;
      // It may be a file, which is then read.
      if (hasContent && paths.value.length > 0) found.add('file.read', path);
      for (const glob of globs.value) {
        const added = found.addPattern(glob, hasContent ? 'file.read' : 'file.search', folder.value);
        if (!added.ok) return added;
      }
    }
    return found.subjects;
  },
});

/**
 * Many files by names and patterns. A name may be that of a file in another case, because case is not regarded there.
 */
export const readMany = (...names: readonly string[]): Row => ({
  becomes: '`file.read` on each name, and on it in lower case; of a pattern also `file.search` on its literal folder',
  reads: names,
  digests: [],
  others: [],
  refuses: 'without a name; with a pattern that leads out of the folder or has a backslash',
  subjects: (use) => {
    const paths = textsIn(use.input, names);
    if (!paths.ok) return paths;
    if (paths.value.length === 0) return invalid(names[0]!, 'must be a list of paths');
    const found = new Found(use);
    for (const path of paths.value) {
      const added = WILDCARD.test(path) ? addGlob(found, path, use.cwd) : addName(found, path, use.cwd);
      if (!added.ok) return added;
    }
    return found.subjects;
  },
});

function addGlob(found: Found, pattern: string, cwd: string | undefined): Read<unknown> {
  if (leadsOut(pattern)) return outside('include');
  const searched = found.add('file.search', literalFolder(pattern) || '.');
  return searched.ok ? found.addPattern(pattern, 'file.read', cwd) : searched;
}

/** The working directory itself is what it is; only what is below it is looked for. */
function addName(found: Found, path: string, cwd = ''): Read<unknown> {
  const named = found.add('file.read', path);
  const below = path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
  const lower = below.toLowerCase();
  return named.ok && lower !== below ? found.add('file.read', lower) : named;
}

const WILDCARD = /[*?[\]{}]|[+@!]\(/;

/** True for a pattern that may match files elsewhere: it goes up, or one of its alternatives does or is absolute. */
const leadsOut = (pattern: string): boolean => LEADS_OUT.test(pattern);
/** A backslash makes a dot of `\.`, and a separator of itself on Windows. */
const LEADS_OUT = /\\|\.\.|\[\.\]|(?:^|[{,(|!])\s*(?:[/~]|[a-z]:|\.(?:[},)|]|$))/i;

const outside = (name: string): Read<never> =>
  invalid(name, 'must be a pattern below the path, without backslashes; name other folders as the path');

/** The patterns in these arguments, and their parts: some agents split them at white space and commas. */
function globsIn(input: Fields, names: readonly string[]): Read<readonly string[]> {
  const globs = new Set<string>();
  for (const name of namesIn(input, names)) {
    const texts = textsIn(input, [name]);
    if (!texts.ok) return texts;
    for (const text of texts.value) {
      for (const glob of [text, ...text.split(/\s+/)]) {
        if (leadsOut(glob)) return outside(name);
        // Excluded files are not read; the search of the folder covers the rest.
        if (glob !== '' && !/^!|^\s|\s$/.test(glob)) globs.add(glob);
      }
    }
  }
  return ok([...globs]);
}

/** The folders before the first wildcard; undefined without one. */
function literalFolder(pattern: string): string | undefined {
  const at = pattern.search(WILDCARD);
  return at === -1 ? undefined : pattern.slice(0, pattern.lastIndexOf('/', at) + 1);
}

/** The patterns that braces and commas stand for: `{a,b}/c` is `a/c` and `b/c`. */
function alternativesIn(pattern: string): Read<readonly string[]> {
  const whole = new Set<string>();
  const open = [pattern];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (whole.size + open.length > MAX_ALTERNATIVES)
      return invalid('pattern', `must not have more than ${MAX_ALTERNATIVES} alternatives`);
    const braces = /\{([^{}]*)\}/.exec(next);
    if (braces === null) {
      for (const part of next.split(',')) if (part.trim() !== '') whole.add(part.trim());
      continue;
    }
    const before = next.slice(0, braces.index);
    const after = next.slice(braces.index + braces[0].length);
    for (const choice of (braces[1] ?? '').split(',')) open.push(`${before}${choice}${after}`);
  }
  return ok([...whole]);
}
