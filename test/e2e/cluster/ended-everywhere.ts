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

    test('the webhooks of a key that is revoked, but for one taken over at another', async () => {
      const [, other] = gateways();
      const made = (await post('iam/api-keys', { name: 'hooks', scopes: ['admin'], org_id: 'hooked' })).body;
      const strange = (await post('iam/api-keys', { name: 'strange', scopes: ['admin'], org_id: 'strange' })).body;
      const hook = { url: 'https://example.com/hook', events: ['violation'] };
      const own = (await post('webhooks', hook, made.key)).body.id;
      const taken = (await post('webhooks', hook, made.key)).body.id;
      const takeOver = async (bearer?: string) =>
        (await other!.call('POST', `/api/v1/webhooks/${taken}/take-over`, undefined, bearer)).status;
      expect([await takeOver(strange.key), await takeOver()]).toEqual([404, 200]);
      const revoked = await post(`iam/api-keys/${made.id}/revoke`);
      expect([revoked.headers.get('svc-deleted-webhooks'), revoked.headers.get('svc-unconfirmed')]).toEqual([
        own,
        null,
      ]);
      for (const gateway of gateways()) {
        const { webhooks } = (await gateway.call('GET', '/api/v1/webhooks?org_id=hooked')).body;
        expect(webhooks.map(({ id }: { id: string }) => id)).toEqual([taken]);
      }
      await other!.call('DELETE', `/api/v1/webhooks/${taken}`);
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
        const hook = { url: 'https://example.com/hook', events: ['violation'] };
        const { id, url } = (await post('webhooks', hook, signedIn.body.access_token)).body;
        expect(await usedElsewhere(made.body.key)).toEqual([200, 200]);
        const disabled = await post(`${account}/disable`);
        expect(disabled.body.revoked_keys).toEqual([{ id: made.body.id, name: 'k' }]);
        expect(disabled.body.deleted_webhooks).toEqual([{ id, url }]);
        expect(await usedElsewhere(made.body.key)).toEqual([401, 401]);
        await post(`${account}/enable`);
      }
    });
  });
}
