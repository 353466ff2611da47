import { describe, expect, test } from 'vitest';
import type { TestGateway } from '../../support/gateway.ts';

/** Effects that hold at every gateway of a cluster when one of them has answered. */
export function describeEndedEverywhere(gateways: () => readonly [TestGateway, ...TestGateway[]]): void {
  describe('end at once at all', () => {
    const post = (path: string, body: unknown = {}, bearer?: string) =>
      gateways()[0].call('POST', `/api/v1/${path}`, body, bearer);
    const usedElsewhere = (key: string) => {
      const [, ...others] = gateways();
      return Promise.all(others.map(async (other) => (await other.call('GET', '/api/v1/ops', undefined, key)).status));
    };

    test('a key that is revoked at one of them', async () => {
      for (let round = 0; round < 10; round += 1) {
        const { id, key } = (await post('iam/api-keys', { name: 'k', scopes: ['read', 'write'] })).body;
        expect(await usedElsewhere(key)).toEqual([200, 200]);
        const revoked = await post(`iam/api-keys/${id}/revoke`);
        expect([revoked.status, revoked.headers.get('svc-unconfirmed')]).toEqual([204, null]);
        expect(await usedElsewhere(key)).toEqual([401, 401]);
      }
    });

    test('the keys of an account that is disabled at one of them', async () => {
      const password = 'a long enough passphrase 7';
      await post('auth/register', { email: 'owner@acme.test', password });
      const invited = await post('auth/invite', { email: 'admin@acme.test', role: 'admin' });
      const accepted = await post('auth/invite/accept', { invite_token: invited.body.invite_token, password });
      const account = `accounts/${accepted.body.account.id}`;
      for (let round = 0; round < 3; round += 1) {
        const signedIn = await post('auth/login', { email: 'admin@acme.test', password });
        const made = await post('iam/api-keys', { name: 'k', scopes: ['read'] }, signedIn.body.access_token);
        expect(await usedElsewhere(made.body.key)).toEqual([200, 200]);
        const disabled = await post(`${account}/disable`);
        expect(disabled.body.revoked_keys).toEqual([{ id: made.body.id, name: 'k' }]);
        expect(await usedElsewhere(made.body.key)).toEqual([401, 401]);
        await post(`${account}/enable`);
      }
    });
  });
}
