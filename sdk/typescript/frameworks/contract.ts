/** Promises of every adapter, whatever the framework. */
import { fakeGateway } from 'svc-gateway-sdk/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

type Client = ReturnType<typeof fakeGateway>['client'];

/** Runs an agent whose model calls `pay` once with the amount 500. Resolves to what the model has read of it. */
type Scene = (client: Client, pay: (args: { amount: number }) => unknown) => Promise<string>;

/** `resource`: what a call of `pay` is to the gateway. */
export function contract(framework: string, scene: Scene, resource = 'pay'): void {
  describe(`tools of ${framework}`, () => {
    test('run when allowed, with arguments as obligations change them', async () => {
      const gateway = gatewayOfTest();
      const cap = { id: 'little', type: 'cap', properties: { path: 'amount', max: 100 } };
      gateway.allow('*', resource, { obligations: [cap] });
      const { paid, pay } = till();
      expect(await scene(gateway.client, pay)).toContain('paid');
      expect(paid).toEqual([100]);
      expect(gateway.ops).toMatchObject([{ resource, attributes: { amount: 500 }, outcome: 'success' }]);
    });

    test('do not run when denied, and the model is told why', async () => {
      const gateway = gatewayOfTest();
      gateway.deny('*', resource, { reason: 'too dangerous' });
      const { paid, pay } = till();
      const read = await scene(gateway.client, pay);
      expect(read).toContain('too dangerous');
      expect(read).toContain('Do not try the same in another form');
      expect(paid).toEqual([]);
    });

    test('do not run while nobody answers', async () => {
      const gateway = gatewayOfTest();
      gateway.allow('*');
      gateway.setReachable(false);
      const { paid, pay } = till();
      expect(await scene(gateway.client, pay)).toContain('cannot reach the gateway');
      expect(paid).toEqual([]);
    });

    test('end their operations as failed if they throw', async () => {
      const gateway = gatewayOfTest();
      gateway.allow('*');
      const failing = (): never => {
        throw new Error('no money');
      };
      expect(await scene(gateway.client, failing).catch(String)).toMatch(/no money|An error occurred/);
      expect(gateway.ops).toMatchObject([{ outcome: 'failure' }]);
    });
  });
}

/** For those whose tools wait for people themselves. */
export function waiting(framework: string, scene: Scene, resource = 'pay'): void {
  describe(`tools of ${framework} that wait for people`, () => {
    test('run once when they approve', async () => {
      const gateway = gatewayOfTest();
      gateway.requireApproval('*', resource);
      const { paid, pay } = till();
      const read = scene(gateway.client, pay);
      const { id } = await gateway.pendingApproval();
      expect(paid).toEqual([]);
      gateway.decide(id, 'approve');
      expect(await read).toContain('paid');
      expect(paid).toEqual([500]);
      expect(gateway.ops).toHaveLength(1);
    });

    test('do not run when they deny', async () => {
      const gateway = gatewayOfTest();
      gateway.requireApproval('*', resource);
      const { paid, pay } = till();
      const read = scene(gateway.client, pay);
      gateway.decide((await gateway.pendingApproval()).id, 'deny', 'not today');
      expect(await read).toContain('not today');
      expect(paid).toEqual([]);
    });
  });
}

export function gatewayOfTest() {
  const gateway = fakeGateway();
  onTestFinished(() => gateway.close());
  return gateway;
}

export function till() {
  const paid: number[] = [];
  const pay = ({ amount }: { amount: number }): string => {
    paid.push(amount);
    return 'paid';
  };
  return { paid, pay };
}
