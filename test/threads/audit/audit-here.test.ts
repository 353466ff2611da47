import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyAuditLog } from '../../../src/audit-log/verify.ts';
import { encodeDraft } from '../../../src/core/audit/audit-line.ts';
import { AuditLink } from '../../../src/threads/audit/audit-link.ts';
import { openAuditHere } from '../../../src/threads/audit/audit-thread.ts';
import { auditEntries } from '../../support/audit-log.ts';
import { eventually } from '../../support/eventually.ts';
import { CRAWLER } from '../../support/governor.ts';

/** The log written in this thread, with the main thread's link to it. */
function openHere(onFailure: 'deny' | 'allow' = 'deny') {
  const base = mkdtempSync(join(tmpdir(), 'svc-audit-here-'));
  const directory = join(base, 'audit');
  const troubles: boolean[] = [];
  const defects: unknown[] = [];
  const audit = new AuditLink({ nowMs: () => 1_000 }, onFailure, ({ isWritable }) => troubles.push(isWritable));
  const here = openAuditHere(
    {
      directory,
      fsync: 'never',
      checkpointKeyPath: join(base, 'key.pem'),
      checkpointEveryMs: 3_600_000,
      retention: { maxAgeMs: undefined, maxBytes: undefined },
    },
    (message) => {
      if (message.type !== 'note' && message.type !== 'statement' && message.type !== 'closed') audit.receive(message);
    },
    (error) => defects.push(error),
  );
  audit.connect(here, here.headId);
  onTestFinished(() => {
    here.send({ type: 'close' });
    rmSync(base, { recursive: true, force: true });
  });
  /** Returns the outcomes of the entry that are heard before the call returns. */
  const append = (reason: string): unknown[] => {
    const heard: unknown[] = [];
    const body = encodeDraft({ eventType: 'ActionAllowed', lineage: CRAWLER, actor: 'a test', reason }, 1_000);
    audit.append(
      { bodies: [body], isAwaited: false },
      { written: (firstId) => heard.push(firstId), lost: () => heard.push('lost') },
    );
    return heard;
  };
  const reasons = () => auditEntries(base).map(({ reason }) => reason);
  return { base, directory, audit, here, troubles, defects, append, reasons };
}

describe('the audit log in the main thread', () => {
  test('has an entry, and its listener the id, before handing it over returns', async () => {
    const { append, audit, directory, reasons } = openHere();
    expect([append('first'), append('second')]).toEqual([[1], [2]]);
    expect(reasons()).toEqual(['first', 'second']);
    expect(audit.entriesInFlight).toBe(0);
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, entries: 2 });
  });

  test('refuses entries while it cannot be written, and takes them again', async () => {
    const { append, base, directory, reasons, troubles } = openHere();
    append('before');
    renameSync(directory, join(base, 'aside'));
    await eventually(() => expect(troubles).toEqual([false]));
    expect(append('meanwhile')).toEqual(['lost']);
    renameSync(join(base, 'aside'), directory);
    await eventually(() => expect(troubles).toEqual([false, true]));
    expect(append('after')).toEqual([2]);
    expect(reasons()).toEqual(['before', 'after']);
  });

  test('writes nothing once it is closed, and another can be opened', async () => {
    const { append, defects, directory, here, reasons } = openHere();
    append('last');
    here.send({ type: 'close' });
    expect(append('too late')).toEqual([]);
    here.send({ type: 'close' });
    await new Promise((resolve) => setImmediate(resolve));
    expect({ defects, reasons: reasons() }).toEqual({ defects: [], reasons: ['last'] });
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, entries: 1 });
  });

  test('an entry that cannot be understood is a defect: it is lost, and the log let go', async () => {
    const { append, audit, defects, here, reasons } = openHere();
    append('before');
    // More bodies than it says: the writer takes it for a broken invariant.
    audit.append({ bodies: ['{}\n{}'], isAwaited: false }, { written: () => {}, lost: () => {} });
    await eventually(() => expect(defects).toHaveLength(1));
    audit.disconnect();
    here.abandon();
    expect(append('after')).toEqual(['lost']);
    expect(reasons()).toEqual(['before']);
  });
});
