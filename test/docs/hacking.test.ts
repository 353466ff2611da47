/** The commands and files of docs/hacking.md. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { createCliHome } from '../support/cli.ts';

const page = readFileSync(join(PACKAGE_ROOT, 'docs', 'hacking.md'), 'utf8');
const lines = [...page.matchAll(/^```sh\n(.*?)^```$/gms)]
  .flatMap(([, block = '']) => block.split('\n'))
  .map((line) => line.replace(/ +#.*/, '').trim())
  .filter((line) => line !== '');
const argumentsOf = (command: string): string[][] =>
  lines.filter((line) => line.startsWith(`${command} `)).map((line) => line.slice(command.length + 1).split(' '));

describe('docs/hacking.md', () => {
  const cli = createCliHome();
  afterAll(cli.remove);

  test('names files that are there', () => {
    const named = [...page.matchAll(/(?<![\w/])(?:src|test|examples)\/[\w./-]+\w/g)].map(([path]) => path);
    expect(named.length).toBeGreaterThan(30);
    expect(named.filter((path) => !existsSync(join(PACKAGE_ROOT, path)))).toEqual([]);
  });

  test('names scripts of the package', () => {
    const { scripts } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
    const named = argumentsOf('npm run').map(([name = '']) => name);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  test.each(argumentsOf('svc').map((args) => [args.join(' '), args] as const))('svc %s', async (_, args) => {
    expect(await cli.run(args, { cwd: PACKAGE_ROOT })).toMatchObject({ status: 0 });
  });
});
