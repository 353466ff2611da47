/** The door of the Connect methods, over a real socket of either engine. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ConnectMethod } from '../../../src/doors/connect/connect.ts';
import { serveConnect } from '../../../src/doors/connect/door.ts';
import { DoorState } from '../../../src/doors/engine/door-state.ts';
import type { Engine } from '../../../src/doors/engine/engine.ts';
import { ENGINES } from '../../support/engines.ts';
import { askWithoutReading, head } from '../../support/raw-http.ts';

const unexpected = (error: unknown): void => {
  throw error;
};
const PATH = '/svc.governance.v1.PolicyService/BatchCheckActions';
const ANSWER_BYTES = 10_000;

async function serve(
  http: Engine,
  answer: ConnectMethod['answer'],
  door = new DoorState(Infinity),
  onDefect: (error: unknown) => void = unexpected,
): Promise<{ readonly url: string }> {
  serveConnect(http, {
    door,
    methods: new Map([[PATH, { maxBytes: 1_000, answer }]]),
    corsOrigins: [],
    own: { origins: [], hosts: undefined },
    bodyTimeoutMs: 60_000,
    onRequest: () => undefined,
    onDefect,
  });
  const port = await http.listen('127.0.0.1', 0, false);
  onTestFinished(() => http.close());
  return { url: `http://127.0.0.1:${port}` };
}

describe('connect door', () => {
  test.each(ENGINES)('over %s a client that sends and does not read is cut off', async (_, create) => {
    let answered = 0;
    const gateway = await serve(create(), (_head, _body, reply) => {
      setImmediate(() => {
        // as from another thread
        answered += 1;
        reply({ status: 200, text: { type: 'application/json', content: 'x'.repeat(ANSWER_BYTES) } });
      });
    });
    const request = `${head(`POST ${PATH} HTTP/1.1`, { 'Content-Type': 'application/json', 'Content-Length': '2' })}{}`;
    await askWithoutReading(gateway, request, () => answered, 10_000);
    // The system keeps some 6 MB for a connection, and of the answers beyond that one in sixteen is looked at.
    expect(answered).toBeLessThan(2_000);
  });

  test.each(ENGINES)(
    'over %s, each answer during shutdown asks the client to close the connection',
    async (_, create) => {
      const door = new DoorState(Infinity);
      const gateway = await serve(
        create(),
        (_head, _body, reply) =>
          void setImmediate(() => reply({ status: 200, text: { type: 'application/json', content: '{}' } })),
        door,
      );
      door.isDraining = true;
      const answer = await fetch(gateway.url + PATH, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      });
      expect({
        status: answer.status,
        connection: answer.headers.get('connection'),
        text: await answer.text(),
      }).toEqual({
        status: 200,
        connection: 'close',
        text: '{}',
      });
    },
  );

  test.each(ENGINES)(
    'over %s a defect at the start of a call is internal, its message logged only',
    async (_, create) => {
      const defects: unknown[] = [];
      const gateway = await serve(
        create(),
        () => {
          throw new Error('secret detail');
        },
        undefined,
        (error) => defects.push(error),
      );
      const answer = await fetch(gateway.url + PATH, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      });
      expect({ status: answer.status, body: await answer.json() }).toMatchObject({
        status: 500,
        body: { code: 'internal', detail: 'internal error; see the log of the gateway' },
      });
      expect(defects).toEqual([new Error('secret detail')]);
    },
  );

  test.each(ENGINES)('over %s an answer names the gateways that do not act by it yet', async (_, create) => {
    const gateway = await serve(create(), (_head, _body, reply) =>
      reply({
        status: 200,
        text: { type: 'application/json', content: '{}' },
        headers: [['svc-unconfirmed', 'gateway-2']],
      }),
    );
    const answer = await fetch(gateway.url + PATH, { method: 'POST', body: '{}' });
    expect({ status: answer.status, unconfirmed: answer.headers.get('svc-unconfirmed') }).toEqual({
      status: 200,
      unconfirmed: 'gateway-2',
    });
  });

  test.each(ENGINES)('over %s a body beyond the limit of its method is refused', async (_, create) => {
    const gateway = await serve(create(), () => expect.unreachable());
    const answer = await fetch(gateway.url + PATH, { method: 'POST', body: 'x'.repeat(1_001) });
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({
      status: 413,
      body: { code: 'resource_exhausted' },
    });
  });
});
