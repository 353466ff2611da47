/** The log on a disk that fails in the middle of something, and on one that loses its power. */
import { createPublicKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createCheckpointer, loadCheckpointKey, readCheckpoints } from '../../src/audit-log/checkpoint.ts';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { fragileDisk, type Image, type Step } from '../support/fragile-disk.ts';
import { append, freshDirectory, NOON_MS, openWriter, shrunk } from './log.ts';

vi.mock('node:fs', async (original) => (await import('../support/fragile-disk.ts')).fragileDisk.over(await original()));
vi.mock('node:fs/promises', async (original) =>
  (await import('../support/fragile-disk.ts')).fragileDisk.overPromises(
    await vi.importActual('node:fs'),
    await original(),
  ),
);

/** A folder with what was left. */
function restored(image: Image): string {
  const directory = freshDirectory();
  for (const [name, content] of image) writeFileSync(join(directory, name), content);
  return directory;
}

describe('disk', () => {
  test('keeps an append with `always` through a power loss, also in a new segment', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { fsync: 'always', segmentBytes: 1_000 });
    const images: Image[] = [];
    for (let nth = 1; nth <= 6; nth += 1) {
      append(writer, [{}, { reason: 'x'.repeat(100 * nth) }]);
      images.push(fragileDisk.withoutPower(directory));
    }
    writer.close();
    const left = await Promise.all(images.map((image) => verifyAuditLog(restored(image))));
    expect(left).toMatchObject([2, 4, 6, 8, 10, 12].map((entries) => ({ ok: true, entries, tornBytes: 0 })));
  });

  test.each([
    ['goes on in', 1_000_000],
    ['follows', 1_000],
  ])("keeps an append with `always` even where it %s a dead process's segment", async (_how, segmentBytes) => {
    const directory = freshDirectory();
    const before = openWriter(directory, { fsync: 'never' });
    append(before, [{ reason: 'x'.repeat(1_000) }]);
    before.close();
    const writer = openWriter(directory, { fsync: 'always', segmentBytes });
    append(writer, [{}]);
    const left = restored(fragileDisk.withoutPower(directory));
    writer.close();
    expect(await verifyAuditLog(left)).toMatchObject({ ok: true, entries: 2 });
  });

  test.each(['flush', 'flushNow'] as const)(
    'keeps a head with `never` that %s reports as on disk through a power loss',
    async (flush) => {
      const directory = freshDirectory();
      const heads: number[] = [];
      for (let run = 1; run <= 3; run += 1) {
        const writer = openWriter(directory, { segmentBytes: 2_000 });
        for (let nth = 1; nth <= 3; nth += 1) {
          const head = await writer[flush]();
          heads.push(head.id);
          expect(await verifyAuditLog(restored(fragileDisk.withoutPower(directory)))).toMatchObject({ ok: true, head });
          append(writer, [{}, { reason: 'x'.repeat(400 * nth) }]);
        }
        writer.close();
      }
      expect(heads).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16]);
    },
  );

  test('a failed flush is retried by the next and leaves later appends to the one after', async () => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 1_000 });
    for (let nth = 0; nth < 2; nth += 1) append(writer, [{ reason: 'x'.repeat(1_000) }]);
    fragileDisk.fail({ flush: 1 });
    await expect(writer.flush()).rejects.toThrow('EIO');
    const flushing = writer.flush();
    append(writer, [{}]);
    const head = await flushing;
    writer.close();
    expect(head.id).toBe(2);
    expect(await verifyAuditLog(restored(fragileDisk.withoutPower(directory)))).toMatchObject({ ok: true, head });
  });

  test('a signed head survives a power loss at once, also the first of a log', () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    const checkpointer = createCheckpointer({
      directory,
      key: loadCheckpointKey(join(freshDirectory(), 'key.pem')),
      nowMs: () => NOON_MS,
    });
    for (const signed of [[1], [1, 2], [1, 2, 3]]) {
      append(writer, [{}]);
      checkpointer.record(writer.flushNow());
      expect(
        readCheckpoints(restored(fragileDisk.withoutPower(directory))).map(({ checkpoint }) => checkpoint?.id),
      ).toEqual(signed);
    }
    writer.close();
  });

  test('a power loss during retention leaves a whole log', async () => {
    const base = freshDirectory();
    const directory = join(base, 'audit');
    const key = loadCheckpointKey(join(base, 'key.pem'));
    const writer = openWriter(directory, { fsync: 'always', segmentBytes: 1_000 });
    for (let nth = 0; nth < 5; nth += 1) append(writer, [{ reason: 'x'.repeat(1_000) }]);
    const images: Image[] = [];
    fragileDisk.onUnlink = () => void images.push(fragileDisk.withoutPower(directory));
    onTestFinished(() => {
      fragileDisk.onUnlink = undefined;
    });
    await shrunk(directory, 1, key);
    writer.close();
    const left = await Promise.all(
      images.map((image) => verifyAuditLog(restored(image), { checkpointKey: createPublicKey(key) })),
    );
    expect(left).toMatchObject([2, 3, 4, 5].map((firstId) => ({ ok: true, entries: 6 - firstId, firstId })));
  });

  const HOUR_MS = 3_600_000;

  test.each<[Step, fullAtBytes: number, uncut: number, outcomes: readonly (number | string)[]]>([
    ['write', 1e6, 0, ['EIO: write', 2, 4, 6]],
    ['write', 1e6, 1, ['EIO: write', 2, 4, 6]],
    ['write', 1e6, 3, ['EIO: write', 'EIO: cut', 'EIO: cut', 2]],
    ['write', 1000, 3, ['EIO: write', 'EIO: cut', 'EIO: cut', 2]],
    ['flush', 1e6, 0, ['EIO: flush', 2, 4, 6]],
    ['flush', 1e6, 3, ['EIO: flush', 'EIO: cut', 'EIO: cut', 2]],
    ['create', 1000, 0, ['EIO: create', 2, 4, 6]],
    ['flush of the folder', 1000, 0, ['EIO: flush of the folder', 2, 4, 6]],
  ])(
    'a failed append (%s, segments of %s bytes, %s failed cuts) leaves nothing behind',
    async (step, segmentBytes, uncut, outcomes) => {
      const directory = freshDirectory();
      let nowMs = NOON_MS;
      const writer = openWriter(directory, {
        fsync: 'always',
        segmentBytes,
        segmentAgeMs: 3 * HOUR_MS,
        nowMs: () => nowMs,
      });
      append(writer, [{ reason: 'x'.repeat(1000) }]);
      fragileDisk.fail({ [step]: 1, cut: uncut });
      const found = outcomes.map(() => {
        nowMs += HOUR_MS;
        const before = writer.head();
        try {
          return append(writer, [{}, {}]);
        } catch (error) {
          expect(writer.head()).toEqual(before);
          return (error as Error).message;
        }
      });
      expect(found).toEqual(outcomes);
      const entries = 1 + 2 * outcomes.filter((outcome) => typeof outcome === 'number').length;
      for (const each of [directory, restored(fragileDisk.withoutPower(directory))])
        expect(await verifyAuditLog(each)).toMatchObject({ ok: true, entries, tornBytes: 0 });
      writer.close();
    },
  );

  test.each(['EMFILE', 'ENFILE'])('a segment goes on for as long as no file can be opened (%s)', async (code) => {
    const directory = freshDirectory();
    const writer = openWriter(directory, { segmentBytes: 1_000 });
    append(writer, [{ reason: 'x'.repeat(1_000) }]);
    const first = writer.segmentPath;
    fragileDisk.fail({ create: 2 }, code);
    const paths = [1, 2, 3].map(() => {
      append(writer, [{}]);
      return writer.segmentPath === first ? 'the first' : 'another';
    });
    writer.close();
    expect(paths).toEqual(['the first', 'the first', 'another']);
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, entries: 4 });
  });

  test.each(['ENOSPC', 'EDQUOT'])('a full disk (%s) does not keep the log from being opened and locked', (code) => {
    const directory = freshDirectory();
    fragileDisk.fail({ write: 1 }, code);
    const writer = openWriter(directory);
    expect(() => openWriter(directory)).toThrow('locked');
    writer.close();
    openWriter(directory).close();
  });
});
