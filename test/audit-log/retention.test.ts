import { createPublicKey } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createCheckpointer, loadCheckpointKey, readCheckpoints } from '../../src/audit-log/checkpoint.ts';
import { AuditReader } from '../../src/audit-log/reader.ts';
import { applyRetention } from '../../src/audit-log/retention.ts';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import {
  append,
  freshDirectory,
  NOON_MS,
  numbered,
  openWriter,
  queried,
  SEGMENT_ONE,
  segmentsOf,
  shrunk,
  threeSegments,
} from './log.ts';

describe('retention', () => {
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
        numbered(10).map((draft) => ({ ...draft, timestampMs: NOON_MS + nth * 1000 })),
      );
      checkpointer.record(writer.head());
    }
    const reader = new AuditReader(directory);
    while (await reader.refresh());
    expect(applyRetention({ directory, maxAgeMs: 10_000, key, nowMs: NOON_MS + 10_000 }).deletedSegments).toEqual([]);
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
    expect(await shrunk(directory, 1, key)).toHaveLength(3);
    append(writer, numbered(1));
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

  test('retention vouches for what it deleted, not for what somebody else deleted', async () => {
    const directory = threeSegments();
    unlinkSync(join(directory, SEGMENT_ONE));
    const key = loadCheckpointKey(join(freshDirectory(), 'key.pem'));
    expect(applyRetention({ directory, maxAgeMs: 1e9, key, nowMs: NOON_MS }).deletedSegments).toEqual([]);
    expect(await verifyAuditLog(directory, { checkpointKey: createPublicKey(key) })).toMatchObject({
      ok: false,
      firstBroken: { id: 1, problem: 'removed' },
    });
  });

  test('keeps the newest segment with an entry, and all before an unproven one', async () => {
    const directory = threeSegments();
    const key = loadCheckpointKey(join(freshDirectory(), 'key.pem'));
    const retain = () => shrunk(directory, 1, key);
    const third = join(directory, '0000000000000021.ndjson');
    const whole = readFileSync(third, 'utf8');
    writeFileSync(third, whole.replace('{"id":21,', '{"id":zz,'));
    expect(await retain()).toEqual(['0000000000000001.ndjson']);
    writeFileSync(third, ''); // begun, and nothing written yet
    expect(await retain()).toEqual([]);
    writeFileSync(third, whole);
    expect(await retain()).toEqual(['0000000000000011.ndjson']);
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
    const retain = () => shrunk(directory, lastTwo, key);
    expect(await retain()).toEqual([SEGMENT_ONE]);
    expect(await retain()).toEqual([]);
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
        numbered(10).map((draft) => ({ ...draft, timestampMs })),
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
      for (let nth = 0; nth < 6; nth += 1) append(writer, numbered(10));
      writer.close();
      let deleted: readonly string[] | undefined;
      const options = Object.defineProperty({}, moment, {
        get() {
          deleted ??= applyRetention({ directory, maxAgeMs: 1, key, nowMs: NOON_MS + 10 }).deletedSegments;
          return moment === 'checkpointKey' ? createPublicKey(key) : undefined;
        },
      });
      const report = await verifyAuditLog(directory, options);
      expect(deleted?.length).toBeGreaterThan(0);
      expect(report).toMatchObject({ ok: true, head: writer.head() });
    },
  );
});
