/** An audit log that somebody moves or deletes while the gateway writes it (docs/spec.md, Audit). */
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { ARRANGEMENTS } from '../support/arrangements.ts';
import { eventually } from '../support/eventually.ts';
import { startTestGateway } from '../support/gateway.ts';
import { registerLoadAgent, startLoad } from '../support/load.ts';
import { startReceiver } from '../support/receiver.ts';

describe('audit moved', () => {
  test.each(ARRANGEMENTS)('denies checks and says so; put back, it continues ($arrangement)', async ({ env }) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-moved-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const gateway = await startTestGateway({ dataDir: folder, env });
    onTestFinished(async () => {
      await gateway.stop('SIGKILL');
    });
    await registerLoadAgent(gateway);
    const load = startLoad(gateway, 'moved', 2);
    const [audit, aside] = [join(gateway.dataDir, 'audit'), join(folder, 'aside')];
    for (let round = 1; round <= 2; round += 1) {
      renameSync(audit, aside);
      await eventually(() =>
        expect(load.answered.at(-1)).toMatchObject({
          decision: 'DECISION_DENY',
          reason: 'the audit log cannot be written; until it can, everything that must be recorded is refused',
        }),
      );
      expect((await gateway.call('GET', '/readyz', undefined, null)).body).toMatchObject({
        status: 503,
        code: 'audit_unavailable',
      });
      await eventually(() =>
        expect(
          gateway.output.stderr.match(
            /"reason":"[^"]+\/audit\/0*1\.ndjson was moved or deleted; put it back, or restart the gateway to continue after the remaining entries"/g,
          ),
        ).toHaveLength(round),
      );
      renameSync(aside, audit);
      await eventually(() => expect(load.answered.at(-1)).toMatchObject({ decision: 'DECISION_ALLOW' }));
      await eventually(() =>
        expect(gateway.output.stderr.match(/the audit log can be written again/g)).toHaveLength(round),
      );
    }
    await load.stop();
    expect(await verifyAuditLog(audit)).toMatchObject({ ok: true });
    rmSync(audit, { recursive: true });
    await eventually(async () => expect((await gateway.call('POST', '/api/v1/policies/reload')).status).toBe(503));
    expect(await gateway.stop()).toBe(0);
  });

  test('an idle gateway reports within seconds that its log has moved, and its return', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-moved-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());
    const gateway = await startTestGateway({ dataDir: folder, env: { SVC_WEBHOOKS_ALLOW_PRIVATE: '1' } });
    onTestFinished(async () => {
      await gateway.stop('SIGKILL');
    });
    const ready = async () => (await gateway.call('GET', '/readyz', undefined, null)).status;
    const [audit, aside] = [join(gateway.dataDir, 'audit'), join(folder, 'aside')];
    expect(await ready()).toBe(200);
    const hook = { url: receiver.url, events: ['audit.unwritable'] };
    expect((await gateway.call('POST', '/api/v1/webhooks', hook)).status).toBe(201);
    renameSync(audit, aside);
    await eventually(async () => expect(await ready()).toBe(503));
    const [report] = await eventually(() => (expect(receiver.received.length).toBe(1), receiver.received));
    expect(JSON.parse(report!.body)).toMatchObject({
      type: 'audit.unwritable',
      data: { reason: expect.stringContaining('was moved or deleted'), checks: 'deny' },
    });
    expect(gateway.output.stderr).toMatch(
      /"reason":"[^"]+\/audit\/0*1\.ndjson was moved or deleted; put it back, or restart the gateway to continue after the remaining entries"/,
    );
    renameSync(aside, audit);
    await eventually(async () => expect(await ready()).toBe(200));
    expect((await gateway.call('POST', '/api/v1/policies/reload')).status).toBe(200);
    expect(await gateway.stop()).toBe(0);
    expect(await verifyAuditLog(audit)).toMatchObject({ ok: true, entries: 3 });
  });
});
