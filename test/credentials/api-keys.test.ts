import { describe, expect, test } from 'vitest';
import type { Result } from '../../src/core/base/result.ts';
import { fail } from '../../src/core/base/result.ts';
import type { Fault } from '../../src/core/fault.ts';
import { type CreateApiKey, createApiKey, listApiKeys, revokeApiKey } from '../../src/credentials/api-key-admin.ts';
import { bootstrapOf } from '../../src/credentials/api-key-start.ts';
import type { ApiKeyStore } from '../../src/credentials/api-key-store.ts';
import type { ApiKeys } from '../../src/credentials/api-keys.ts';
import { digestOf } from '../../src/credentials/secret-token.ts';
import { createEmbeddedApiKeyStore } from '../../src/stores/embedded/api-keys.ts';
import {
  ACME_ADMIN,
  ADMIN,
  faultOf,
  must,
  START_MS,
  startApiKeys as start,
  temporaryStore,
  WRITER,
} from '../support/harness.ts';

const ENVIRONMENT_KEY = 'operator-chosen-key-0123456789abcdef';
const DAY_MS = 86_400_000;

const idsOf = (list: Result<{ readonly items: readonly { readonly id: string }[] }, Fault>): string[] =>
  must(list).items.map(({ id }) => id);

describe('creating', () => {
  test('a key authenticates at once and after a restart, and is stored nowhere in clear', async () => {
    const { keys, reopen, store, audit } = await start();
    const { key, record } = must(
      await createApiKey(keys, ADMIN, {
        name: 'ci',
        scopes: ['write', 'read', 'read'],
        orgId: 'acme',
        expiresAtMs: START_MS + DAY_MS,
      }),
    );
    expect(record).toMatchObject({
      name: 'ci',
      scopes: ['read', 'write'],
      orgId: 'acme',
      createdBy: 'account:root',
      createdAtMs: START_MS,
      expiresAtMs: START_MS + DAY_MS,
      revokedAtMs: null,
      lastUsedAtMs: null,
    });
    expect(keys.authenticate(digestOf(key))?.id).toBe(record.id);
    expect((await reopen()).authenticate(digestOf(key))?.id).toBe(record.id);
    const secret = key.slice(key.lastIndexOf('_') + 1);
    expect(JSON.stringify([must(await store.all()), audit.drafts])).not.toContain(secret);
    expect(audit.drafts).toEqual([
      {
        eventType: 'ApiKeyCreated',
        actor: 'account:root',
        lineage: { orgId: 'acme', teamId: null, agentId: null },
        payload: {
          key_id: record.id,
          name: 'ci',
          scopes: ['read', 'write'],
          org_id: undefined,
          expires_at: '2030-01-02T00:00:00.000Z',
        },
      },
    ]);
  });

  test('a key or password given as the name by mistake is not in the log', async () => {
    const { keys, audit } = await start();
    const other = must(await createApiKey(keys, ADMIN, { name: 'ci', scopes: ['read'] })).key;
    const made = must(await createApiKey(keys, ADMIN, { name: other, scopes: ['read'] })).record;
    must(await keys.revoke(made, 'account:root'));
    must(await createApiKey(keys, ADMIN, { name: 'deploy password=hunter2', scopes: ['read'] }));
    expect(audit.drafts.map(({ payload }) => payload?.name)).toEqual([
      'ci',
      '[redacted]',
      '[redacted]',
      'deploy password=[redacted]',
    ]);
  });

  test('refuses what may not be created, with its reason', async () => {
    const { keys } = await start();
    const good: CreateApiKey = { name: 'n', scopes: ['read'] };
    const asked: [unknown, CreateApiKey, object][] = [
      [WRITER, good, { kind: 'insufficient_scope', needed: 'admin', held: ['write'] }],
      [ACME_ADMIN, { ...good, orgId: 'globex' }, { kind: 'org_forbidden', orgId: 'globex' }],
      [ADMIN, { ...good, name: '' }, { kind: 'invalid_argument', field: 'name' }],
      [ADMIN, { ...good, name: 'x'.repeat(101) }, { kind: 'invalid_argument', field: 'name' }],
      [ADMIN, { ...good, name: 'a\u001b[31m' }, { kind: 'invalid_argument', field: 'name' }],
      [ADMIN, { ...good, scopes: [] }, { kind: 'invalid_argument', field: 'scopes' }],
      [ADMIN, { ...good, orgId: 'a b' }, { kind: 'invalid_argument', field: 'org_id' }],
      [ADMIN, { ...good, orgId: '' }, { kind: 'invalid_argument', field: 'org_id' }],
      [ADMIN, { ...good, expiresAtMs: START_MS }, { kind: 'invalid_argument', field: 'expires_at' }],
    ];
    for (const [principal, input, fault] of asked) {
      expect(faultOf(await createApiKey(keys, principal as typeof ADMIN, input)), JSON.stringify(input)).toMatchObject(
        fault,
      );
    }
    expect(keys.size).toBe(0);
  });

  test('an admin of one org creates keys of that org only, asked or not', async () => {
    const { keys } = await start();
    expect(must(await createApiKey(keys, ACME_ADMIN, { name: 'n', scopes: ['admin'] })).record.orgId).toBe('acme');
    expect(must(await createApiKey(keys, ACME_ADMIN, { name: 'n', scopes: ['read'], orgId: null })).record.orgId).toBe(
      'acme',
    );
    expect(must(await createApiKey(keys, ADMIN, { name: 'x'.repeat(100), scopes: ['read'] })).record.orgId).toBeNull();
  });

  test('counts the characters of a name as people do, not as they are stored', async () => {
    const { keys } = await start();
    const named = (name: string) => createApiKey(keys, ADMIN, { name, scopes: ['read'] });
    expect(must(await named('🔑'.repeat(100))).record.name).toBe('🔑'.repeat(100));
    expect(faultOf(await named('🔑'.repeat(101)))).toEqual({
      kind: 'invalid_argument',
      field: 'name',
      problem: 'must be 1 to 100 characters without control characters',
    });
  });

  test("limits an org's usable keys, also concurrent ones, without effect on others", async () => {
    const { keys, clock, audit, reopen } = await start(undefined, 3);
    const make = (orgId: string | null, expiresAtMs: number | null = null) =>
      createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'], orgId, expiresAtMs });
    const together = await Promise.all([
      make('acme'),
      make('acme', START_MS + 1000),
      make('acme'),
      make('acme'),
      make('acme'),
    ]);
    expect(together.map(({ ok: isMade }) => isMade)).toEqual([true, true, true, false, false]);
    const refusal = {
      kind: 'conflict',
      detail: 'org acme has reached its limit of 3 valid API keys; revoke some, or have SVC_MAX_ORG_API_KEYS raised',
    };
    expect(faultOf(await make('acme'))).toEqual(refusal);
    expect(faultOf(await createApiKey(await reopen(), ACME_ADMIN, { name: 'n', scopes: ['read'] }))).toEqual(refusal);
    expect(audit.drafts).toHaveLength(3);
    for (const made of await Promise.all(['globex', null, null, null, null].map((orgId) => make(orgId)))) must(made);
    must(await revokeApiKey(keys, ADMIN, must(together[0]!).record.id));
    must(await make('acme'));
    expect(faultOf(await make('acme'))).toEqual(refusal);
    clock.advance(1000);
    must(await make('acme'));
    expect(faultOf(await make('acme'))).toEqual(refusal);
    audit.broken = true;
    must(await keys.refresh());
    expect(faultOf(await make('globex'))).toEqual({ kind: 'audit_unavailable' });
    audit.broken = false;
    must(await make('globex'));
    must(await make('globex'));
  });

  test('an org creating and revoking keys holds at most a thousand in memory', async () => {
    const { keys, clock, reopen } = await start(undefined, 3);
    const make = (of: ApiKeys, orgId: string, expiresAtMs: number | null = null) =>
      createApiKey(of, ADMIN, { name: 'n', scopes: ['read'], orgId, expiresAtMs });
    const makeEnded = async (count: number) => {
      for (let made = 0; made < count; made += 3) {
        const together = await Promise.all([1, 2, 3].map(() => make(keys, 'acme', clock.nowMs() + 1)));
        expect(together.every(({ ok: isMade }) => isMade)).toBe(true);
        clock.advance(1);
      }
    };
    await makeEnded(999);
    must(await revokeApiKey(keys, ADMIN, must(await make(keys, 'acme')).record.id));
    const refusal = {
      kind: 'conflict',
      detail:
        'org acme has reached its limit of 1000 API keys, including those that ended in the last 30 days; wait, or have SVC_MAX_ORG_API_KEYS raised',
    };
    expect(faultOf(await make(keys, 'acme'))).toEqual(refusal);
    expect(faultOf(await make(await reopen(), 'acme'))).toEqual(refusal);
    must(await make(keys, 'globex'));
    clock.advance(30 * DAY_MS - 331);
    must(await make(keys, 'acme'));
  });

  test('a key being written counts towards the limit until it is stored', async () => {
    const store = createEmbeddedApiKeyStore(temporaryStore());
    let written = Promise.resolve();
    const { keys } = await start(
      {
        ...store,
        insert: async (record) => {
          if (record.name === 'slow') await written;
          return store.insert(record);
        },
      },
      2,
    );
    let write = () => {};
    written = new Promise((resolve) => {
      write = resolve;
    });
    const make = (name: string) => createApiKey(keys, ADMIN, { name, scopes: ['read'], orgId: 'acme' });
    const slow = make('slow');
    must(await make('quick'));
    expect(faultOf(await make('third'))).toMatchObject({ kind: 'conflict' });
    write();
    must(await slow);
    expect(faultOf(await make('third'))).toMatchObject({ kind: 'conflict' });
  });

  test('creates and revokes nothing that the audit log cannot record', async () => {
    const { keys, audit } = await start();
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    audit.broken = true;
    expect(faultOf(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }))).toEqual({
      kind: 'audit_unavailable',
    });
    expect(faultOf(await revokeApiKey(keys, ADMIN, record.id))).toEqual({ kind: 'audit_unavailable' });
    expect(keys.size).toBe(1);
    expect(keys.authenticate(record.digest)?.id).toBe(record.id);
  });
});

