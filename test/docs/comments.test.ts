/** Comments say who does what (docs/style.md, 14). */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

const FOLDERS = ['src', 'workers', 'sdk', 'web/src', 'test', 'bench', 'scripts', 'examples'];
const OPENING = /^\s*(?:\/\*\*|\*|\/\/)\s*(?:Of|What|Whoever|Where|Those|Likewise|One|So)\b/;

describe('comments', () => {
  test('begin with a subject or a verb', () => {
    const files = execFileSync('git', ['ls-files', ...FOLDERS], { cwd: PACKAGE_ROOT, encoding: 'utf8' })
      .split('\n')
      .filter((path) => /\.(ts|tsx|mjs)$/.test(path))
      .filter((path) => existsSync(join(PACKAGE_ROOT, path)));
    expect(files.length).toBeGreaterThan(1_000);
    const found = files.flatMap((path) =>
      readFileSync(join(PACKAGE_ROOT, path), 'utf8')
        .split('\n')
        .flatMap((line, at) => (OPENING.test(line) ? [`${path}:${at + 1}: ${line.trim()}`] : [])),
    );
    expect(found, 'say who does what: docs/style.md, 14').toEqual([]);
  });
});
