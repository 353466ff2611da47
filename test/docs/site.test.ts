/** The site of the documents, as `npm run docs:site` builds it. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

describe('the site of the documents', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-site-'));
    const { status, stderr } = spawnSync(process.execPath, [join(PACKAGE_ROOT, 'scripts', 'site.mjs'), folder], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const read = (path: string): string => readFileSync(join(folder, path), 'utf8');

  test('has a page for every document, and leads from each to each', () => {
    const documents = readdirSync(join(PACKAGE_ROOT, 'docs')).filter((name) => name.endsWith('.md'));
    const home = read('index.html');
    for (const name of documents) {
      const page = `docs/${name.slice(0, -3)}.html`;
      expect(existsSync(join(folder, page))).toBe(true);
      expect(home).toContain(`href="${page}"`);
    }
  });

  test('has every command, every route and every message in its references', () => {
    const commands = read('reference/cli.html');
    for (const { synopsis } of COMMANDS)
      expect(commands).toContain(`svc ${synopsis.replaceAll('<', '&lt;').replaceAll('>', '&gt;')}`);
    const { paths } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'docs', 'openapi.json'), 'utf8')) as { paths: object };
    const routes = read('reference/http.html');
    for (const path of Object.keys(paths)) expect(routes).toContain(path);
    expect(read('reference/grpc.html')).toContain('message CheckActionResponse');
  });

  test('links no page to one that is not there', () => {
    const broken = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.html'))
      .flatMap((path) =>
        [...read(path).matchAll(/(?:href|src)="([^"#]+)/g)]
          .map(([, link]) => link!)
          .filter((link) => !/^[a-z]+:/.test(link) && !existsSync(join(folder, path, '..', decodeURI(link))))
          .map((link) => `${link} in ${path}`),
      );
    expect(broken).toEqual([]);
  });

  test('has the words of each section in its index', () => {
    const sections = JSON.parse(read('search.json')) as { title: string; url: string; text: string }[];
    const found = sections.filter(({ text }) => text.includes('lineage'));
    expect(found.map(({ url }) => url)).toContain('docs/concepts.html#concepts');
  });
});
