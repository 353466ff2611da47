import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyAuditLog } from '../../../src/audit-log/verify.ts';
import { encodeDraft } from '../../../src/core/audit/audit-line.ts';
import { COUNTERS_BYTES, FAILURES, WRITTEN } from '../../../src/threads/audit/audit-counters.ts';
import { runAuditThread } from '../../../src/threads/audit/audit-thread.ts';
import { decode, encodeToAudit } from '../../../src/threads/codec.ts';
import type { AuditToMain, MainToAudit } from '../../../src/threads/protocol.ts';
import { auditEntries } from '../../support/audit-log.ts';
import { eventually } from '../../support/eventually.ts';
import { CRAWLER } from '../../support/governor.ts';

/** The audit thread in this process, with a test in the place of the main thread. */
async function openAuditThread() {
  const base = mkdtempSync(join(tmpdir(), 'svc-audit-thread-'));
  const directory = join(base, 'audit');
  const main = new MessageChannel();
  const counters = new SharedArrayBuffer(COUNTERS_BYTES);
  const messages: AuditToMain[] = [];
  main.port1.on('message', (bytes: Uint8Array) => messages.push(decode(bytes) as AuditToMain));
  runAuditThread(main.port2, {
    directory,
    counters,
    fsync: 'never',
    checkpointKeyPath: join(base, 'key.pem'),
    checkpointEveryMs: 3_600_000,
    retention: { maxAgeMs: undefined, maxBytes: undefined },
  });
  const notify = (message: MainToAudit): void => main.port1.postMessage(encodeToAudit(message));
  onTestFinished(async () => {
    if (!messages.some(({ type }) => type === 'closed')) notify({ type: 'close' });
    await eventually(() => expect(messages.at(-1)).toEqual({ type: 'closed' }));
    main.port1.close();
    rmSync(base, { recursive: true, force: true });
  });
  const append = (batch: number, isAwaited = false, count = 1, firstId = batch): void => {
    const body = encodeDraft(
      { eventType: 'ActionAllowed', lineage: CRAWLER, actor: 'a test', reason: `batch ${batch}` },
      1_000,
    );
    notify({
      type: 'append',
      batch,
      firstId,
      bodies: Array.from({ length: count }, () => body).join('\n'),
      count,
      strangerBytes: 0,
      isAwaited,
    });
  };
  return {
    base,
    directory,
    messages,
    notify,
    append,
    /**
     * Moves the log aside after the first batch, and appends more of one entry each until it is told that they cannot
     * be written.
     */
    failWrites: async () => {
      append(1, true);
      await eventually(() => expect(messages.at(-1)).toMatchObject({ type: 'written' }));
      const aside = join(base, 'aside');
      renameSync(directory, aside);
      let batch = 1;
      await eventually(() => {
        append((batch += 1));
        expect(messages.at(-1)).toMatchObject({
          type: 'not-written',
          reason: expect.stringContaining('was moved or deleted'),
        });
      });
      return { aside, batch };
    },
    counted: () => [WRITTEN, FAILURES].map((at) => Atomics.load(new Int32Array(counters), at)),
  };
}

describe('audit thread', () => {
  test('nothing is written after a failed write until the main thread has rolled back', async () => {
    const { append, base, counted, directory, failWrites, messages, notify } = await openAuditThread();
    const { aside, batch } = await failWrites();
    renameSync(aside, directory);
    await eventually(() => expect(messages.at(-1)).toEqual({ type: 'writable' }));
    const before = counted();
    append(batch + 1, true);
    append(batch + 2, true);
    notify({ type: 'resume' });
    append(batch + 3, true, 1, before[0]! + 1);
    await eventually(() => expect(messages.at(-1)).toMatchObject({ type: 'written' }));
    expect({ before, after: counted() }).toEqual({ before: [before[0], 1], after: [batch + 3, 1] });
    // Said once, however many batches fail.
    expect(messages.map(({ type }) => type).filter((type) => type !== 'note')).toEqual([
      'opened',
      'written',
      'not-written',
      'writable',
      'written',
    ]);
    expect(before[0]).toBeLessThan(batch);
    const reasons = auditEntries(base).map(({ reason }) => reason);
    expect(reasons).toEqual([
      ...Array.from({ length: before[0]! }, (_, at) => `batch ${at + 1}`),
      `batch ${batch + 3}`,
    ]);
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true });
  });

  test('a log locked by another process is refused with advice, and left alone', async () => {
    const { append, base, directory, messages } = await openAuditThread();
    const { port1, port2 } = new MessageChannel();
    onTestFinished(() => {
      port1.close();
    });
    expect(() =>
      runAuditThread(port2, {
        directory,
        counters: new SharedArrayBuffer(COUNTERS_BYTES),
        fsync: 'never',
        checkpointKeyPath: join(base, 'key.pem'),
        checkpointEveryMs: 3_600_000,
        retention: { maxAgeMs: undefined, maxBytes: undefined },
      }),
    ).toThrow(
      `the audit log in ${directory} is in use by another gateway (${process.pid}); stop it, or choose another SVC_DATA_DIR`,
    );
    append(1, true);
    await eventually(() => expect(messages.at(-1)).toMatchObject({ type: 'written' }));
  });

  test('a failed write fails its whole batch, and closing meanwhile closes the log', async () => {
    const { append, counted, failWrites, messages, notify } = await openAuditThread();
    const { aside, batch } = await failWrites();
    const [written = 0] = counted();
    notify({ type: 'resume' });
    for (let more = 0; more < 3; more += 1) append(batch + 1 + more, false, 5_000, written + 1 + more * 5_000);
    notify({ type: 'close' });
    await eventually(() => expect(messages.at(-1)).toEqual({ type: 'closed' }));
    expect(messages.map(({ type }) => type).filter((type) => type !== 'note')).toEqual([
      'opened',
      'written',
      'not-written',
      'not-written',
      'closed',
    ]);
    expect(await verifyAuditLog(aside)).toMatchObject({ ok: true });
  });
});
