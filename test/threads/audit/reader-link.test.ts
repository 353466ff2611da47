import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AuditReaderLink } from '../../../src/threads/audit/reader-link.ts';
import { eventually } from '../../support/eventually.ts';

const EVERYTHING = { filter: {}, format: 'page', perPage: 10, cursor: undefined } as const;

/** A log whose only segment is a pipe that nobody writes to: whoever opens it waits. */
function stuckLog(): { readonly directory: string; readonly segment: string } {
  const directory = mkdtempSync(join(tmpdir(), 'svc-reader-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const segment = join(directory, '0000000000000001.ndjson');
  execFileSync('mkfifo', [segment]);
  return { directory, segment };
}

describe('audit reader link', () => {
  test.skipIf(process.platform === 'win32')(
    'a stalled disk refuses readers of the audit log, later ones at once',
    async () => {
      const { directory, segment } = stuckLog();
      const link = new AuditReaderLink({ directory }, () => {}, 200);
      const overloaded = { ok: false, fault: { kind: 'overloaded', retryAfterSecs: 1, what: 'the audit log reader' } };
      const startedMs = performance.now();
      expect(await Promise.all(Array.from({ length: 64 }, () => link.read(EVERYTHING, null)))).toEqual(
        Array.from({ length: 64 }, () => overloaded),
      );
      expect(performance.now() - startedMs).toBeGreaterThan(150);
      // A timer of the same process: where the machine stands still, so does it.
      expect(
        await Promise.race([
          link.read(EVERYTHING, null),
          new Promise((resolve) => setTimeout(resolve, 100, 'waited for')),
        ]),
      ).toEqual(overloaded);

      // The disk answers again, and what is left is an empty log.
      const writer = openSync(segment, constants.O_RDWR);
      rmSync(segment);
      await eventually(async () =>
        expect(await link.read(EVERYTHING, null)).toMatchObject({ ok: true, value: { next: undefined } }),
      );
      closeSync(writer);
      await link.close();
    },
  );

  test.skipIf(process.platform === 'win32')(
    'an org that asks for ever more of the log gets half of the readings',
    async () => {
      const { directory, segment } = stuckLog();
      const link = new AuditReaderLink({ directory }, () => {}, 60_000);
      const waiting = (orgId: string | null) =>
        Promise.race([
          link.read(EVERYTHING, orgId).then(
            () => 'refused',
            () => 'refused',
          ),
          new Promise((resolve) => setTimeout(resolve, 20, 'taken')),
        ]);
      expect(await Promise.all(Array.from({ length: 33 }, () => waiting('acme')))).toEqual([
        ...Array.from({ length: 32 }, () => 'taken'),
        'refused',
      ]);
      expect(await waiting('globex')).toBe('taken');
      expect(await waiting(null)).toBe('taken');
      const writer = openSync(segment, constants.O_RDWR);
      rmSync(segment);
      await eventually(async () => expect(await link.read(EVERYTHING, 'acme')).toMatchObject({ ok: true }));
      closeSync(writer);
      await link.close();
    },
  );

  test.skipIf(process.platform === 'win32')(
    'an export in progress gets its next chunk, however many others begin',
    async () => {
      const { directory, segment } = stuckLog();
      const link = new AuditReaderLink({ directory }, () => {}, 60_000);
      const begin = () => link.read({ ...EVERYTHING, format: 'ndjson' }, 'acme');
      const begun = Array.from({ length: 32 }, begin);
      const further = link.read(
        { ...EVERYTHING, format: 'ndjson', cursor: Buffer.from('before:9').toString('base64url') },
        'acme',
      );
      expect(await begin()).toMatchObject({ ok: false, fault: { kind: 'overloaded' } });
      const writer = openSync(segment, constants.O_RDWR);
      rmSync(segment);
      expect((await Promise.all([...begun, further])).filter(({ ok }) => !ok)).toEqual([]);
      expect(await begin()).toMatchObject({ ok: true });
      closeSync(writer);
      await link.close();
    },
  );

  test('a single query waits for at most two readings of a busy org', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-reader-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const link = new AuditReaderLink({ directory }, () => {});
    const answered: string[] = [];
    const read = (orgId: string) => link.read(EVERYTHING, orgId).then(() => void answered.push(orgId));
    await Promise.all(['acme', 'acme', 'acme', 'acme', 'globex'].map(read));
    expect(answered).toEqual(['acme', 'acme', 'globex', 'acme', 'acme']);
    await link.close();
  });
});
