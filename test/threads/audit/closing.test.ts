import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fail, ok } from '../../../src/core/base/result.ts';
import { AuditLink } from '../../../src/threads/audit/audit-link.ts';
import { IoThreads } from '../../../src/threads/main/io-threads.ts';
import { Supervisor } from '../../../src/threads/supervisor.ts';
import { auditEntries } from '../../support/audit-log.ts';
import { CRAWLER } from '../../support/governor.ts';

describe('closing the audit log in the main thread', () => {
  test('refuses what comes later, so that nobody waits for it', async () => {
    const base = mkdtempSync(join(tmpdir(), 'svc-audit-closing-'));
    onTestFinished(() => rmSync(base, { recursive: true, force: true }));
    const clock = { nowMs: () => 1_000 };
    const audit = new AuditLink(clock, 'deny', () => undefined);
    const supervisor = new Supervisor({
      threads: new IoThreads(),
      audit,
      clock,
      ioThreads: 0,
      ioData: undefined,
      ports: { httpPort: 0, grpcPort: 0 },
      auditData: {
        directory: join(base, 'audit'),
        fsync: 'never',
        checkpointKeyPath: join(base, 'key.pem'),
        checkpointEveryMs: 3_600_000,
        retention: { maxAgeMs: undefined, maxBytes: undefined },
      },
      onStatement: () => undefined,
      note: () => undefined,
    });
    await supervisor.startAudit();
    const record = (reason: string) =>
      audit.record({ eventType: 'ActionAllowed', lineage: CRAWLER, actor: 'a test', reason });
    expect(await record('in time')).toEqual(ok(undefined));
    await supervisor.closeAudit();
    expect(await record('too late')).toEqual(fail({ kind: 'audit_unavailable' }));
    expect(auditEntries(base).map(({ reason }) => reason)).toEqual(['in time']);
  });
});
