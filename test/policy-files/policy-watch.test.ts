import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type PolicyWatcher, type WatchOptions, watchPolicies } from '../../src/policy-files/policy-watch.ts';

let folder: string;
let watcher: PolicyWatcher | undefined;
let changes: number;

describe('policy watch', () => {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'policy-watch-'));
    changes = 0;
  });
  afterEach(async () => {
    watcher?.close();
    await rm(folder, { recursive: true });
  });

  async function start(path: string, options: WatchOptions = { debounceMs: 20, pollMs: 60_000 }): Promise<void> {
    watcher = watchPolicies(
      path,
      () => {
        changes += 1;
      },
      options,
    );
    await watcher.ready;
  }

  async function changesReach(wanted: number): Promise<void> {
    const deadlineMs = Date.now() + 30_000;
    while (changes < wanted) {
      if (Date.now() > deadlineMs) throw new Error(`${changes} changes were reported, not ${wanted}`);
      await sleep(10);
    }
  }

  test('reports a file written in place, each time', async () => {
    const file = join(folder, 'p.yaml');
    await writeFile(file, 'one');
    await start(file);
    await writeFile(file, 'two');
    await changesReach(1);
    await writeFile(file, 'three');
    await changesReach(2);
  });

  test('reports a file replaced by a rename, each time', async () => {
    const file = join(folder, 'p.yaml');
    await writeFile(file, 'one');
    await start(file);
    for (let round = 1; round <= 3; round += 1) {
      await writeFile(`${file}~`, `round ${round}`);
      await rename(`${file}~`, file);
      await changesReach(round);
    }
  });

  test('reports files added, changed and removed in a folder', async () => {
    await start(folder);
    await writeFile(join(folder, 'a.yaml'), 'one');
    await changesReach(1);
    await writeFile(join(folder, 'a.yaml'), 'another');
    await changesReach(2);
    await rm(join(folder, 'a.yaml'));
    await changesReach(3);
  });

  test('reports a symlink swapped as mounted config maps do', async () => {
    for (const version of ['v1', 'v2']) {
      await mkdir(join(folder, version));
      await writeFile(join(folder, version, 'p.yaml'), version);
    }
    await symlink('v1', join(folder, '..data'));
    await symlink(join('..data', 'p.yaml'), join(folder, 'p.yaml'));
    await start(folder);
    await symlink('v2', join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    await changesReach(1);
  });

  test('polling finds the change where the system reports nothing', async () => {
    const target = join(folder, 'elsewhere');
    await mkdir(target);
    await mkdir(join(folder, 'watched'));
    await writeFile(join(target, 'p.yaml'), 'one');
    // Changes behind a symlink make no event in the watched folder.
    await symlink(join(target, 'p.yaml'), join(folder, 'watched', 'p.yaml'));
    await start(join(folder, 'watched'), { debounceMs: 20, pollMs: 50 });
    await writeFile(join(target, 'p.yaml'), 'another');
    await changesReach(1);
  });

  test('polling reports a set that is still being written once, when it is complete', async () => {
    const target = join(folder, 'elsewhere');
    await mkdir(target);
    await mkdir(join(folder, 'watched'));
    for (const name of ['a.yaml', 'b.yaml', 'c.yaml', 'd.yaml']) {
      await writeFile(join(target, name), 'old');
      await symlink(join(target, name), join(folder, 'watched', name)); // as above
    }
    const reads: string[] = [];
    const read = () =>
      ['a.yaml', 'b.yaml', 'c.yaml', 'd.yaml'].map((name) => readFileSync(join(target, name), 'utf8')).join(' ');
    watcher = watchPolicies(
      join(folder, 'watched'),
      () => {
        reads.push(read());
        changes += 1;
      },
      { debounceMs: 3_000, pollMs: 10 },
    );
    await watcher.ready;
    for (const name of ['a.yaml', 'b.yaml', 'c.yaml', 'd.yaml']) {
      await writeFile(join(target, name), 'changed');
      await sleep(60);
    }
    await changesReach(1);
    expect(reads).toEqual(['changed changed changed changed']);
  });

  test('reports a change in time in a folder where other programs keep writing', async () => {
    await writeFile(join(folder, 'p.yaml'), 'one');
    await start(join(folder, 'p.yaml'), { debounceMs: 100, pollMs: 60_000 });
    const noise = setInterval(() => writeFileSync(join(folder, 'log.txt'), 'x'), 10);
    try {
      await writeFile(join(folder, 'p.yaml'), 'another');
      await changesReach(1);
    } finally {
      clearInterval(noise);
    }
  });

  test('reports several writes once, other files not at all, and nothing after close', async () => {
    await writeFile(join(folder, 'a.yaml'), 'one');
    await start(folder, { debounceMs: 100, pollMs: 60_000 });
    for (let round = 0; round < 5; round += 1) writeFileSync(join(folder, 'a.yaml'), `round ${round}`);
    writeFileSync(join(folder, 'notes.txt'), 'not a policy');
    await changesReach(1);
    await sleep(300);
    expect(changes).toBe(1);
    watcher?.close();
    await writeFile(join(folder, 'a.yaml'), 'after closing');
    await sleep(300);
    expect(changes).toBe(1);
  });
});
