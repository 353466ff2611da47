/**
 * A data directory of which a part is missing, as half a restore leaves it: the gateway starts, and says what begins
 * anew.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ADMIN_KEY, startTestGateway } from '../support/gateway.ts';

const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };

const warningsOf = (stderr: string): readonly string[] =>
  stderr
    .split('\n')
    .filter((line) => line.includes('"level":"warn"'))
    .map((line) => (JSON.parse(line) as { msg: string }).msg);

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-half-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts on what is left and answers what it warns of. */
async function warnedOf(folder: string): Promise<readonly string[]> {
  const gateway = await startTestGateway({ dataDir: folder });
  await gateway.stop();
  return warningsOf(gateway.output.stderr);
}

const REMEDY = 'if a restore left it out, stop the gateway and restore all parts from the same backup';

describe('half restored', () => {
  test('a start reports what is missing of a used data directory, and nothing of others', async () => {
    const whole = scratch();
    const gateway = await startTestGateway({ dataDir: whole });
    expect(
      (await gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', { agent: AGENT }, ADMIN_KEY)).status,
    ).toBe(200);
    await gateway.stop();
    expect(warningsOf(gateway.output.stderr)).toEqual([]);
    const without = (...parts: readonly string[]): string => {
      const folder = scratch();
      cpSync(whole, folder, { recursive: true });
      for (const part of parts) rmSync(join(folder, 'data', part), { recursive: true });
      return folder;
    };
    const [store, audit, key] = [without('store'), without('audit'), without('keys/signing.json')];
    expect(await warnedOf(store)).toEqual([
      `${store}/data/store was missing and starts over, without the previous registrations, spend and API keys: ${REMEDY}`,
    ]);
    expect(await warnedOf(store)).toEqual([]);
    expect(await warnedOf(audit)).toEqual([`${audit}/data/audit was empty and starts over at entry 1: ${REMEDY}`]);
    expect(await warnedOf(key)).toEqual([
      `${key}/data/keys/signing.json was missing and starts over, so all previous tokens are invalid: ${REMEDY}`,
    ]);
  }, 60_000);
});
