import { spawnSync } from 'node:child_process';
import { createPublicKey, hash, verify } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/app/package-files.ts';
import {
  createCheckpointer,
  loadCheckpointKey,
  readAnchor,
  readCheckpoints,
  writeAnchor,
} from '../../src/audit-log/checkpoint.ts';
import { AuditReader } from '../../src/audit-log/reader.ts';
import { applyRetention } from '../../src/audit-log/retention.ts';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { append, freshDirectory, NOON_MS, openWriter, queried } from './log.ts';

const SEGMENT_ONE = '0000000000000001.ndjson';
const segmentsOf = (directory: string) =>
  readdirSync(directory)
    .filter((name) => /^\d{16}\.ndjson$/.test(name))
    .sort();
const many = (count: number) => Array.from({ length: count }, (_, index) => ({ reason: `reason ${index}` }));

/** Ten entries in one segment. */
function tenEntries() {
  const directory = freshDirectory();
  const writer = openWriter(directory);
  append(writer, many(10));
  const head = writer.head();
  writer.close();
  const path = join(directory, SEGMENT_ONE);
  return { directory, head, path, lines: readFileSync(path, 'utf8').trimEnd().split('\n') };
}

/** Ten entries in each. */
function threeSegments(): string {
  const directory = freshDirectory();
  const writer = openWriter(directory, { segmentBytes: 3000 });
  for (let nth = 0; nth < 3; nth += 1) append(writer, many(10));
  writer.close();
  return directory;
}

