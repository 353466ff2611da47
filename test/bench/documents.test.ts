import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { inPerformance, inReadme, type Measured, measuredElsewhere } from '../../bench/lib/documents.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

const MEASURED: Measured = {
  name: 'steady',
  machine: '2 × a processor',
  rows: [
    { name: 'p99 at 5', figures: '1 / **2** / 3 ms', note: 'goal: at most 2', isHeadline: true },
    { name: 'p50 at 5', figures: '0.5 ms', note: '', isHeadline: false },
    { name: 'p99 at 10', figures: '4 ms', note: '', isHeadline: true },
  ],
};

describe('measured figures in the documents', () => {
  test('docs/performance.md gets all rows of a benchmark in place of the old ones', () => {
    const text = 'before\n<!-- measured steady -->\nold\n<!-- /measured steady -->\nafter\n';
    expect(inPerformance(text, MEASURED)).toBe(
      [
        'before',
        '<!-- measured steady -->',
        '| | least / **median** / most | |',
        '| --- | --- | --- |',
        '| p99 at 5 | 1 / **2** / 3 ms | goal: at most 2 |',
        '| p50 at 5 | 0.5 ms | |',
        '| p99 at 10 | 4 ms | |',
        '',
        '2 × a processor.',
        '',
        '<!-- /measured steady -->',
        'after',
        '',
      ].join('\n'),
    );
    expect(inPerformance(inPerformance(text, MEASURED), MEASURED)).toBe(inPerformance(text, MEASURED));
  });

  test('the README gets the headlines, where the rows of that benchmark are', () => {
    const text = [
      '| a | 1 ms | <!-- grpc --> |',
      '| old | 9 ms | <!-- steady --> |',
      '| b | 2 ms | <!-- peer --> |',
      '| older | 9 ms | <!-- steady --> |',
    ];
    expect(inReadme(text.join('\n'), MEASURED)).toBe(
      [
        '| a | 1 ms | <!-- grpc --> |',
        '| p99 at 5 | 1 / **2** / 3 ms | goal: at most 2 <!-- steady --> |',
        '| p99 at 10 | 4 ms | <!-- steady --> |',
        '| b | 2 ms | <!-- peer --> |',
      ].join('\n'),
    );
    expect(inReadme(['| a | 1 ms | <!-- grpc --> |', 'after'].join('\n'), MEASURED).split('\n')).toEqual([
      '| a | 1 ms | <!-- grpc --> |',
      '| p99 at 5 | 1 / **2** / 3 ms | goal: at most 2 <!-- steady --> |',
      '| p99 at 10 | 4 ms | <!-- steady --> |',
      'after',
    ]);
    expect(() => inReadme('nothing', MEASURED)).toThrow('README.md has no table of figures');
  });

  test('figures of another commit, and those that are missing, are named', () => {
    const block = (name: string, machine: string) =>
      `<!-- measured ${name} -->\n|\n\n${machine}\n<!-- /measured ${name} -->\n`;
    const text = [
      block('connect', '2 × x, commit abc1.\n'),
      block('grpc', '2 × x, commit abc1, changed.\n'),
      block('steady', '2 × x, commit def2.\n'),
      block('peer', ''),
    ].join('\n');
    expect(measuredElsewhere(text, 'abc1')).toEqual([
      'grpc (commit abc1, changed)',
      'steady (commit def2)',
      'peer (not measured)',
    ]);
  });

  test('every figure is written by a benchmark, and none is of an earlier version', () => {
    const performance = readFileSync(join(PACKAGE_ROOT, 'docs', 'performance.md'), 'utf8');
    const readme = readFileSync(join(PACKAGE_ROOT, 'README.md'), 'utf8');
    const benches = readdirSync(join(PACKAGE_ROOT, 'bench')).flatMap((file) => /^([\w-]+)\.ts$/.exec(file)?.[1] ?? []);
    const written = [...performance.matchAll(/<!-- measured ([\w-]+) -->/g)].map(([, name]) => name);
    expect(written.filter((name) => !benches.includes(name!))).toEqual([]);
    expect(benches.filter((name) => !['all', ...written].includes(name))).toEqual([]);
    const outside = performance.replace(/<!-- measured ([\w-]+) -->.*?<!-- \/measured \1 -->/gs, '');
    expect(outside).not.toMatch(/^\|/m);
    const rows = readme
      .split('## Performance')[1]!
      .split('\n## ')[0]!
      .split('\n')
      .filter((line) => /^\| [^|]/.test(line));
    expect(rows.filter((row) => !written.includes(/<!-- ([\w-]+) --> \|$/.exec(row)?.[1]))).toEqual([
      '| --- | --- | --- |',
    ]);
    expect(performance + readme).not.toContain('earlier version');
  });

  test('each benchmark with headlines has its place in both documents', () => {
    const [readme, performance] = ['README.md', join('docs', 'performance.md')].map((file) =>
      readFileSync(join(PACKAGE_ROOT, file), 'utf8'),
    ) as [string, string];
    for (const name of ['connect', 'decisions', 'everyday', 'growth', 'grpc', 'login-storm', 'peer', 'steady']) {
      const measured = { ...MEASURED, name, machine: `measured by ${name}` };
      expect(inReadme(readme, measured)).toContain(`| p99 at 10 | 4 ms | <!-- ${name} --> |`);
      expect(inPerformance(performance, measured)).toContain(`measured by ${name}.`);
    }
  });
});