describe('revoking', () => {
  test('a revoked key is dead at once and after a restart; revoking twice is no error', async () => {
    const { keys, reopen, audit } = await start();
    const subjects: string[] = [];
    keys.onRevoked((subject) => subjects.push(subject));
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    expect(await revokeApiKey(keys, ADMIN, record.id)).toMatchObject({ ok: true });
    expect(await revokeApiKey(keys, ADMIN, record.id)).toEqual({
      ok: true,
      value: { revoked: [], kept: [], ended: [`key:${record.id}`] },
    });
    expect(keys.authenticate(record.digest)).toBeUndefined();
    expect(keys.authenticateId(record.id)).toBeUndefined();
    expect((await reopen()).authenticate(record.digest)).toBeUndefined();
    expect(subjects).toEqual([`key:${record.id}`]);
    expect(audit.drafts.map(({ eventType }) => eventType)).toEqual(['ApiKeyCreated', 'ApiKeyRevoked']);
  });

  test('concurrent revocations of a key record one entry, or all fail and can retry', async () => {
    const { keys, audit } = await start();
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'], orgId: 'acme' }));
    const together = () =>
      Promise.all([ADMIN, ACME_ADMIN, ADMIN].map((principal) => revokeApiKey(keys, principal, record.id)));
    audit.broken = true;
    expect((await together()).map(faultOf)).toEqual([
      { kind: 'audit_unavailable' },
      { kind: 'audit_unavailable' },
      { kind: 'audit_unavailable' },
    ]);
    expect(keys.authenticate(record.digest)?.id).toBe(record.id);
    audit.broken = false;
    (await together()).forEach(must);
    expect(keys.authenticate(record.digest)).toBeUndefined();
    expect(audit.drafts.map(({ eventType, actor }) => [eventType, actor])).toEqual([
      ['ApiKeyCreated', 'account:root'],
      ['ApiKeyRevoked', 'account:root'],
    ]);
  });

  test('unknown keys and keys of another org are not found; no admin scope is refused', async () => {
    const { keys } = await start();
    const { record: globex } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'], orgId: 'globex' }));
    const { record: unbound } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    const notFound = { kind: 'not_found', what: 'API key' };
    expect(faultOf(await revokeApiKey(keys, ADMIN, 'nope'))).toEqual(notFound);
    expect(faultOf(await revokeApiKey(keys, ACME_ADMIN, globex.id))).toEqual(notFound);
    expect(faultOf(await revokeApiKey(keys, ACME_ADMIN, unbound.id))).toEqual(notFound);
    expect(faultOf(await revokeApiKey(keys, WRITER, globex.id))).toEqual({
      kind: 'insufficient_scope',
      needed: 'admin',
      held: ['write'],
    });
  });

  test('an admin of one org revokes keys of that org, an admin of all orgs any key', async () => {
    const { keys } = await start();
    for (const principal of [ACME_ADMIN, ADMIN]) {
      const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'], orgId: 'acme' }));
      must(await revokeApiKey(keys, principal, record.id));
      expect(keys.authenticate(record.digest)).toBeUndefined();
    }
  });

  test('an expired key does not count as revoked; an unknown one does', async () => {
    const { keys, clock } = await start();
    const make = async () =>
      must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'], expiresAtMs: START_MS + 1000 })).record;
    const [live, revoked] = [await make(), await make()];
    must(await revokeApiKey(keys, ADMIN, revoked.id));
    const areRevoked = () =>
      Promise.all(
        [`key:${live.id}`, `key:${revoked.id}`, 'key:unknown', 'account:a1'].map(async (subject) =>
          must(await keys.isRevoked(subject)),
        ),
      );
    expect(await areRevoked()).toEqual([false, true, true, true]);
    clock.advance(1000);
    expect(await areRevoked()).toEqual([false, true, true, true]);
  });

  test('keys created and revoked by another gateway apply after a refresh', async () => {
    const { keys, reopen } = await start();
    const other = await reopen();
    const subjects: string[] = [];
    other.onRevoked((subject) => subjects.push(subject));
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    expect(other.authenticate(record.digest)).toBeUndefined();
    must(await other.refresh());
    expect(other.authenticate(record.digest)?.id).toBe(record.id);
    must(await other.refresh());
    expect(subjects).toEqual([]);
    must(await revokeApiKey(keys, ADMIN, record.id));
    for (const _ of ['once', 'and again']) must(await other.refresh());
    expect(other.authenticate(record.digest)).toBeUndefined();
    expect(subjects).toEqual([`key:${record.id}`]);
  });

  test('a refresh covers twice the time since the last success plus a minute', async () => {
    const store = createEmbeddedApiKeyStore(temporaryStore());
    const asked: number[] = [];
    let isAway = false;
    const changedWithin: ApiKeyStore['changedWithin'] = async (ms) => {
      asked.push(ms);
      return isAway ? fail({ kind: 'store_unreachable', retryAfterSecs: 1 }) : store.changedWithin(ms);
    };
    const { keys, clock } = await start({ ...store, changedWithin });
    clock.advance(5_000);
    must(await keys.refresh());
    isAway = true;
    clock.advance(3_000);
    expect(faultOf(await keys.refresh())).toEqual({ kind: 'store_unreachable', retryAfterSecs: 1 });
    isAway = false;
    clock.advance(1_000);
    must(await keys.refresh());
    expect(asked).toEqual([70_000, 66_000, 68_000]);
  });
});