describe('verify', () => {
  test('an untouched log of several segments is whole, and its head is shown', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 3000 });
    for (let nth = 0; nth < 20; nth += 1) append(writer, many(7));
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
        numRuns: 300,
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
    for (let nth = 0; nth < 5; nth += 1) append(writer, many(10));
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
    const goOn = (maxBytes: number): void => {
      append(writer, many(10));
      checkpointer.record(writer.head());
      applyRetention({ directory, maxBytes, key, nowMs: NOON_MS });
    };
    for (let nth = 0; nth < 4; nth += 1) goOn(Infinity);
    const block =
      /```sh\n(cp data\/audit\/checkpoints[^`]*)```/.exec(
        readFileSync(join(PACKAGE_ROOT, 'docs/operations.md'), 'utf8'),
      )?.[1] ?? '';
    const steps = block.trim().split('\n');
    expect(steps).toHaveLength(4);
    for (const step of steps) {
      expect(spawnSync('sh', ['-c', step], { cwd: base })).toMatchObject({ status: 0 });
      goOn(21_000);
    }
    writer.close();
    expect(readAnchor(join(base, 'copy'))).toMatchObject({ first_id: expect.any(Number) });
    expect(await verifyAuditLog(join(base, 'copy'), { checkpointKey: createPublicKey(key) })).toMatchObject({
      ok: true,
      checkpoints: 2,
    });
  });

  /** 30 entries; checkpoints at 10 and 20; the key's path, in a folder beside the log. */
  function checkpointed() {
    const base = freshDirectory();
    const directory = join(base, 'audit');
    const key = loadCheckpointKey(join(base, 'audit-checkpoint.pem'));
    const writer = openWriter(directory, { segmentBytes: 3000 });
    const checkpointer = createCheckpointer({ directory, key, nowMs: () => NOON_MS });
    checkpointer.record(writer.head()); // Nor is that of an empty log.
    for (let nth = 0; nth < 3; nth += 1) {
      append(writer, many(10));
      if (nth < 2) checkpointer.record(writer.head());
      if (nth < 2) checkpointer.record(writer.head()); // The same head again is not recorded.
    }
    const head = writer.head();
    writer.close();
    return { base, directory, key, publicKey: createPublicKey(key), head };
  }

  test.each([
    ['whoever has the key', true],
    ['whoever has it not, and must take its word', false],
  ])('a signed checkpoint reveals to %s a cut tail and a rebuilt chain', async (_who, hasKey) => {
    const { directory, publicKey, head } = checkpointed();
    const options = { checkpointKey: hasKey ? publicKey : undefined };
    expect(await verifyAuditLog(directory, options)).toEqual({
      ok: true,
      entries: 30,
      firstId: 1,
      head,
      checkpoints: 2,
      checkpointedUpTo: 20,
      checkpointedAt: '2026-03-01T12:00:00.000Z',
      witnessedUpTo: 0,
      witnessedAt: undefined,
      headAt: '2026-03-01T12:00:00.000Z',
      tornBytes: 0,
    });
    unlinkSync(join(directory, '0000000000000021.ndjson'));
    expect(await verifyAuditLog(directory, options)).toMatchObject({ ok: true, entries: 20 });
    const second = join(directory, '0000000000000011.ndjson');
    const lines = readFileSync(second, 'utf8').trimEnd().split('\n');
    writeFileSync(second, `${lines.slice(0, 7).join('\n')}\n`);
    expect(await verifyAuditLog(directory, options)).toMatchObject({
      ok: false,
      firstBroken: {
        id: 18,
        segment: '0000000000000011.ndjson',
        line: 8,
        problem: 'cut',
        detail: 'the checkpoint from 2026-03-01T12:00:00.000Z covers entry 20, but the log ends at 17',
      },
    });
    const forger = openWriter(directory, { segmentBytes: 3000 });
    append(forger, many(5));
    forger.close();
    expect(await verifyAuditLog(directory, options)).toMatchObject({
      ok: false,
      firstBroken: { id: 20, problem: 'rewritten' },
    });
  });

  test('a checkpoint of the first entry vouches for it, a half-written one for nothing', async () => {
    const directory = freshDirectory();
    const key = loadCheckpointKey(join(freshDirectory(), 'key.pem'));
    const writer = openWriter(directory);
    append(writer, many(1));
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record(writer.head());
    append(writer, many(1));
    writer.close();
    appendFileSync(join(directory, 'checkpoints.ndjson'), '{"id":2,"ha');
    expect(await verifyAuditLog(directory, { checkpointKey: createPublicKey(key) })).toMatchObject({
      ok: true,
      entries: 2,
      checkpoints: 1,
      checkpointedUpTo: 1,
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

  test('a checkpoint not signed by the key is a forgery, and retention keeps it', async () => {
    const { directory, key, publicKey } = checkpointed();
    const path = join(directory, 'checkpoints.ndjson');
    const text = readFileSync(path, 'utf8');
    expect(text.split('\n')).toHaveLength(3);
    writeFileSync(path, text.replace('"id":20', '"id":21'));
    expect(await verifyAuditLog(directory, { checkpointKey: publicKey })).toMatchObject({
      ok: false,
      firstBroken: { segment: 'checkpoints.ndjson', line: 2, problem: 'forged' },
    });
    for (const line of ['null', '{}', text.split('\n')[0]?.replace('{', '{"note":"unsigned",'), 'nonsense']) {
      writeFileSync(path, `${line}\n${text}`);
      expect(await verifyAuditLog(directory)).toMatchObject({ ok: false, firstBroken: { line: 1, problem: 'forged' } });
    }
    expect(applyRetention({ directory, maxBytes: 1, key, nowMs: NOON_MS }).deletedSegments).toHaveLength(2);
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: false, firstBroken: { line: 1, problem: 'forged' } });
  });

  test('a half-written checkpoint is replaced; the key is created once, owner-only', () => {
    const { base, directory, key } = checkpointed();
    expect(statSync(join(base, 'audit-checkpoint.pem')).mode & 0o777).toBe(0o600);
    const again = loadCheckpointKey(join(base, 'audit-checkpoint.pem'));
    expect(again.equals(key)).toBe(true);
    appendFileSync(join(directory, 'checkpoints.ndjson'), '{"id":30,"ha');
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record({ id: 30, hash: 'a'.repeat(64) });
    expect(readCheckpoints(directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([10, 20, 30]);
  });

  test('a damaged line of checkpoints does not affect the next one', () => {
    const { directory, key } = checkpointed();
    const path = join(directory, 'checkpoints.ndjson');
    const bytes = readFileSync(path);
    bytes.fill(0xff, 10, 20); // no text in UTF-8
    writeFileSync(path, bytes);
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record({ id: 30, hash: 'a'.repeat(64) });
    expect(readCheckpoints(directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([undefined, 20, 30]);
  });

  test('a restart does not sign the last signed head again, nor an empty log', () => {
    const { directory, key } = checkpointed();
    const [, last] = readCheckpoints(directory);
    const again = createCheckpointer({ directory, key, nowMs: () => NOON_MS });
    again.record({ id: 20, hash: last?.checkpoint?.hash ?? '' });
    again.record({ id: 0, hash: '0'.repeat(64) });
    expect(readCheckpoints(directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([10, 20]);
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

  test('a checkpoint and the anchor verify with the public key as documented', async () => {
    const { directory, head, lines } = tenEntries();
    const key = loadCheckpointKey(join(freshDirectory(), 'key.pem'));
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record(head);
    const { prev_hash: prevHash } = JSON.parse(lines[4] ?? '') as { prev_hash: string };
    writeAnchor({ directory, firstId: 5, prevHash, key, nowMs: NOON_MS });
    const signatureOf = (name: string): Buffer =>
      Buffer.from(
        (JSON.parse(readFileSync(join(directory, name), 'utf8')) as { signature: string }).signature,
        'base64url',
      );
    const isSigned = (text: string, name: string) =>
      verify(null, Buffer.from(text), createPublicKey(key), signatureOf(name));
    expect(isSigned(`svc-audit-checkpoint\n10\n${head.hash}\n2026-03-01T12:00:00.000Z`, 'checkpoints.ndjson')).toBe(
      true,
    );
    expect(isSigned(`svc-audit-anchor\n5\n${prevHash}\n2026-03-01T12:00:00.000Z`, 'anchor.json')).toBe(true);
  });

  test('retention deletes the oldest segments by age and size, and the rest verifies', async () => {
    const base = freshDirectory();
    const directory = join(base, 'audit');
    const key = loadCheckpointKey(join(base, 'key.pem'));
    const checkpointKey = createPublicKey(key);
    const writer = openWriter(directory, { segmentBytes: 3000 });
    const checkpointer = createCheckpointer({ directory, key, nowMs: () => NOON_MS });
    for (let nth = 0; nth < 6; nth += 1) {
      append(
        writer,
        many(10).map((draft) => ({ ...draft, timestampMs: NOON_MS + nth * 1000 })),
      );
      checkpointer.record(writer.head());
    }
    const reader = new AuditReader(directory);
    while (await reader.refresh());
    expect(
      applyRetention({ directory, maxAgeMs: 10_000, maxBytes: 1e9, key, nowMs: NOON_MS + 10_000 }).deletedSegments,
    ).toEqual([]);
    const first = readFileSync(join(directory, SEGMENT_ONE));
    const bytes = first.length + statSync(join(directory, '0000000000000011.ndjson')).size;
    expect(readdirSync(directory)).toContain('0000000000000001.idx');
    expect(applyRetention({ directory, maxAgeMs: 10_000, key, nowMs: NOON_MS + 11_001 })).toEqual({
      deletedSegments: ['0000000000000001.ndjson', '0000000000000011.ndjson'],
      deletedBytes: bytes,
      isCut: false,
    });
    expect(readdirSync(directory)).not.toContain('0000000000000001.idx');
    expect(readCheckpoints(directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([30, 40, 50, 60]);
    // Left behind by a crash: what the anchor vouches for begins later.
    writeFileSync(join(directory, SEGMENT_ONE), first);
    expect(await verifyAuditLog(directory, { checkpointKey })).toMatchObject({
      ok: true,
      entries: 40,
      firstId: 21,
      checkpoints: 4,
      head: writer.head(),
    });
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, entries: 40, firstId: 21, checkpoints: 4 });
    unlinkSync(join(directory, SEGMENT_ONE));
    const page = await queried(reader, {}, { perPage: 1000 });
    expect(page).toMatchObject({ ok: true, value: { next: undefined } });
    expect(page.ok && page.value.items.map(({ id }) => id)).toEqual(
      Array.from({ length: 40 }, (_, index) => 60 - index),
    );

    const copy = join(base, 'copy');
    cpSync(directory, copy, { recursive: true });
    expect(applyRetention({ directory, maxBytes: 1, key, nowMs: NOON_MS }).deletedSegments).toHaveLength(3);
    append(writer, many(1));
    expect(await verifyAuditLog(directory, { checkpointKey })).toMatchObject({
      ok: true,
      entries: 11,
      firstId: 51,
      head: { id: 61 },
    });
    writer.close();
    const reopened = openWriter(directory);
    expect(reopened.head().id).toBe(61);
    reopened.close();

    // Deleted by somebody else: no anchor vouches for it.
    unlinkSync(join(copy, '0000000000000021.ndjson'));
    expect(await verifyAuditLog(copy, { checkpointKey })).toMatchObject({
      ok: false,
      firstBroken: { id: 21, problem: 'removed' },
    });
    const anchor = JSON.parse(readFileSync(join(copy, 'anchor.json'), 'utf8')) as object;
    writeFileSync(join(copy, 'anchor.json'), JSON.stringify({ ...anchor, first_id: 31 }));
    expect(await verifyAuditLog(copy, { checkpointKey })).toMatchObject({
      ok: false,
      firstBroken: { segment: 'anchor.json', problem: 'forged' },
    });
    writeFileSync(join(copy, 'anchor.json'), 'nonsense');
    expect(await verifyAuditLog(copy)).toMatchObject({
      ok: false,
      firstBroken: { segment: 'anchor.json', problem: 'forged' },
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

  test('retention vouches for what it deleted, not for what somebody else deleted', async () => {
    const directory = threeSegments();
    unlinkSync(join(directory, SEGMENT_ONE));
    const key = loadCheckpointKey(join(freshDirectory(), 'key.pem'));
    expect(applyRetention({ directory, maxAgeMs: 1e9, maxBytes: 1e9, key, nowMs: NOON_MS }).deletedSegments).toEqual(
      [],
    );
    expect(await verifyAuditLog(directory, { checkpointKey: createPublicKey(key) })).toMatchObject({
      ok: false,
      firstBroken: { id: 1, problem: 'removed' },
    });
  });

  test('keeps the newest segment with an entry, and all before an unproven one', () => {
    const directory = threeSegments();
    const key = loadCheckpointKey(join(freshDirectory(), 'key.pem'));
    const retain = () => applyRetention({ directory, maxBytes: 1, key, nowMs: NOON_MS });
    const third = join(directory, '0000000000000021.ndjson');
    const whole = readFileSync(third, 'utf8');
    writeFileSync(third, whole.replace('{"id":21,', '{"id":zz,'));
    expect(retain()).toEqual({ deletedSegments: [], deletedBytes: 0, isCut: false });
    writeFileSync(third, ''); // begun, and nothing written yet
    expect(retain().deletedSegments).toEqual(['0000000000000001.ndjson']);
    writeFileSync(third, whole);
    expect(retain().deletedSegments).toEqual(['0000000000000011.ndjson']);
    expect(segmentsOf(directory)).toEqual(['0000000000000021.ndjson']);
  });

  test('retention keeps what just fits, the newest checkpoint, and large entries', async () => {
    const base = freshDirectory();
    const directory = join(base, 'audit');
    const key = loadCheckpointKey(join(base, 'key.pem'));
    const writer = openWriter(directory, { segmentBytes: 3000 });
    for (let nth = 0; nth < 3; nth += 1) append(writer, [{ reason: 'x'.repeat(100_000) }]);
    createCheckpointer({ directory, key, nowMs: () => NOON_MS }).record({ id: 1, hash: 'a'.repeat(64) });
    const sizeOf = (name: string) => statSync(join(directory, name)).size;
    const lastTwo = sizeOf('0000000000000002.ndjson') + sizeOf('0000000000000003.ndjson');
    const retain = () => applyRetention({ directory, maxBytes: lastTwo, key, nowMs: NOON_MS }).deletedSegments;
    expect(retain()).toEqual([SEGMENT_ONE]);
    expect(retain()).toEqual([]);
    expect(readCheckpoints(directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([1]);
    expect(await verifyAuditLog(directory, { checkpointKey: createPublicKey(key) })).toMatchObject({
      ok: true,
      entries: 2,
      firstId: 2,
      head: writer.head(),
    });
    writer.close();
  });

  test('a segment with a clock far ahead is deleted with its neighbours', async () => {
    const base = freshDirectory();
    const directory = join(base, 'audit');
    const key = loadCheckpointKey(join(base, 'key.pem'));
    const writer = openWriter(directory, { segmentBytes: 3000 });
    const inTenYearsMs = NOON_MS + 10 * 365 * 86_400_000;
    for (const timestampMs of [inTenYearsMs, NOON_MS, NOON_MS + 1000, NOON_MS + 60_000, NOON_MS + 60_000])
      append(
        writer,
        many(10).map((draft) => ({ ...draft, timestampMs })),
      );
    writer.close();
    expect(applyRetention({ directory, maxAgeMs: 10_000, key, nowMs: NOON_MS + 5_000 }).deletedSegments).toEqual([]);
    expect(applyRetention({ directory, maxAgeMs: 10_000, key, nowMs: NOON_MS + 60_000 }).deletedSegments).toEqual([
      '0000000000000001.ndjson',
      '0000000000000011.ndjson',
      '0000000000000021.ndjson',
    ]);
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, entries: 20, firstId: 31 });
  });

  // Looked at once the anchor has been read and before the segments are; and before the first of them is opened.
  test.each(['checkpointKey', 'onProgress'] as const)(
    'segments deleted by retention during verification are not called removed (%s)',
    async (moment) => {
      const base = freshDirectory();
      const directory = join(base, 'audit');
      const key = loadCheckpointKey(join(base, 'key.pem'));
      const writer = openWriter(directory, { segmentBytes: 3000 });
      for (let nth = 0; nth < 6; nth += 1) append(writer, many(10));
      writer.close();
      let deleted: readonly string[] | undefined;
      const options = Object.defineProperty({}, moment, {
        get() {
          deleted ??= applyRetention({ directory, maxBytes: 6_000, key, nowMs: NOON_MS }).deletedSegments;
          return moment === 'checkpointKey' ? createPublicKey(key) : undefined;
        },
      });
      const report = await verifyAuditLog(directory, options);
      expect(deleted?.length).toBeGreaterThan(0);
      expect(report).toMatchObject({ ok: true, head: writer.head() });
    },
  );

  test('a segment that cannot be read is no break: the file system says why', async () => {
    const { directory } = tenEntries();
    mkdirSync(join(directory, '0000000000000011.ndjson'));
    await expect(verifyAuditLog(directory)).rejects.toThrow('EISDIR');
  });
});
