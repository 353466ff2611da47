import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-durable-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Runs a script of the built package where no file may be longer than 4096 bytes: of a longer write the system takes
 * the first part.
 */
function runWhereFilesAreShort(script: string): string {
  const module = (path: string) => JSON.stringify(resolve('dist/src', path));
  const source = `import { replaceFile, replaceFileSync } from ${module('system/files.js')};
    import { createCheckpointer } from ${module('audit-log/checkpoint.js')};
    import { generateKeyPairSync } from 'node:crypto';
    ${script}`;
  return execFileSync('sh', ['-c', 'ulimit -f 8; exec "$0" --input-type=module -e "$1"', process.execPath, source], {
    encoding: 'utf8',
  }).trim();
}

describe('durable file', () => {
  test('a write that stops halfway leaves the old file unchanged', () => {
    const folder = newFolder();
    for (const replace of ['replaceFile', 'replaceFileSync']) {
      const path = join(folder, replace);
      writeFileSync(path, 'old');
      const code = runWhereFilesAreShort(`
      try { await ${replace}(${JSON.stringify(path)}, 'x'.repeat(5000)); console.log('replaced'); } catch (error) { console.log(error.code); }`);
      expect({ replace, code, text: readFileSync(path, 'utf8') }).toEqual({ replace, code: 'EFBIG', text: 'old' });
    }
  });

  test('a half-written checkpoint does not count as written', () => {
    const folder = newFolder();
    const outcome = runWhereFilesAreShort(`
    const { record } = createCheckpointer({ directory: ${JSON.stringify(folder)}, key: generateKeyPairSync('ed25519').privateKey, nowMs: () => 0 });
    let id = 0;
    try { for (;;) { record({ id: id + 1, hash: 'a'.repeat(64) }); id += 1; } } catch (error) { console.log(id, error.code); }`);
    const lines = readFileSync(join(folder, 'checkpoints.ndjson'), 'utf8').split('\n').slice(0, -1);
    expect(outcome).toBe(`${lines.length} EFBIG`);
  });
});
