import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startTestGateway } from '../support/gateway.ts';
import { residentMib } from '../support/memory.ts';

const CONNECTIONS = 24;
/** The most that a connection may have, but one. */
const STREAMS = 255;

/** From an address of its own: one alone may have few streams without a credential. */
function dial(port: number, index: number): ClientHttp2Session {
  const session = connectHttp2('http://gateway', {
    createConnection: () => connect({ host: '127.0.0.1', port, localAddress: `127.0.0.${index + 2}` }),
  });
  return session.on('error', () => undefined); // what becomes of its streams is what counts
}

/** Begins as many calls as the connection may have, with a head and nothing else, and waits until all have come. */
async function beginCalls(session: ClientHttp2Session, path: string): Promise<ClientHttp2Stream[]> {
  const calls = Array.from({ length: STREAMS }, (_, index) =>
    session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      'x-baggage': String(index).padStart(1_000, 'x'),
    }),
  );
  for (const call of calls) call.on('error', () => undefined).resume();
  const last = session.request({ ':method': 'GET', ':path': '/' }); // they are taken in their order
  await once(last.resume(), 'close');
  return calls;
}

describe('silent streams', () => {
  test('six thousand without a credential cost little and are ended in time', async () => {
    const gateway = await startTestGateway({ env: { SVC_BODY_TIMEOUT_SECS: '12', SVC_IO_THREADS: '1' } });
    const sessions = Array.from({ length: CONNECTIONS }, (_, index) => dial(Number(gateway.grpc.split(':')[1]), index));
    const before = residentMib(gateway.process.pid);
    const calls: ClientHttp2Stream[] = [];
    for (const session of sessions)
      calls.push(...(await beginCalls(session, '/svc.governance.v1.PolicyService/StreamCheckActions')));
    expect(calls).toHaveLength(CONNECTIONS * STREAMS);
    // An eighth of all streams that a thread may have is for them; the others are refused at once.
    await eventually(() => expect(calls.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(5_000));
    expect(calls.filter(({ closed }) => !closed).length).toBeGreaterThan(4_000);
    expect(residentMib(gateway.process.pid) - before).toBeLessThan(150);
    await eventually(() => expect(calls.every(({ closed }) => closed)).toBe(true), 60_000);
    for (const session of sessions) session.destroy();
    await gateway.stop();
  });
});
