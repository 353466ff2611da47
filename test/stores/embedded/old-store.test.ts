import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { describe, expect, test } from 'vitest';
import { unknownFormat, upgradeDataDir } from '../../../src/stores/embedded/old-store.ts';
import { openStore } from '../../../src/stores/embedded/start.ts';
import { openEmbeddedStore, STORE_FILE } from '../../../src/stores/embedded/store.ts';
import { temporaryFolder } from '../../support/harness.ts';

const ROWS = 1_200;

/** A data directory as the releases before format 2 have left it. */
async function oldDataDir(format: string | undefined = '1\n'): Promise<string> {
  const dataDir = temporaryFolder();
  mkdirSync(join(dataDir, 'store'));
  const environment = open({ path: join(dataDir, 'store'), maxDbs: 32 });
  const agents = environment.openDB({ name: 'agents' });
  for (let nth = 0; nth < ROWS; nth += 1) void agents.put(`a${nth}`, { nth, parent: undefined, text: 'x'.repeat(500) });
  await environment.openDB({ name: 'cluster' }).put('run', 'run-7');
  await environment.close();
  if (format !== undefined) writeFileSync(join(dataDir, 'format'), format);
  return dataDir;
}

async function rowsIn(dataDir: string): Promise<readonly unknown[]> {
  const store = openEmbeddedStore(dataDir);
  const agents = [...store.table('agents').entries()].length;
  const run = store.table('cluster').get('run');
  await store.close();
  return [agents, run];
}

describe('format of the data directory', () => {
  test('a new directory has the format from its first start', async () => {
    const dataDir = temporaryFolder();
    expect(await unknownFormat(dataDir)).toBeUndefined();
    expect(await upgradeDataDir(dataDir)).toBeUndefined();
    expect(readFileSync(join(dataDir, 'format'), 'utf8')).toBe('2\n');
    expect(await unknownFormat(dataDir)).toBeUndefined();
  });

  test.each([
    ['3\n', '3'],
    ['10', '10'],
    ['', ''],
    ['of another program', 'of another program'],
  ])('the unknown format %j is refused and left alone', async (text, format) => {
    const dataDir = temporaryFolder();
    const file = join(dataDir, 'format');
    writeFileSync(file, text);
    expect(await unknownFormat(dataDir)).toBe(format);
    expect(existsSync(file) && readFileSync(file, 'utf8')).toBe(text);
  });
});

describe('the store of an earlier release', () => {
  test.each([
    ['format 1', '1\n'],
    ['no format yet', undefined],
  ])('is read once, and its files are kept (%s)', async (_, format) => {
    const dataDir = await oldDataDir(format);
    const kept = join(dataDir, 'store', 'before-format-2');
    const said: unknown[] = [];
    await (await openStore(dataDir, { warn: (line, fields) => void said.push(line, fields) })).close();
    expect(said).toEqual([
      'the store of an earlier release was read; its files are kept until you delete them',
      { rows: ROWS + 1, kept },
    ]);
    expect(await rowsIn(dataDir)).toEqual([ROWS, 'run-7']);
    expect(readdirSync(kept).toSorted()).toEqual(['data.mdb', 'lock.mdb']);
    expect(readdirSync(join(dataDir, 'store')).toSorted()).toEqual([
      'before-format-2',
      STORE_FILE,
      `${STORE_FILE}-shm`,
      `${STORE_FILE}-wal`,
    ]);
    expect(readFileSync(join(dataDir, 'format'), 'utf8')).toBe('2\n');
    expect(await upgradeDataDir(dataDir)).toBeUndefined();
  });

  test('an upgrade that was killed begins again; a finished one is not repeated', async () => {
    const dataDir = await oldDataDir();
    const store = join(dataDir, 'store');
    // Killed while it wrote the new file, and another time just before the new format was noted.
    writeFileSync(join(store, `${STORE_FILE}.part`), 'half');
    writeFileSync(join(store, STORE_FILE), 'of an attempt before');
    expect(await upgradeDataDir(dataDir)).toMatchObject({ rows: ROWS + 1 });
    // Killed before the old files were set aside; the gateway of the new format had not run yet.
    for (const name of ['data.mdb', 'lock.mdb']) renameSync(join(store, 'before-format-2', name), join(store, name));
    expect(await upgradeDataDir(dataDir)).toBeUndefined();
    expect(existsSync(join(store, 'data.mdb'))).toBe(false);
    expect(await rowsIn(dataDir)).toEqual([ROWS, 'run-7']);
    // Only the old store was restored, into a directory of the new format.
    for (const name of ['data.mdb', 'lock.mdb']) renameSync(join(store, 'before-format-2', name), join(store, name));
    rmSync(join(store, STORE_FILE));
    expect(await upgradeDataDir(dataDir)).toMatchObject({ rows: ROWS + 1 });
    expect(await rowsIn(dataDir)).toEqual([ROWS, 'run-7']);
  });

  test.each([
    ['cut short', (path: string) => truncateSync(path, 3 * 4096)],
    ['written over', (path: string) => writeFileSync(path, Buffer.alloc(40_000, 'x'))],
  ])('is named and left as found if it was %s', async (_, damage) => {
    const dataDir = await oldDataDir();
    const path = join(dataDir, 'store', 'data.mdb');
    damage(path);
    const found = readFileSync(path);
    await expect(openStore(dataDir, { warn: () => undefined })).rejects.toThrow(
      new RegExp(`^${path} is damaged \\(.+\\); restore the folder`),
    );
    expect(readFileSync(path).equals(found)).toBe(true);
    expect(readFileSync(join(dataDir, 'format'), 'utf8')).toBe('1\n');
    expect(existsSync(join(dataDir, 'store', STORE_FILE))).toBe(false);
  });
});
