import { createPublicKey, verify } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  createCheckpointer,
  loadCheckpointKey,
  readAnchor,
  readCheckpoints,
} from '../../../src/audit-log/checkpoint.ts';
import { listSegments } from '../../../src/audit-log/segments.ts';
import { verifyAuditLog } from '../../../src/audit-log/verify.ts';
import { AuditUpkeep, type Note } from '../../../src/threads/audit/audit-upkeep.ts';
import { append, NOON_MS, openWriter } from '../../audit-log/log.ts';
import { eventually } from '../../support/eventually.ts';

const NO_RETENTION = { maxAgeMs: undefined, maxBytes: undefined };

function scene() {
  const base = mkdtempSync(join(tmpdir(), 'svc-upkeep-'));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const directory = join(base, 'audit');
  const notes: Parameters<Note>[] = [];
  return {
    directory,
    checkpointKeyPath: join(base, 'keys', 'audit-checkpoint.pem'),
    notes,
    note: ((...said) => void notes.push(said)) satisfies Note,
  };
}

describe('audit upkeep', () => {
  test('signs the head of the log at intervals and once more at the end', async () => {
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory);
    append(writer, [{}, {}]);
    const upkeep = new AuditUpkeep(writer, { ...paths, checkpointEveryMs: 10, retention: NO_RETENTION }, note);
    await eventually(() =>
      expect(readCheckpoints(paths.directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([2]),
    );
    append(writer, [{}]);
    upkeep.stop();
    writer.close();
    expect(readCheckpoints(paths.directory).map(({ checkpoint }) => checkpoint?.id)).toEqual([2, 3]);
    expect(statSync(paths.checkpointKeyPath).mode & 0o777).toBe(0o600);
    expect(notes).toEqual([]);
  });

  test('signs, in a cluster, the heads of the others, also if nothing was written here', async () => {
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory, { gateway: 'one' });
    append(writer, [{}]);
    const retention = NO_RETENTION;
    const options = { ...paths, gateway: 'one', checkpointEveryMs: 10, retention };
    const statements: unknown[] = [];
    const upkeep = new AuditUpkeep(writer, options, note, (statement) => void statements.push(statement));
    const signed = () => readCheckpoints(paths.directory).map(({ checkpoint }) => [checkpoint?.id, checkpoint?.peers]);
    await eventually(() => expect(signed()).toEqual([[1, []]]));
    const [three, two] = ['three', 'two'].map((gateway) => ({ gateway, id: 7, hash: 'a'.repeat(64) }));
    upkeep.peers = [two!, three!, { gateway: 'not a\nname', id: 7, hash: 'b' }];
    await eventually(() =>
      expect(signed()).toEqual([
        [1, []],
        [1, [three, two]],
      ]),
    );
    upkeep.stop();
    writer.close();
    expect(signed().length).toBe(2);
    const key = createPublicKey(readFileSync(paths.checkpointKeyPath));
    const { hash, timestamp, signature } = readCheckpoints(paths.directory)[1]!.checkpoint!;
    const heads = [`three 7 ${'a'.repeat(64)}`, `two 7 ${'a'.repeat(64)}`];
    const text = ['svc-audit-checkpoint-2', 'one', 1, hash, timestamp, ...heads].join('\n');
    expect(verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'))).toBe(true);
    expect(statements.at(-1)).toMatchObject({ gateway: 'one', peers: [three, two], signature });
    expect(notes).toEqual([]);
  });

  test('warns at start of an old log without a checkpoint, and not of a young one', () => {
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory);
    append(writer, [{}, { timestampMs: NOON_MS + 60_000 }]);
    const options = { ...paths, checkpointEveryMs: 60_000, retention: NO_RETENTION };
    new AuditUpkeep(writer, options, note).stop();
    expect(notes).toEqual([]);
    rmSync(join(paths.directory, 'checkpoints.ndjson'));
    append(writer, [{ timestampMs: NOON_MS + 60_001 }]);
    new AuditUpkeep(writer, options, note).stop();
    const missing = `${paths.directory}/checkpoints.ndjson was missing, although the log goes back to 2026-03-01T12:00:00.000Z: if its end was cut off, this cannot be detected. If a restore left the file out, stop the gateway and restore all parts from the same backup`;
    expect(notes).toEqual([['warn', missing]]);
    new AuditUpkeep(writer, options, note).stop(); // it was signed meanwhile
    expect(notes).toHaveLength(1);
    writer.close();
  });

  test('maintains a log without checkpoints whose oldest file is unreadable, and warns', () => {
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory);
    append(writer, [{}]);
    mkdirSync(join(paths.directory, '0000000000000000.ndjson'));
    new AuditUpkeep(writer, { ...paths, checkpointEveryMs: 60_000, retention: NO_RETENTION }, note).stop();
    expect(notes).toEqual([
      ['warn', 'could not determine the age of the audit log: EISDIR: illegal operation on a directory, read'],
    ]);
    expect(readCheckpoints(paths.directory)).toHaveLength(1);
    writer.close();
  });

  test('deletes segments over the limit at start, and logs where verification begins', async () => {
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory, { segmentBytes: 1_000 });
    for (let n = 0; n < 10; n += 1) append(writer, [{ payload: { text: 'x'.repeat(900) } }]);
    const before = listSegments(paths.directory).length;
    const upkeep = new AuditUpkeep(
      writer,
      { ...paths, checkpointEveryMs: 60_000, retention: { maxAgeMs: undefined, maxBytes: 4_000 } },
      note,
    );
    await eventually(() => expect(notes).toHaveLength(1));
    upkeep.stop();
    writer.close();
    expect(before).toBe(10);
    expect(listSegments(paths.directory).map(({ firstId }) => firstId)).toEqual([8, 9, 10]);
    expect(readAnchor(paths.directory)).toMatchObject({ first_id: 8 });
    expect(notes).toEqual([['info', expect.stringContaining('retention deleted 7 audit segments')]]);
  });

  test('cuts a log that grows over the limit once the next segment has begun', async () => {
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory, { segmentBytes: 1_000 });
    const upkeep = new AuditUpkeep(
      writer,
      { ...paths, checkpointEveryMs: 60_000, retention: { maxAgeMs: undefined, maxBytes: 4_000 } },
      note,
    );
    for (const newest of [10, 20]) {
      for (let n = 0; n < 10; n += 1) append(writer, [{ payload: { text: 'x'.repeat(900) } }]);
      await eventually(() =>
        expect(listSegments(paths.directory).map(({ firstId }) => firstId)).toEqual([newest - 2, newest - 1, newest]),
      );
    }
    upkeep.stop();
    writer.close();
  });

  test('applies a lower limit step by step, without delaying the start or writes', async () => {
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory, { segmentBytes: 1_000 });
    for (let n = 0; n < 21; n += 1) append(writer, [{ payload: { text: 'x'.repeat(900) } }]);
    const upkeep = new AuditUpkeep(
      writer,
      { ...paths, checkpointEveryMs: 60_000, retention: { maxAgeMs: undefined, maxBytes: 1 } },
      note,
    );
    expect(listSegments(paths.directory)).toHaveLength(21);
    append(writer, [{}]);
    await eventually(() => expect(listSegments(paths.directory).map(({ firstId }) => firstId)).toEqual([22]));
    await eventually(() => expect(notes.map(([, message]) => /deleted (\d+)/.exec(message)?.[1])).toEqual(['21']));
    upkeep.stop();
    writer.close();
    expect(readAnchor(paths.directory)).toMatchObject({ first_id: 22 });
  });

  test('a clock jumping years ahead deletes nothing until the gateway ran for a day', () => {
    const HOUR_MS = 3_600_000;
    const TEN_YEARS_MS = 3_650 * 24 * HOUR_MS;
    vi.useFakeTimers({
      toFake: ['Date', 'performance', 'setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'],
      now: NOON_MS,
    });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory, { segmentBytes: 1_000, nowMs: Date.now });
    const write = () => append(writer, [{ payload: { text: 'x'.repeat(900) }, timestampMs: Date.now() }]);
    const start = () =>
      new AuditUpkeep(
        writer,
        { ...paths, checkpointEveryMs: 20 * HOUR_MS, retention: { maxAgeMs: 30 * 24 * HOUR_MS, maxBytes: undefined } },
        note,
      );
    const kept = () => listSegments(paths.directory).map(({ firstId }) => firstId);
    write();
    write();
    createCheckpointer({
      directory: paths.directory,
      key: loadCheckpointKey(paths.checkpointKeyPath),
      nowMs: Date.now,
    }).record(writer.head());
    const first = start();
    vi.advanceTimersByTime(HOUR_MS);
    expect(notes).toEqual([]);
    vi.setSystemTime(Date.now() + TEN_YEARS_MS);
    vi.advanceTimersByTime(HOUR_MS);
    write();
    expect(kept()).toEqual([1, 2, 3]);
    expect(notes).toEqual([
      [
        'warn',
        'the clock went from 2026-03-01T13:10:00.000Z to 2036-02-27T13:10:00.000Z; no audit segment will be deleted because of its age until the gateway has run for another day',
      ],
    ]);
    first.stop();

    const second = start();
    vi.advanceTimersByTime(23 * HOUR_MS);
    expect(kept()).toEqual([1, 2, 3]);
    expect(notes).toHaveLength(2);
    vi.advanceTimersByTime(2 * HOUR_MS);
    expect(kept()).toEqual([3]);
    second.stop();
    writer.close();
  });

  test('after downtime of over a day, deletes by age once the gateway ran for a day', () => {
    const HOUR_MS = 3_600_000;
    vi.useFakeTimers({
      toFake: ['Date', 'performance', 'setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'],
      now: NOON_MS,
    });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const deletedAfter = (awayMs: number): readonly number[] => {
      const { note, notes: _, ...paths } = scene();
      const writer = openWriter(paths.directory, { segmentBytes: 1_000 });
      for (let nth = 0; nth < 3; nth += 1)
        append(writer, [{ payload: { text: 'x'.repeat(900) }, timestampMs: NOON_MS - 31 * 24 * HOUR_MS }]);
      createCheckpointer({
        directory: paths.directory,
        key: loadCheckpointKey(paths.checkpointKeyPath),
        nowMs: () => Date.now() - awayMs,
      }).record(writer.head());
      const upkeep = new AuditUpkeep(
        writer,
        { ...paths, checkpointEveryMs: 20 * HOUR_MS, retention: { maxAgeMs: 30 * 24 * HOUR_MS, maxBytes: undefined } },
        note,
      );
      const deleted = () => 3 - listSegments(paths.directory).length;
      const atOnce = deleted();
      vi.advanceTimersByTime(25 * HOUR_MS);
      upkeep.stop();
      writer.close();
      return [atOnce, deleted()];
    };
    expect(deletedAfter(23 * HOUR_MS)).toEqual([2, 2]);
    expect(deletedAfter(25 * HOUR_MS)).toEqual([0, 2]);
  });

  test('signs a head only once it is on disk, so a power loss never looks like a cut', async () => {
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory);
    append(writer, [{}, {}]);
    let disk: 'full' | 'slow' | 'good' = 'full';
    let finish: (() => void) | undefined;
    const flush = async () => {
      if (disk === 'full') throw new Error('no space left on device');
      const head = await writer.flush();
      if (disk === 'slow')
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      return head;
    };
    const upkeep = new AuditUpkeep(
      { segmentPath: undefined, flush, flushNow: () => writer.flushNow() },
      { ...paths, checkpointEveryMs: 10, retention: NO_RETENTION },
      note,
    );
    const signed = () => readCheckpoints(paths.directory).map(({ checkpoint }) => checkpoint?.id);
    await eventually(() =>
      expect(notes).toContainEqual(['warn', 'could not sign the head of the audit log: no space left on device']),
    );
    disk = 'slow';
    await eventually(() => expect(finish).toBeDefined());
    append(writer, [{}]);
    expect(signed()).toEqual([]);
    disk = 'good';
    finish?.();
    await eventually(() => expect(signed()).toEqual([2, 3]));
    upkeep.stop();
    writer.close();
  });

  test('a missing checkpoint key is created anew, and the log says what that means', () => {
    const { note, notes, ...paths } = scene();
    const options = { ...paths, checkpointEveryMs: 60_000, retention: NO_RETENTION };
    const writer = openWriter(paths.directory);
    append(writer, [{}]);
    new AuditUpkeep(writer, options, note).stop();
    expect(notes).toEqual([]);
    rmSync(paths.checkpointKeyPath);
    new AuditUpkeep(writer, options, note).stop();
    writer.close();
    expect(notes).toEqual([
      [
        'warn',
        `${paths.checkpointKeyPath} was missing, and a new key was created: signatures of the old key can no longer be verified, and \`svc audit verify\` reports it as forged. Stop the gateway and restore keys and audit from the same backup; if the old key is lost, move checkpoints.ndjson away`,
      ],
    ]);
  });

  test('logs what becomes of the anchor of a log cut by retention', async () => {
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory, { segmentBytes: 1_000 });
    const grow = (): void => {
      for (let n = 0; n < 5; n += 1) append(writer, [{ payload: { text: 'x'.repeat(900) } }]);
    };
    const keep = async (): Promise<void> => {
      const upkeep = new AuditUpkeep(
        writer,
        { ...paths, checkpointEveryMs: 60_000, retention: { maxAgeMs: undefined, maxBytes: 4_000 } },
        note,
      );
      await eventually(() => expect(listSegments(paths.directory)).toHaveLength(3));
      upkeep.stop();
    };
    const verified = () =>
      verifyAuditLog(paths.directory, { checkpointKey: createPublicKey(readFileSync(paths.checkpointKeyPath)) });
    grow();
    await keep();
    rmSync(paths.checkpointKeyPath);
    rmSync(join(paths.directory, 'checkpoints.ndjson'));
    notes.length = 0;
    await keep();
    expect(notes).toEqual([
      [
        'warn',
        `${paths.checkpointKeyPath} was missing, and a new key was created: signatures of the old key can no longer be verified, and \`svc audit verify\` reports it as forged. Stop the gateway and restore keys and audit from the same backup; if the old key is lost, move checkpoints.ndjson away, and verify a copy of the folder, without the key, until retention has deleted another file and signed anchor.json again`,
      ],
    ]);
    expect(await verified()).toMatchObject({ ok: false, firstBroken: { problem: 'forged', segment: 'anchor.json' } });
    expect(await verifyAuditLog(paths.directory)).toMatchObject({ ok: true });
    grow();
    await keep();
    expect(await verified()).toMatchObject({ ok: true });
    writer.close();
  });

  test('a truncated checkpoint key is reported with advice and not replaced', () => {
    const { note, ...paths } = scene();
    const writer = openWriter(paths.directory);
    mkdirSync(dirname(paths.checkpointKeyPath));
    writeFileSync(paths.checkpointKeyPath, '-----BEGIN PRIVATE KEY-----\nMC4CAQAw');
    expect(
      () => new AuditUpkeep(writer, { ...paths, checkpointEveryMs: 60_000, retention: NO_RETENTION }, note),
    ).toThrow(`${paths.checkpointKeyPath} is damaged; restore it from a backup, or remove it`);
    expect(readFileSync(paths.checkpointKeyPath, 'utf8')).toBe('-----BEGIN PRIVATE KEY-----\nMC4CAQAw');
    writer.close();
  });

  test('deletes nothing younger than the age, however large the log, and warns once', () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance', 'setInterval', 'clearInterval'], now: NOON_MS });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { note, notes, ...paths } = scene();
    const writer = openWriter(paths.directory, { segmentBytes: 1_000 });
    const grow = (): void => {
      for (let n = 0; n < 10; n += 1) append(writer, [{ payload: { text: 'x'.repeat(900) } }]);
    };
    const retention = { maxAgeMs: 30 * 24 * 3_600_000, maxBytes: 4_000 };
    grow();
    const upkeep = new AuditUpkeep(writer, { ...paths, checkpointEveryMs: 60_000, retention }, note);
    grow();
    vi.advanceTimersByTime(60_000);
    expect(listSegments(paths.directory)).toHaveLength(20);
    expect(notes).toEqual([['warn', expect.stringContaining('younger than the 30 days of SVC_AUDIT_RETENTION_DAYS')]]);
    upkeep.stop();
    writer.close();
  });
});
