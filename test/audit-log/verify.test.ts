import { spawnSync } from 'node:child_process';
import { createPublicKey, hash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createCheckpointer, loadCheckpointKey, readAnchor } from '../../src/audit-log/checkpoint.ts';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { runs } from '../support/runs.ts';
import {
  append,
  freshDirectory,
  NOON_MS,
  numbered,
  ofOrg,
  openWriter,
  SEGMENT_ONE,
  segmentsOf,
  shrunk,
  tenEntries,
  threeSegments,
} from './log.ts';

describe('verify', () => {
  test('an untouched log of several segments is whole, and its head is shown', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 3000 });
    for (let nth = 0; nth < 20; nth += 1) append(writer, numbered(7));
    const progress: number[] = [];
    const report = await verifyAuditLog(directory, { onProgress: (entries) => progress.push(entries) });
    expect(report).toEqual({
      ok: true,
      entries: 140,
      firstId: 1,
      head: writer.head(),
      checkpoints: 0,
      checkpointedUpTo: 0,
      checkpointedAt: undefined,
      witnessedUpTo: 0,
      witnessedAt: undefined,
      headAt: '2026-03-01T12:00:00.000Z',
      tornBytes: 0,
      kept: 0,
    });
    expect(progress.at(-1)).toBe(140);
    writer.close();
    expect(await verifyAuditLog(join(directory, 'nowhere'))).toMatchObject({ ok: true, entries: 0, head: { id: 0 } });
  });

  test('any changed byte makes its entry the first broken one', async () => {
    const { directory, path, lines } = tenEntries();
    const whole = readFileSync(path);
    const entryAt = (at: number) =>
      lines.findIndex((_, index) => at < lines.slice(0, index + 1).reduce((sum, line) => sum + line.length + 1, 0)) + 1;
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const changed = Buffer.from(whole);
        changed[at] = (changed[at] ?? 0) ^ flip;
        writeFileSync(path, changed);
        expect(await verifyAuditLog(directory)).toMatchObject({
          ok: false,
          entries: entryAt(at) - 1,
          firstBroken: { id: entryAt(at), line: entryAt(at), segment: SEGMENT_ONE, problem: 'changed' },
        });
      }),
      {
        numRuns: runs(100),
        examples: [
          [whole.length - 1, 1],
          [0, 1],
          [lines[0]?.length ?? 0, 0x2a],
        ],
      },
    );
  });

  test('removed, reordered, duplicated or resealed entries are named', async () => {
    const { directory, path, lines } = tenEntries();
    const written = async (order: readonly number[]) => {
      writeFileSync(path, order.map((id) => `${lines[id - 1]}\n`).join(''));
      const report = await verifyAuditLog(directory);
      return report.ok
        ? 'whole'
        : `${report.firstBroken.id} ${report.firstBroken.problem} in line ${report.firstBroken.line}`;
    };
    expect(await written([1, 2, 3, 4, 6, 7, 8, 9, 10])).toBe('5 removed in line 5');
    expect(await written([3, 4, 5, 6, 7, 8, 9, 10])).toBe('1 removed in line 1');
    expect(await written([1, 2, 4, 3, 5, 6, 7, 8, 9, 10])).toBe('3 reordered in line 3');
    expect(await written([2, 3, 4, 5, 6, 7, 8, 9, 10, 1])).toBe('1 reordered in line 1');
    expect(await written([1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10])).toBe('4 inserted in line 4');
    expect(await written([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).toBe('whole');
  });

  test('an entry changed with its hash is named: its successor holds the old hash', async () => {
    const { directory, path, lines } = tenEntries();
    const sealed = (lines[4] ?? '').replace('reason 4', 'reason X').slice(0, -75);
    const resealed = `${sealed},"hash":"${hash('sha256', sealed, 'hex')}"}`;
    writeFileSync(path, `${[...lines.slice(0, 4), resealed, ...lines.slice(5)].join('\n')}\n`);
    expect(await verifyAuditLog(directory)).toMatchObject({
      ok: false,
      firstBroken: { id: 5, line: 5, problem: 'changed' },
    });
  });

  test('a log whose first entry names a predecessor does not start at the beginning', async () => {
    const { directory, path, lines } = tenEntries();
    const sealed = (lines[0] ?? '')
      .replace(`"prev_hash":"${'0'.repeat(64)}"`, `"prev_hash":"${'1'.repeat(64)}"`)
      .slice(0, -75);
    writeFileSync(path, `${sealed},"hash":"${hash('sha256', sealed, 'hex')}"}\n`);
    expect(await verifyAuditLog(directory)).toMatchObject({
      ok: false,
      entries: 0,
      firstBroken: { id: 1, line: 1, segment: SEGMENT_ONE, problem: 'changed' },
    });
  });

  test('a segment removed from the middle is missed at its first entry', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 3000 });
    for (let nth = 0; nth < 5; nth += 1) append(writer, numbered(10));
    writer.close();
    expect(segmentsOf(directory)).toHaveLength(5);
    unlinkSync(join(directory, '0000000000000021.ndjson'));
    expect(await verifyAuditLog(directory)).toMatchObject({
      ok: false,
      firstBroken: { id: 21, segment: '0000000000000031.ndjson', problem: 'removed' },
    });
  });

  test('a log copied as documented is whole, although it is signed and cut meanwhile', async () => {
    const base = freshDirectory();
    const directory = join(base, 'data', 'audit');
    const key = loadCheckpointKey(join(base, 'audit-checkpoint.pem'));
    const writer = openWriter(directory, { segmentBytes: 3000 });
    const checkpointer = createCheckpointer({ directory, key, nowMs: () => NOON_MS });
    const goOn = async (maxBytes: number): Promise<void> => {
      append(writer, numbered(10));
      checkpointer.record(writer.head());
      await shrunk(directory, maxBytes, key);
    };
    append(writer, [{ ...ofOrg('beta'), reason: 'kept' }]);
    for (let nth = 0; nth < 4; nth += 1) await goOn(Infinity);
    const block =
      /```sh\n(cp data\/audit\/checkpoints[^`]*)```/.exec(
        readFileSync(join(PACKAGE_ROOT, 'docs/operations.md'), 'utf8'),
      )?.[1] ?? '';
    const steps = block.trim().split('\n');
    expect(steps).toHaveLength(5);
    for (const step of steps) {
      expect(spawnSync('sh', ['-c', step], { cwd: base })).toMatchObject({ status: 0 });
      await goOn(21_000);
    }
    writer.close();
    expect(readAnchor(join(base, 'copy'))).toMatchObject({ first_id: expect.any(Number) });
    expect(await verifyAuditLog(join(base, 'copy'), { checkpointKey: createPublicKey(key) })).toMatchObject({
      ok: true,
      kept: 1,
    });
  });

  test('a failed append undone during verification is no break', async () => {
    const { directory, path } = tenEntries();
    const { size } = statSync(path);
    appendFileSync(path, 'half of an entry, and then\n');
    let looks = 0;
    const options = {
      // Looked at as each reading of a segment begins.
      get onProgress() {
        looks += 1;
        if (looks === 2) truncateSync(path, size);
        return undefined;
      },
    };
    expect(await verifyAuditLog(directory, options)).toMatchObject({ ok: true, entries: 10, tornBytes: 0 });
  });

  test.each([
    ['with a zero before it', '{"id":010,'],
    ['under another name', '{"ix":10,'],
    ['of no digits', '{"id":0xa,'],
  ])('an entry whose id is written %s is named, even with a matching hash', async (_how, start) => {
    const { directory, path, lines } = tenEntries();
    const [sealed = ''] = (lines[9] ?? '').replace('{"id":10,', start).split(',"hash":');
    writeFileSync(path, [...lines.slice(0, 9), `${sealed},"hash":"${hash('sha256', sealed)}"}`, ''].join('\n'));
    expect(await verifyAuditLog(directory)).toMatchObject({
      ok: false,
      entries: 9,
      firstBroken: { id: 10, problem: 'changed', detail: 'the line is not an entry' },
    });
  });

  test('a line being written or torn is no break in the newest segment only', async () => {
    const { directory, path, lines } = tenEntries();
    truncateSync(path, statSync(path).size - 30);
    expect(await verifyAuditLog(directory)).toMatchObject({
      ok: true,
      entries: 9,
      tornBytes: (lines[9]?.length ?? 0) + 1 - 30,
    });

    const older = threeSegments();
    truncateSync(join(older, SEGMENT_ONE), statSync(join(older, SEGMENT_ONE)).size - 30);
    expect(await verifyAuditLog(older)).toMatchObject({
      ok: false,
      entries: 9,
      firstBroken: { id: 10, line: 10, segment: SEGMENT_ONE, problem: 'changed' },
    });
  });

  test('a file without an end of line is named without reading it into memory', async () => {
    const { directory, path } = tenEntries();
    appendFileSync(path, Buffer.alloc(40 * 1024 * 1024, 'x'));
    expect(await verifyAuditLog(directory)).toMatchObject({
      ok: false,
      entries: 10,
      firstBroken: { id: 11, line: 11, problem: 'changed' },
    });
  });

  test('the ten lines of Python in the manual agree', async (context) => {
    const { directory, head, path } = tenEntries();
    const manual = readFileSync(new URL('../../src/audit-log/verify.ts', import.meta.url), 'utf8');
    const program = manual
      .split('\n')
      .filter((line) => line.startsWith(' *   '))
      .map((line) => line.slice(5))
      .join('\n');
    const run = () => spawnSync('python3', ['-c', program, directory], { encoding: 'utf8' });
    const whole = run();
    if (whole.error !== undefined) return context.skip('there is no python3 here');
    expect(whole.stdout).toBe(`10 entries, head ${head.hash}\n`);
    writeFileSync(path, readFileSync(path, 'utf8').replace('reason 4', 'reason X'));
    expect(run().stderr).toContain('entry 5 was changed');
  });

  test('the ten lines of Python in the documents agree, also on a signed head', async (context) => {
    const { directory, head, path } = tenEntries();
    const signed = { id: head.id, hash: head.hash, timestamp: '2026-01-31T12:00:00.000Z', signature: 'x' };
    writeFileSync(join(directory, 'checkpoints.ndjson'), `${JSON.stringify(signed)}\n`);
    const folder = freshDirectory();
    cpSync(directory, join(folder, 'data', 'audit'), { recursive: true });
    const document = readFileSync(join(PACKAGE_ROOT, 'docs/audit-log.md'), 'utf8');
    const program = /```python\n([\s\S]+?)```/.exec(document)?.[1] ?? '';
    const run = () => spawnSync('python3', ['-c', program], { encoding: 'utf8', cwd: folder });
    const whole = run();
    if (whole.error !== undefined) return context.skip('there is no python3 here');
    expect(whole.stdout).toBe(`intact up to ${head.hash}\n`);
    writeFileSync(
      join(folder, 'data', 'audit', SEGMENT_ONE),
      readFileSync(path, 'utf8').replace('reason 4', 'reason X'),
    );
    expect(run().stderr).toContain('changed: 5');
  });

  test('a segment that cannot be read is no break: the file system says why', async () => {
    const { directory } = tenEntries();
    mkdirSync(join(directory, '0000000000000011.ndjson'));
    await expect(verifyAuditLog(directory)).rejects.toThrow('EISDIR');
  });
});
