/** Parts that tests of the use cases share: a clock they set, an audit log they read, stores in folders that vanish. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { AuditDraft } from '../../src/core/audit/audit.ts';
import type { Result } from '../../src/core/base/result.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import type { Fault } from '../../src/core/fault.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import type { ApiKeyStore } from '../../src/credentials/api-key-store.ts';
import { ApiKeys } from '../../src/credentials/api-keys.ts';
import type { AuditLog, Clock } from '../../src/ports/ports.ts';
import { createEmbeddedApiKeyStore } from '../../src/stores/embedded/api-keys.ts';
import type { EmbeddedStore } from '../../src/stores/embedded/store.ts';
import { openEmbeddedStore } from '../../src/stores/embedded/store.ts';

export const START_MS = Date.UTC(2030, 0, 1);

export type TestClock = Clock & { advance(ms: number): void };

export function testClock(startMs = START_MS): TestClock {
  let nowMs = startMs;
  return {
    nowMs: () => nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

export type TestAudit = AuditLog & { readonly drafts: AuditDraft[]; broken: boolean };

export function testAudit(): TestAudit {
  const audit: TestAudit = {
    drafts: [],
    broken: false,
    record: async (draft) => {
      if (audit.broken) return fail({ kind: 'audit_unavailable' });
      audit.drafts.push(draft);
      return ok(undefined);
    },
  };
  return audit;
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function temporaryStore(folder = temporaryFolder()): EmbeddedStore {
  const store = openEmbeddedStore(folder);
  onTestFinished(() => store.close());
  return store;
}

export const ADMIN: Principal = { subject: 'account:root', scopes: ['admin'], orgId: null };
export const ACME_ADMIN: Principal = { subject: 'key:acme-admin', scopes: ['admin'], orgId: 'acme' };
export const WRITER: Principal = { subject: 'key:writer', scopes: ['write'], orgId: null };

/** The value of a result that a test has no doubt about. */
export function must<T>(result: Result<T, Fault>): T {
  if (!result.ok) throw new Error(`unexpected fault: ${JSON.stringify(result.fault)}`);
  return result.value;
}

export const faultOf = (result: Result<unknown, Fault>): unknown => (result.ok ? 'no fault' : result.fault);

/** API keys on a store, and the same ones as after a restart. */
export async function startApiKeys(
  store: ApiKeyStore = createEmbeddedApiKeyStore(temporaryStore()),
  maxOrgKeys = 10_000,
) {
  const clock = testClock();
  const audit = testAudit();
  const open = async () => must(await ApiKeys.open({ store, audit, clock, maxOrgKeys }));
  const keys = await open();
  return { clock, audit, store, keys, reopen: open };
}
