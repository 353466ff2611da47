import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openStore } from '../../../src/app/start-checks.ts';
import { damagedStoreFile, strangeStoreFile } from '../../../src/stores/embedded/damage.ts';
import { openEmbeddedStore } from '../../../src/stores/embedded/lmdb.ts';
import { temporaryFolder } from '../../support/harness.ts';

describe('lmdb damage', () => {
  test.each([
    ['cut short', Buffer.alloc(4096)],
    ['written over', Buffer.alloc(20_000, 'x')],
  ])('a store file that was %s is named instead of crashing the process', async (_, bytes) => {
    const dataDir = temporaryFolder();
    expect(await damagedStoreFile(dataDir)).toBeUndefined();
    const store = openEmbeddedStore(dataDir);
    await store.table<string, number>('numbers').put('one', 1);
    await store.close();
    expect(await damagedStoreFile(dataDir)).toBeUndefined();
    writeFileSync(join(dataDir, 'store', 'data.mdb'), bytes);
    expect(await damagedStoreFile(dataDir)).toBe(join(dataDir, 'store', 'data.mdb'));
  });

  test('a store laid out by another library version is told from a damaged one', async () => {
    const dataDir = temporaryFolder();
    expect(strangeStoreFile(dataDir)).toBeUndefined();
    const store = openEmbeddedStore(dataDir);
    await store.table<string, number>('numbers').put('one', 1);
    await store.close();
    expect(strangeStoreFile(dataDir)).toBeUndefined();
    const file = join(dataDir, 'store', 'data.mdb');
    const bytes = readFileSync(file);
    for (const head of [0, 4096]) bytes.writeUInt32LE(3, head + 28);
    writeFileSync(file, bytes);
    expect(strangeStoreFile(dataDir)).toEqual({ path: file, version: 3 });
    await expect(openStore(dataDir)).rejects.toThrow(
      `${file} has format version 3, but this release supports only 2; start the release that wrote it, or restore the backup from before the upgrade`,
    );
  });

  test.each([0.02, 0.1, 0.5, 0.9, 0.999])(
    'a store file of which only %d is left is named and left as found',
    async (part) => {
      const dataDir = temporaryFolder();
      const store = openEmbeddedStore(dataDir);
      const [keys, agents] = [store.table<string, object>('keys'), store.table<string, object>('agents')];
      await Promise.all(
        Array.from({ length: 2_000 }, (_, index) => [
          keys.put(`k${index}`, { text: 'x'.repeat(300) }),
          agents.put(`a${index}`, { text: 'y'.repeat(300) }),
        ]).flat(),
      );
      await store.close();
      expect(await damagedStoreFile(dataDir)).toBeUndefined();
      const file = join(dataDir, 'store', 'data.mdb');
      const left = Math.floor(statSync(file).size * part);
      truncateSync(file, left);
      expect(await damagedStoreFile(dataDir)).toBe(file);
      expect(await damagedStoreFile(dataDir)).toBe(file);
      expect(statSync(file).size).toBe(left);
    },
  );

  test('a store page with foreign content is found anywhere, as after half a restore', async () => {
    const dataDir = temporaryFolder();
    const store = openEmbeddedStore(dataDir);
    const [keys, agents] = [store.table<string, object>('keys'), store.table<string, object>('agents')];
    await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => [
        keys.put(`k${index}`, { text: 'x'.repeat(200) }),
        agents.put(`a${index}`, { text: 'y'.repeat(index % 50 === 0 ? 9_000 : 200) }),
      ]).flat(),
    );
    for (let nth = 0; nth < 300; nth += 1)
      await keys.transaction((table) => {
        table.remove(`k${nth}`);
        table.put(`n${nth}`, { text: 'z'.repeat(200) });
      });
    await store.close();
    const file = join(dataDir, 'store', 'data.mdb');
    const whole = readFileSync(file);
    expect(await damagedStoreFile(dataDir)).toBeUndefined();
    const pagesWith = (mark: (page: Buffer) => boolean): number[] =>
      Array.from({ length: whole.length / 4096 }, (_, nth) => nth).filter(
        (nth) => nth > 1 && mark(whole.subarray(nth * 4096, (nth + 1) * 4096)),
      );
    const verdicts = async (pages: readonly number[], bytes: Buffer | ((page: Buffer) => Buffer)): Promise<number> => {
      let named = 0;
      for (const page of pages) {
        const own = Buffer.from(whole.subarray(page * 4096, (page + 1) * 4096));
        writeFileSync(
          file,
          Buffer.concat([
            whole.subarray(0, page * 4096),
            typeof bytes === 'function' ? bytes(own) : bytes,
            whole.subarray((page + 1) * 4096),
          ]),
        );
        if ((await damagedStoreFile(dataDir)) === file) named += 1;
      }
      return named;
    };
    // Those of before, which are free again, are not looked at.
    for (const bytes of [Buffer.alloc(4096), Buffer.alloc(4096, 'x'), whole.subarray(4096, 8192)]) {
      for (const row of ['a777', 'n299'])
        expect(
          await verdicts(
            pagesWith((page) => page.includes(row)),
            bytes,
          ),
        ).toBeGreaterThan(0);
    }
    const [another] = pagesWith((page) => page.includes('a500'));
    const ofAnother = whole.subarray(another! * 4096, (another! + 1) * 4096);
    const asBranch = (page: Buffer) => (page.writeUInt16LE(0x01, 18), page);
    for (const bytes of [ofAnother, asBranch])
      expect(
        await verdicts(
          pagesWith((page) => page.includes('a777')),
          bytes,
        ),
      ).toBeGreaterThan(0);
    expect(
      await verdicts(
        pagesWith((page) => page.includes('y'.repeat(3_000))),
        ofAnother,
      ),
    ).toBeGreaterThan(0); // a row on pages of its own
    writeFileSync(file, whole);
    expect(await damagedStoreFile(dataDir)).toBeUndefined();
  });

  test('a store whose last free pages were never written is sound', async () => {
    const dataDir = temporaryFolder();
    const store = openEmbeddedStore(dataDir);
    const table = store.table<string, string>('texts');
    await table.put('kept', 'x');
    await Promise.all([
      table.put('large', 'y'.repeat(400_000)),
      table.put('large', 'z'.repeat(900_000)),
      table.remove('large'),
    ]);
    await store.close();
    expect(statSync(join(dataDir, 'store', 'data.mdb')).size).toBeLessThan(1_500_000); // of 2 MB, or this tests nothing
    expect(await damagedStoreFile(dataDir)).toBeUndefined();
    const again = openEmbeddedStore(dataDir);
    expect([...again.table<string, string>('texts').entries()]).toEqual([['kept', 'x']]);
    await again.table<string, string>('texts').put('more', 'w'.repeat(2_000_000));
    await again.close();
    expect(await damagedStoreFile(dataDir)).toBeUndefined();
  });
});