describe('api keys', () => {
  test('a key ends at the millisecond it expires', async () => {
    const { keys, clock } = await start();
    const { record } = must(
      await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'], expiresAtMs: START_MS + 1000 }),
    );
    clock.advance(999);
    expect(keys.authenticate(record.digest)?.id).toBe(record.id);
    clock.advance(1);
    expect(keys.authenticate(record.digest)).toBeUndefined();
  });

  describe('listing', () => {
    test('lists newest first, each key once, also when one is added between pages', async () => {
      const { keys, clock } = await start();
      const ids: string[] = [];
      for (let n = 0; n < 5; n += 1) {
        ids.unshift(must(await createApiKey(keys, ADMIN, { name: `n${n}`, scopes: ['read'] })).record.id);
        clock.advance(1);
      }
      const first = must(await listApiKeys(keys, ADMIN, { perPage: 2 }));
      expect(first.items.map(({ id }) => id)).toEqual(ids.slice(0, 2));
      must(await createApiKey(keys, ADMIN, { name: 'late', scopes: ['read'] }));
      const second = must(await listApiKeys(keys, ADMIN, { perPage: 2, cursor: first.next ?? '' }));
      expect(second.items.map(({ id }) => id)).toEqual(ids.slice(2, 4));
      const third = must(await listApiKeys(keys, ADMIN, { perPage: 2, cursor: second.next ?? '' }));
      expect(third.items.map(({ id }) => id)).toEqual(ids.slice(4));
      expect(third.next).toBeUndefined();
    });

    test('keys of one millisecond or of another gateway have a stable place in the list', async () => {
      const { keys, reopen, clock } = await start();
      const other = await reopen();
      const make = async (by: ApiKeys) =>
        must(await createApiKey(by, ADMIN, { name: 'n', scopes: ['read'] })).record.id;
      const oldest = await make(other);
      clock.advance(1);
      const together = [await make(keys), await make(keys), await make(keys)];
      must(await keys.refresh());
      const walked: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = must(await listApiKeys(keys, ADMIN, { perPage: 1, cursor }));
        walked.push(...page.items.map(({ id }) => id));
        if (page.next === undefined) break;
        cursor = page.next;
      }
      expect([walked.slice(0, 3).sort(), walked.slice(3)]).toEqual([together.sort(), [oldest]]);
    });

    test('an admin of one org sees the keys of that org and of no other', async () => {
      const { keys } = await start();
      const { record: acme } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'], orgId: 'acme' }));
      const { record: globex } = must(
        await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'], orgId: 'globex' }),
      );
      must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
      expect(idsOf(await listApiKeys(keys, ACME_ADMIN, { perPage: 50 }))).toEqual([acme.id]);
      expect(idsOf(await listApiKeys(keys, ADMIN, { perPage: 50, orgId: 'globex' }))).toEqual([globex.id]);
      expect(must(await listApiKeys(keys, ADMIN, { perPage: 50 })).items).toHaveLength(3);
      expect(faultOf(await listApiKeys(keys, ACME_ADMIN, { perPage: 50, orgId: 'globex' }))).toEqual({
        kind: 'org_forbidden',
        orgId: 'globex',
      });
      const unknownCursor = faultOf(await listApiKeys(keys, ACME_ADMIN, { perPage: 50, cursor: 'nope' }));
      expect(unknownCursor).toMatchObject({ kind: 'invalid_argument', field: 'cursor' });
      expect(faultOf(await listApiKeys(keys, ACME_ADMIN, { perPage: 50, cursor: globex.id }))).toEqual(unknownCursor);
      expect(faultOf(await listApiKeys(keys, WRITER, { perPage: 50 }))).toMatchObject({
        kind: 'insufficient_scope',
        needed: 'admin',
      });
    });
  });

  describe('the first key', () => {
    test('an empty store gets one admin key, shown once; any other store gets none', async () => {
      const { keys, reopen, audit } = await start();
      const minted = must(await bootstrapOf(keys, undefined)());
      if (minted.kind !== 'minted') throw new Error(`unexpected ${minted.kind}`);
      expect(keys.authenticate(digestOf(minted.key))).toMatchObject({
        scopes: ['admin'],
        orgId: null,
        createdBy: 'gateway',
      });
      expect(must(await bootstrapOf(await reopen(), undefined)())).toEqual({ kind: 'unchanged' });
      expect(audit.drafts.map(({ eventType, actor }) => [eventType, actor])).toEqual([['ApiKeyCreated', 'gateway']]);
    });

    test('two gateways that start together on one store create one key', async () => {
      const { keys, reopen } = await start();
      const other = await reopen();
      const kinds = (await Promise.all([bootstrapOf(keys, undefined)(), bootstrapOf(other, undefined)()])).map(
        (result) => must(result).kind,
      );
      expect(kinds.sort()).toEqual(['minted', 'unchanged']);
    });

    test('a first key that was inserted without an answer is the one that is shown', async () => {
      const store = createEmbeddedApiKeyStore(temporaryStore());
      const away = { kind: 'store_unreachable', retryAfterSecs: 1 } as const;
      let isHeard = false;
      const insertFirst: typeof store.insertFirst = async (key) => {
        const inserted = await store.insertFirst(key);
        return isHeard ? inserted : fail(away);
      };
      const { keys } = await start({ ...store, insertFirst });
      const bootstrap = bootstrapOf(keys, undefined);
      expect(faultOf(await bootstrap())).toEqual(away);
      isHeard = true;
      const minted = must(await bootstrap());
      if (minted.kind !== 'minted') throw new Error(`unexpected ${minted.kind}`);
      expect(keys.authenticate(digestOf(minted.key))).toMatchObject({ scopes: ['admin'] });
      expect(keys.size).toBe(1);
    });

    test.each([
      ['minted', undefined],
      ['of the environment', ENVIRONMENT_KEY],
    ])('no first key is %s that the audit log cannot hold', async (_what, given) => {
      const { keys, audit } = await start();
      audit.broken = true;
      expect(faultOf(await bootstrapOf(keys, given)())).toEqual({ kind: 'audit_unavailable' });
      expect(keys.size).toBe(0);
    });

    test('two gateways started with one environment key both accept it and store it once', async () => {
      const { keys, reopen, store } = await start();
      const other = await reopen();
      for (const result of await Promise.all([
        bootstrapOf(keys, ENVIRONMENT_KEY)(),
        bootstrapOf(other, ENVIRONMENT_KEY)(),
      ]))
        expect(must(result)).toEqual({ kind: 'set-from-environment', replaced: 0 });
      expect([keys, other].map((each) => each.authenticate(digestOf(ENVIRONMENT_KEY))?.scopes)).toEqual([
        ['admin'],
        ['admin'],
      ]);
      expect(must(await store.all())).toHaveLength(1);
    });

    test('knows the environment key at once when another gateway stored it meanwhile', async () => {
      const { keys, reopen } = await start();
      const other = await reopen();
      must(await bootstrapOf(keys, ENVIRONMENT_KEY)());
      expect(must(await bootstrapOf(other, ENVIRONMENT_KEY)())).toEqual({ kind: 'unchanged' });
      expect(other.authenticate(digestOf(ENVIRONMENT_KEY))?.scopes).toEqual(['admin']);
    });

    test('the environment key works as given, and a restart changes nothing', async () => {
      const { keys, reopen } = await start();
      expect(must(await bootstrapOf(keys, ENVIRONMENT_KEY)())).toEqual({
        kind: 'set-from-environment',
        replaced: 0,
      });
      expect(keys.authenticate(digestOf(ENVIRONMENT_KEY))).toMatchObject({
        scopes: ['admin'],
        orgId: null,
        hint: 'oper…',
      });
      const restarted = await reopen();
      expect(must(await bootstrapOf(restarted, ENVIRONMENT_KEY)())).toEqual({ kind: 'unchanged' });
      expect(restarted.size).toBe(1);
    });

    test('a new environment key revokes the previous one and no other', async () => {
      const { keys, reopen } = await start();
      must(await bootstrapOf(keys, ENVIRONMENT_KEY)());
      const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
      const restarted = await reopen();
      expect(must(await bootstrapOf(restarted, `${ENVIRONMENT_KEY}-2`)())).toEqual({
        kind: 'set-from-environment',
        replaced: 1,
      });
      expect(restarted.authenticate(digestOf(ENVIRONMENT_KEY))).toBeUndefined();
      expect(restarted.authenticate(digestOf(`${ENVIRONMENT_KEY}-2`))?.scopes).toEqual(['admin']);
      expect(restarted.authenticate(record.digest)?.id).toBe(record.id);
      expect(must(await bootstrapOf(await reopen(), `${ENVIRONMENT_KEY}-2`)())).toEqual({ kind: 'unchanged' });
    });

    test('a start that cannot revoke the previous environment key fails; the next retries', async () => {
      const store = createEmbeddedApiKeyStore(temporaryStore());
      const away = { kind: 'store_unreachable', retryAfterSecs: 1 } as const;
      const { keys } = await start(store);
      must(await bootstrapOf(keys, ENVIRONMENT_KEY)());
      const { keys: failing } = await start({ ...store, revoke: async () => fail(away) });
      expect(faultOf(await bootstrapOf(failing, `${ENVIRONMENT_KEY}-2`)())).toEqual(away);
      const { keys: next } = await start(store);
      expect(must(await bootstrapOf(next, `${ENVIRONMENT_KEY}-2`)())).toEqual({
        kind: 'set-from-environment',
        replaced: 1,
      });
      expect(next.authenticate(digestOf(ENVIRONMENT_KEY))).toBeUndefined();
    });

    test('a revoked environment key stays revoked', async () => {
      const { keys, reopen } = await start();
      must(await bootstrapOf(keys, ENVIRONMENT_KEY)());
      must(await revokeApiKey(keys, ADMIN, keys.authenticate(digestOf(ENVIRONMENT_KEY))?.id ?? ''));
      const restarted = await reopen();
      expect(must(await bootstrapOf(restarted, ENVIRONMENT_KEY)()).kind).toBe('environment-key-dead');
      expect(restarted.authenticate(digestOf(ENVIRONMENT_KEY))).toBeUndefined();
    });
  });

  describe('keys that ended long ago', () => {
    test('leave memory and the list after 30 days and never come back', async () => {
      const { keys, clock, audit, reopen } = await start();
      await bootstrapOf(keys, undefined)();
      const { key, record: first } = must(await createApiKey(keys, ADMIN, { name: 'first', scopes: ['admin'] }));
      must(await revokeApiKey(keys, ADMIN, first.id));
      for (let made = 0; made < 1_500; made += 1) {
        const { record } = must(
          await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'], expiresAtMs: clock.nowMs() + 1 }),
        );
        if (made % 2 === 0) must(await revokeApiKey(keys, ADMIN, record.id));
        clock.advance(DAY_MS / 5);
      }
      // 150 of the last 30 days and the very first one are left, and what has come since the last look.
      expect(keys.size).toBeLessThanOrEqual(1_000);
      const listed = must(await listApiKeys(keys, ADMIN, { perPage: 1_000 })).items;
      expect({ listedCount: listed.length, name: listed.at(-1)?.name }).toEqual({
        listedCount: keys.size,
        name: 'first admin key',
      });
      const restarted = await reopen();
      expect(restarted.size).toBe(151);
      for (const gateway of [keys, restarted]) {
        expect(gateway.authenticateId(first.id)).toBeUndefined();
        expect(gateway.authenticate(first.digest)).toBeUndefined();
        expect(await gateway.isRevoked(`key:${first.id}`)).toEqual({ ok: true, value: true });
        expect(await revokeApiKey(gateway, ADMIN, first.id)).toMatchObject({ ok: true });
        expect(faultOf(await revokeApiKey(gateway, ACME_ADMIN, first.id))).toEqual({
          kind: 'not_found',
          what: 'API key',
        });
        expect(faultOf(await revokeApiKey(gateway, ADMIN, 'x'.repeat(10_000)))).toEqual({
          kind: 'not_found',
          what: 'API key',
        });
      }
      expect(restarted.size).toBe(151);
      audit.drafts.length = 0;
      expect(must(await bootstrapOf(restarted, key)())).toEqual({
        kind: 'environment-key-dead',
        record: { ...first, revokedAtMs: START_MS },
      });
      expect(must(await bootstrapOf(restarted, undefined)())).toEqual({ kind: 'unchanged' });
      expect(audit.drafts).toEqual([]);
    });

    test('still keep a gateway from creating another first key', async () => {
      const { keys, clock, reopen } = await start();
      const minted = must(await bootstrapOf(keys, undefined)());
      must(await revokeApiKey(keys, ADMIN, minted.kind === 'minted' ? minted.record.id : ''));
      clock.advance(1_000 * DAY_MS);
      expect(must(await bootstrapOf(await reopen(), undefined)())).toEqual({ kind: 'unchanged' });
    });
  });
});
