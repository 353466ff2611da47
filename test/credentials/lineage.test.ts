import { describe, expect, test } from 'vitest';
import { fail, ok } from '../../src/core/base/result.ts';
import type { ApiKey } from '../../src/core/identity/api-key.ts';
import { lineageOf } from '../../src/credentials/lineage.ts';

const NOW_MS = 1_000;
const key = (id: string, createdBy: string, more: Partial<ApiKey> = {}): ApiKey =>
  ({ id, name: `name of ${id}`, createdBy, expiresAtMs: null, revokedAtMs: null, ...more }) as ApiKey;
const KEYS = [
  key('first', 'gateway'),
  key('env', 'gateway:environment', { revokedAtMs: 5 }),
  key('ops', 'key:first'),
  key('ci', 'key:ops', { expiresAtMs: NOW_MS }),
  key('of-env', 'key:env'),
  key('of-alice', 'account:alice'),
  key('orphan', 'key:gone'),
];
const ALICE = { email: 'alice@acme.example', role: 'developer', disabled: false } as const;
const deps = {
  apiKeys: { find: async ({ id }: any) => ok(KEYS.find((each) => each.id === id)), nowMs: NOW_MS },
  accountOf: async (subject: string) => ok(subject === 'account:alice' ? ALICE : undefined),
};
const subjectsOf = async (subject: string) => {
  const lineage = await lineageOf(deps, subject);
  return lineage.ok ? lineage.value.map((each) => each.subject) : lineage.fault.kind;
};

describe('the lineage of a credential', () => {
  test('goes up to the account, or to the key that the gateway made', async () => {
    expect(await subjectsOf('key:ci')).toEqual(['key:ci', 'key:ops', 'key:first']);
    expect(await subjectsOf('key:of-env')).toEqual(['key:of-env', 'key:env']);
    expect(await subjectsOf('key:of-alice')).toEqual(['key:of-alice', 'account:alice']);
    expect(await subjectsOf('agent:acme/search/crawler')).toEqual(['agent:acme/search/crawler']);
  });

  test('ends with what was deleted', async () => {
    expect(await subjectsOf('key:orphan')).toEqual(['key:orphan', 'key:gone']);
    expect(await subjectsOf('account:bob')).toEqual(['account:bob']);
  });

  test('says how rules may call each, and which of them have ended', async () => {
    expect(await lineageOf(deps, 'key:of-alice')).toMatchObject({
      value: [
        { names: ['key:name of of-alice'], isValid: true, isFirst: false },
        { names: ['role:developer', 'role:viewer', 'account:alice@acme.example'], isValid: true, isFirst: false },
      ],
    });
    expect(await lineageOf(deps, 'key:ci')).toMatchObject({
      value: [{ isValid: false }, { isValid: true, isFirst: false }, { isValid: true, isFirst: true }],
    });
    expect(await lineageOf(deps, 'account:bob')).toMatchObject({ value: [{ names: [], isValid: false }] });
  });

  test('is unknown while the stores cannot be reached', async () => {
    const away = fail({ kind: 'store_unreachable', retryAfterSecs: 1 } as const);
    const find = async () => away;
    expect(await lineageOf({ ...deps, apiKeys: { find, nowMs: 1 } }, 'key:ci')).toEqual(away);
    expect(await lineageOf({ ...deps, accountOf: async () => away }, 'key:of-alice')).toEqual(away);
  });
});
