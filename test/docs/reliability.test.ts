/** The figures of docs/reliability.md are written by script, each soak's to a place of its own. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'svc-reliability-'));
const page = join(folder, 'page.md');
const SCRIPT = join(PACKAGE_ROOT, 'scripts', 'reliability.mjs');

const RUN = {
  name: 'kill-9',
  date: '2026-11-26',
  machine: '2 × a processor, commit 0123abcd',
  secs: 1_234,
  share: 0.5,
  seed: 7,
  figures: { kills: 1_000, 'slowest restart': '1.2 s' },
};

describe('docs/reliability.md', () => {
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('has a place for the figures of each soak', () => {
    const text = readFileSync(join(PACKAGE_ROOT, 'docs', 'reliability.md'), 'utf8');
    const places = [...text.matchAll(/<!-- soak ([\w-]+) -->\n[^]*?<!-- \/soak \1 -->/g)].map(([, name]) => name);
    const soaks = readdirSync(join(PACKAGE_ROOT, 'test', 'soak')).map((file) => file.replace(/\.test\.ts$/, ''));
    expect(places.sort()).toEqual(soaks.sort());
  });

  test('gets the figures of a run, in place of those of the last', () => {
    writeFileSync(join(folder, 'kill-9.json'), JSON.stringify(RUN));
    writeFileSync(page, 'Before.\n\n<!-- soak kill-9 -->\nold figures\n<!-- /soak kill-9 -->\n\nAfter.\n');
    execFileSync(process.execPath, [SCRIPT, folder, page]);
    expect(readFileSync(page, 'utf8')).toBe(`Before.

<!-- soak kill-9 -->
| | |
| --- | --- |
| kills | 1,000 |
| slowest restart | 1.2 s |

2026-11-26, in 21 min, 50 % of the whole, seed 7: 2 × a processor, commit 0123abcd.

<!-- /soak kill-9 -->

After.
`);
  });

  test('stays as it is if it has no place for a run', () => {
    writeFileSync(join(folder, 'kill-9.json'), JSON.stringify(RUN));
    writeFileSync(page, 'No place.\n');
    const { status, stderr } = spawnSync(process.execPath, [SCRIPT, folder, page], { encoding: 'utf8' });
    expect({ status, page: readFileSync(page, 'utf8') }).toEqual({ status: 1, page: 'No place.\n' });
    expect(stderr).toContain('has no <!-- soak kill-9 --> … <!-- /soak kill-9 --> to write the figures to');
  });
});
