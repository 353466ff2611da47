import type { Method, Route } from '../engine/route.ts';

export type Match<R> =
  | { readonly kind: 'route'; readonly route: R; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'no-path' }
  | { readonly kind: 'no-method'; readonly allowed: readonly (Method | 'head')[] };

type Pattern<R> = { readonly segments: readonly string[]; readonly rows: Map<Method, R> };

const NO_PATH = { kind: 'no-path' } as const;
const NO_PARAMS: Readonly<Record<string, string>> = {};

/**
 * Finds the row of a path. A path without a `:name` wins over one with it; among those with one, the first row wins.
 */
export class Router<R extends Pick<Route, 'method' | 'path'>> {
  readonly #literal = new Map<string, Pattern<R>>();
  readonly #patterns: Pattern<R>[] = [];

  constructor(rows: readonly R[]) {
    const byPath = new Map<string, Pattern<R>>();
    for (const row of rows) {
      const pattern = byPath.get(row.path) ?? { segments: row.path.split('/').slice(1), rows: new Map<Method, R>() };
      if (pattern.rows.has(row.method)) throw new Error(`two routes for ${row.method} ${row.path}`);
      pattern.rows.set(row.method, row);
      byPath.set(row.path, pattern);
    }
    for (const [path, pattern] of byPath) {
      if (path.includes('/:')) this.#patterns.push(pattern);
      else this.#literal.set(path, pattern);
    }
  }

  /**
   * `path` as it came over the wire, percent-encoded. A path that cannot be decoded is no path; nor is one with a slash
   * too many at its end.
   */
  match(method: Method, path: string): Match<R> {
    const literal = this.#literal.get(path);
    if (literal !== undefined) return choose(literal, method, NO_PARAMS);
    const segments = decodedSegments(path);
    if (segments === undefined || segments.at(-1) === '') return NO_PATH;
    for (const pattern of this.#patterns) {
      const params = paramsOf(pattern.segments, segments);
      if (params !== undefined) return choose(pattern, method, params);
    }
    return NO_PATH;
  }
}

function choose<R>(pattern: Pattern<R>, method: Method, params: Readonly<Record<string, string>>): Match<R> {
  const route = pattern.rows.get(method);
  return route === undefined
    ? { kind: 'no-method', allowed: [...pattern.rows.keys()].flatMap(withHead) }
    : { kind: 'route', route, params };
}

/** HEAD is answered wherever GET is. */
const withHead = (method: Method): readonly (Method | 'head')[] => (method === 'get' ? ['get', 'head'] : [method]);

function decodedSegments(path: string): readonly string[] | undefined {
  try {
    return path.split('/').slice(1).map(decodeURIComponent);
  } catch {
    return undefined; // a stray %: nothing is found under such a name
  }
}

function paramsOf(
  pattern: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const segment = segments[index]!;
    if (expected.startsWith(':')) params[expected.slice(1)] = segment;
    else if (expected !== segment) return undefined;
  }
  return params;
}
