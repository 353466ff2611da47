import { describe, expect, test } from 'vitest';
import type { Principal } from '../../src/core/identity/roles.ts';
import { createApiKey, listApiKeys, revokeApiKey } from '../../src/credentials/api-key-admin.ts';
import type { ApiKeys } from '../../src/credentials/api-keys.ts';
import { endMadeKeys } from '../../src/credentials/made-keys.ts';
import { ADMIN, faultOf, must, startApiKeys as start } from '../support/harness.ts';

const makerOf = (id: string, orgId: string | null = null): Principal => ({
  subject: `key:${id}`,
  scopes: ['admin'],
  orgId,
});
const make = async (keys: ApiKeys, principal: Principal, name: string, scopes: ('read' | 'admin')[] = ['admin']) =>
  must(await createApiKey(keys, principal, { name, scopes })).record.id;
const namesIn = (made: readonly { readonly name: string }[]) => made.map(({ name }) => name).sort();
const isValid = (keys: ApiKeys, id: string): boolean => keys.authenticateId(id) !== undefined;

describe('keys that a key made', () => {
  test('end with it, and so do those that they made, also after a restart', async () => {
    const { keys, reopen, audit } = await start();
    const leaked = await make(keys, ADMIN, 'leaked');
    const child = await make(keys, makerOf(leaked), 'child');
    const grandchild = await make(keys, makerOf(child), 'grandchild', ['read']);
    const bystander = await make(keys, ADMIN, 'bystander');
    const listed = must(await listApiKeys(keys, ADMIN, { perPage: 1, madeBy: `key:${leaked}` }));
    expect(listed).toMatchObject({ items: [{ name: 'grandchild' }], next: grandchild });
    expect(
      must(await listApiKeys(keys, ADMIN, { perPage: 1, madeBy: `key:${leaked}`, cursor: listed.next })).items,
    ).toMatchObject([{ name: 'child' }]);
    const { revoked, kept } = must(await revokeApiKey(keys, ADMIN, leaked));
    expect({ revoked: namesIn(revoked), kept: namesIn(kept) }).toEqual({ revoked: ['child', 'grandchild'], kept: [] });
    for (const each of [keys, await reopen()])
      expect([leaked, child, grandchild, bystander].map((id) => isValid(each, id))).toEqual([
        false,
        false,
        false,
        true,
      ]);
    expect(audit.drafts.filter(({ eventType }) => eventType === 'ApiKeyRevoked')).toHaveLength(3);
  });

  test('end with it although the one between them has ended before', async () => {
    const { keys } = await start();
    const leaked = await make(keys, ADMIN, 'leaked');
    const child = await make(keys, makerOf(leaked), 'child');
    const grandchild = await make(keys, makerOf(child), 'grandchild');
    must(await revokeApiKey(keys, ADMIN, child, false));
    expect(isValid(keys, grandchild)).toBe(true);
    must(await revokeApiKey(keys, ADMIN, leaked));
    expect(isValid(keys, grandchild)).toBe(false);
  });

  test('are kept where that is asked for, and named', async () => {
    const { keys } = await start();
    const old = await make(keys, ADMIN, 'old');
    const child = await make(keys, makerOf(old), 'child');
    expect(must(await revokeApiKey(keys, ADMIN, old, false))).toMatchObject({ revoked: [], kept: [{ id: child }] });
    expect(isValid(keys, child)).toBe(true);
  });

  test('and that asks is spared: a successor that revokes its maker is not locked out', async () => {
    const { keys } = await start();
    const old = await make(keys, ADMIN, 'old');
    const successor = await make(keys, makerOf(old), 'successor');
    const own = await make(keys, makerOf(successor), 'own');
    const other = await make(keys, makerOf(old), 'other');
    const { revoked, kept } = must(await revokeApiKey(keys, makerOf(successor), old));
    expect({ revoked: namesIn(revoked), kept: namesIn(kept) }).toEqual({
      revoked: ['other'],
      kept: ['own', 'successor'],
    });
    expect([successor, own, other].map((id) => isValid(keys, id))).toEqual([true, true, false]);
    const again = must(await revokeApiKey(keys, makerOf(successor), old));
    expect(again.ended).toEqual([`key:${old}`, `key:${other}`]);
  });

  test('while it was being revoked do not survive it', async () => {
    const { keys, store } = await start();
    const leaked = await make(keys, ADMIN, 'leaked');
    const insert = store.insert.bind(store);
    store.insert = async (record) => {
      must(await revokeApiKey(keys, ADMIN, leaked)); // it finds nothing yet
      return insert(record);
    };
    const made = await createApiKey(keys, makerOf(leaked), { name: 'late', scopes: ['admin'] });
    expect(faultOf(made)).toMatchObject({ kind: 'unauthenticated' });
    const all = must(await listApiKeys(keys, ADMIN, { perPage: 10 })).items;
    expect(all.map(({ revokedAtMs }) => revokedAtMs)).toEqual([expect.any(Number), expect.any(Number)]);
  });

  test('are hidden from an admin of one org if they belong to another', async () => {
    const { keys } = await start();
    const maker = await make(keys, ADMIN, 'maker');
    must(await createApiKey(keys, makerOf(maker), { name: 'acme', scopes: ['read'], orgId: 'acme' }));
    must(await createApiKey(keys, makerOf(maker), { name: 'beta', scopes: ['read'], orgId: 'beta' }));
    const acme = makerOf('somebody', 'acme');
    expect(namesIn(must(await listApiKeys(keys, acme, { perPage: 10, madeBy: `key:${maker}` })).items)).toEqual([
      'acme',
    ]);
  });
});

describe('keys that an account made', () => {
  test('end as far as they hold more than its role', async () => {
    const { keys } = await start();
    const account: Principal = { subject: 'account:ann', scopes: ['admin'], orgId: null, role: 'admin' };
    const admin = await make(keys, account, 'admin');
    const reader = await make(keys, account, 'reader', ['read']);
    const ofAdmin = await make(keys, makerOf(admin), 'of-admin', ['read']);
    const asked = { maker: 'account:ann', actor: ADMIN.subject, cascade: true } as const;
    const { revoked, ended } = must(await endMadeKeys(keys, { ...asked, mayHold: ['read'] }));
    expect(namesIn(revoked)).toEqual(['admin', 'of-admin']);
    expect(ended).toEqual(['account:ann', `key:${admin}`, `key:${ofAdmin}`]);
    expect([admin, ofAdmin, reader].map((id) => isValid(keys, id))).toEqual([false, false, true]);
    expect(namesIn(must(await endMadeKeys(keys, { ...asked, mayHold: [] })).revoked)).toEqual(['reader']);
  });
});
