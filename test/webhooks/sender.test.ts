import { createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Failure, reasonFor } from '../../src/webhooks/delivery.ts';
import { type Call, type SenderOptions, sendCall } from '../../src/webhooks/sender.ts';
import { answered, isSigned, type Receiver, startReceiver } from '../support/receiver.ts';

const SECRET = `whsec_${Buffer.from('a key of thirty-two bytes, or so').toString('base64')}`;

let receiver: Receiver;
let elsewhere: Receiver;

const send = (call: Partial<Call> = {}, options: Partial<SenderOptions> = {}) =>
  sendCall(
    { url: receiver.url, secret: SECRET, id: 'msg_1', body: '{"type":"webhook.test"}', ...call },
    {
      isPrivateAllowed: true,
      version: '1.2.3',
      resolve: async () => ['127.0.0.1'],
      nowMs: () => 1_700_000_000_999,
      timeoutMs: 1_000,
      ...options,
    },
  );

describe('calls of webhooks', () => {
  beforeAll(async () => {
    [receiver, elsewhere] = await Promise.all([startReceiver(), startReceiver()]);
  });
  beforeEach(() => {
    receiver.received.length = 0;
    elsewhere.received.length = 0;
    receiver.answer = answered(204);
  });
  afterAll(async () => {
    await Promise.all([receiver.close(), elsewhere.close()]);
  });

  test('are signed as Standard Webhooks wants it', async () => {
    expect(await send()).toEqual({ isDelivered: true });
    const [call] = receiver.received;
    expect(call).toMatchObject({ id: 'msg_1', timestamp: '1700000000', body: '{"type":"webhook.test"}' });
    expect(isSigned(call!, SECRET)).toBe(true);
    expect(isSigned({ ...call!, body: '{}' }, SECRET)).toBe(false);
  });

  test.each([200, 201, 299])('have arrived with status %i', async (status) => {
    receiver.answer = answered(status);
    expect(await send()).toEqual({ isDelivered: true });
  });

  test.each([400, 404, 410, 429, 500, 503])('have not arrived with status %i', async (status) => {
    receiver.answer = answered(status);
    expect(await send()).toEqual({ isDelivered: false, reason: `answered ${status}` });
  });

  test.each([301, 302, 307, 308])('do not follow a redirect by %i', async (status) => {
    receiver.answer = answered(status, { location: elsewhere.url });
    expect(await send()).toEqual({
      isDelivered: false,
      reason: `answered ${status}; redirects are not followed`,
    });
    expect(elsewhere.received).toEqual([]);
  });

  test('end when a receiver does not answer', async () => {
    receiver.answer = () => undefined;
    expect(await send({}, { timeoutMs: 200 })).toEqual({
      isDelivered: false,
      reason: 'no answer within 0.2 seconds',
    });
  });

  test('end when a receiver trickles its head, however lively it looks', async () => {
    const trickling = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.write('HTTP/1.1 200 OK\r\n');
      const timer = setInterval(() => socket.write('x-more: 1\r\n'), 20);
      socket.on('close', () => clearInterval(timer));
    });
    await new Promise<void>((resolve) => trickling.listen(0, '127.0.0.1', resolve));
    const { port } = trickling.address() as { port: number };
    const delivery = await send({ url: `http://127.0.0.1:${port}/` }, { timeoutMs: 300 });
    trickling.close();
    expect(delivery).toEqual({ isDelivered: false, reason: 'no answer within 0.3 seconds' });
  });

  test('do not read an endless answer', async () => {
    let written = 0;
    const closed = new Promise<void>((resolve) => {
      receiver.answer = (_request, response) => {
        response.writeHead(200);
        const more = (): void => {
          while (!response.destroyed && response.write(Buffer.alloc(16_384))) written += 16_384;
        };
        response.on('drain', more).on('close', resolve);
        more();
      };
    });
    expect(await send({}, { timeoutMs: 20_000 })).toEqual({ isDelivered: true });
    await closed;
    expect(written).toBeLessThan(64 * 1_048_576); // what fits into the buffers of two sockets
  });

  test('say which connection failed', async () => {
    expect(await send({ url: 'http://127.0.0.1:1/' })).toEqual({
      isDelivered: false,
      reason: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test('do not go to a name that leads inside, asked anew each time', async () => {
    const answers = [['93.184.216.34', '127.0.0.1'], ['10.0.0.1'], ['::ffff:127.0.0.1'], ['fe80::1']];
    for (const found of answers) {
      const url = `http://rebinding.example:${receiver.port}/`;
      const delivery = await send({ url }, { isPrivateAllowed: false, resolve: async () => found });
      expect(delivery).toEqual({
        isDelivered: false,
        reason: `rebinding.example leads to ${found.at(-1)}, which is not an address of the internet`,
        shown: 'its name leads to no address of the internet',
      });
    }
    const literal = await send({}, { isPrivateAllowed: false });
    expect(literal).toMatchObject({ isDelivered: false, reason: expect.stringContaining('127.0.0.1') });
    expect(receiver.received).toEqual([]);
  });

  test('tell those of an org the same of an internal name and of one that does not exist', async () => {
    const inside = { isPrivateAllowed: false };
    const internal = await send({ url: 'http://db.corp.example/' }, { ...inside, resolve: async () => ['10.0.0.5'] });
    const resolve = () =>
      Promise.reject(Object.assign(new Error('queryA ENOTFOUND no.corp.example'), { code: 'ENOTFOUND' }));
    const unknown = await send({ url: 'http://no.corp.example/' }, { ...inside, resolve });
    const empty = await send({ url: 'http://empty.corp.example/' }, { ...inside, resolve: async () => [] });
    expect([internal, unknown, empty].map((each) => reasonFor('acme', each as Failure))).toEqual(
      Array(3).fill('its name leads to no address of the internet'),
    );
    expect([internal, unknown].map((each) => reasonFor(null, each as Failure))).toEqual([
      'db.corp.example leads to 10.0.0.5, which is not an address of the internet',
      'queryA ENOTFOUND no.corp.example',
    ]);
    const refused = await send({ url: 'http://127.0.0.1:1/' });
    expect(reasonFor('acme', refused as Failure)).toContain('ECONNREFUSED');
  });

  test('go to the address that was checked, whatever the name leads to next', async () => {
    const answers = [['127.0.0.1'], ['127.0.0.2'], ['127.0.0.3']];
    let asked = 0;
    const url = `http://rebinding.example:${receiver.port}/`;
    const delivery = await send({ url }, { resolve: async () => answers[asked++]! });
    expect(delivery).toEqual({ isDelivered: true });
    expect(asked).toBe(1);
  });

  test('end when the name server does not answer', async () => {
    const resolve = () => new Promise<never>(() => undefined);
    expect(await send({ url: 'http://hanging.example/' }, { resolve, timeoutMs: 100 })).toEqual({
      isDelivered: false,
      reason: 'no answer within 0.1 seconds',
    });
  });
});
