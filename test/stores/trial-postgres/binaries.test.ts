import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { locatePostgres } from '../../../src/stores/trial-postgres/binaries.ts';

const NOBODY = { kind: 'account', uid: 65_534, gid: 65_534 } as const;

/** A package in a folder that is closed to `NOBODY`, and the folder of a gateway for a copy of it. */
function closedPackage(symlinks: string) {
  const dir = mkdtempSync(join(tmpdir(), 'svc-binaries-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const [root, copyTo] = [join(dir, 'closed', 'package'), join(dir, 'postgres')];
  for (const folder of [join(root, 'native', 'bin'), join(root, 'native', 'lib'), copyTo])
    mkdirSync(folder, { recursive: true });
  for (const file of ['bin/postgres', 'bin/initdb', 'lib/libpq.so.5.18'])
    writeFileSync(join(root, 'native', file), file);
  writeFileSync(join(root, 'native', 'pg-symlinks.json'), symlinks);
  chmodSync(join(dir, 'closed'), 0o700);
  return { copyTo, found: { root, version: '18.4.0' } };
}

describe('postgres binaries', () => {
  test('a package that PostgreSQL cannot reach is copied with its links and runs', async () => {
    const { copyTo, found } = closedPackage('[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]');
    const { postgres, initdb, version } = await locatePostgres(copyTo, NOBODY, found);
    const native = join(copyTo, 'native-18.4.0', 'native');
    expect({ postgres, initdb, version }).toEqual({
      postgres: join(native, 'bin', 'postgres'),
      initdb: join(native, 'bin', 'initdb'),
      version: '18.4.0',
    });
    expect([postgres, initdb].map((program) => lstatSync(program).mode & 0o777)).toEqual([0o755, 0o755]);
    expect(readlinkSync(join(native, 'lib', 'libpq.so.5'))).toBe('libpq.so.5.18');
    expect(await locatePostgres(copyTo, NOBODY, found)).toEqual({ postgres, initdb, version });
  });

  test('removes copies that were cut short or made by another release', async () => {
    const { copyTo, found } = closedPackage('[]');
    for (const left of ['native-18.4.0.4711', 'native-18.3.0', 'native-18.4.0.unfinished'])
      mkdirSync(join(copyTo, left, 'native', 'bin'), { recursive: true });
    mkdirSync(join(copyTo, 'cluster'));
    await locatePostgres(copyTo, NOBODY, found);
    expect(readdirSync(copyTo).sort()).toEqual(['cluster', 'native-18.4.0']);
  });

  test('a copy that fails, as on a full disk, leaves nothing behind', async () => {
    const { copyTo, found } = closedPackage(
      '[{"source":"native/lib/libpq.so.5.18","target":"native/away/libpq.so.5"}]',
    );
    await expect(locatePostgres(copyTo, NOBODY, found)).rejects.toThrow('ENOENT');
    expect(readdirSync(copyTo)).toEqual([]);
    expect(existsSync(found.root)).toBe(true);
  });
});
