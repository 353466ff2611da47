/** Comments say who does what (docs/style.md, 14). */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

/** The ways in which a line of a comment begins, by the kind of its file. */
const COMMENTS: readonly (readonly [files: RegExp, begins: RegExp])[] = [
  [/\.(?:ts|tsx|mjs|proto)$/, /^\s*(?:\/\*\*|\*|\/\/)\s*/],
  [/\.py$/, /^\s*(?:#|""")\s*/],
  [/\.(?:sh|ya?ml)$|^\.ci\/run$/, /^\s*#\s*/],
  // The descriptions of keys, which schemas show.
  [/^src\/core\/policy\/schema\.ts$/, /^.*\bdescription: '/],
];
const OPENING = /^(?:Of|What|Whoever|Where|Those|Likewise|One|So)\b/;

const isOdd = (line: string, begins: RegExp): boolean => {
  const [before] = begins.exec(line) ?? [];
  return before !== undefined && OPENING.test(line.slice(before.length));
};

describe('comments', () => {
  test('begin with a subject or a verb', () => {
    const files = execFileSync('git', ['ls-files'], { cwd: PACKAGE_ROOT, encoding: 'utf8' })
      .split('\n')
      .filter((path) => existsSync(join(PACKAGE_ROOT, path)));
    const found = COMMENTS.flatMap(([kind, begins]) => {
      const ofKind = files.filter((path) => kind.test(path));
      expect(ofKind, String(kind)).not.toEqual([]);
      return ofKind.flatMap((path) =>
        readFileSync(join(PACKAGE_ROOT, path), 'utf8')
          .split('\n')
          .flatMap((line, at) => (isOdd(line, begins) ? [`${path}:${at + 1}: ${line.trim()}`] : [])),
      );
    });
    expect(found, 'say who does what: docs/style.md, 14').toEqual([]);
  });
});
