/** A defect of the gateway costs one request, in either arrangement of its threads: `SVC_IO_THREADS`. */
import { connect as connectHttp2 } from 'node:http2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { ARRANGEMENTS } from '../support/arrangements.ts';
import { eventually } from '../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { sendRaw } from '../support/raw-http.ts';
import { openStream, type StreamClient } from '../support/stream.ts';

const CHECK = '/svc.governance.v1.PolicyService/CheckAction';

/** How a call with this deadline ends: the code of its stream of HTTP/2. */
function callWith(grpc: string, deadline: string): Promise<number> {
  const session = connectHttp2(`http://${grpc}`);
  return new Promise((resolve, reject) => {
    session.once('error', reject);
    const call = session.request({
      ':method': 'POST',
      ':path': CHECK,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': deadline,
    });
    call.once('error', () => undefined);
    call.once('close', () => {
      resolve(call.rstCode);
      session.close();
    });
    call.resume();
    call.end();
  });
}

describe.each(ARRANGEMENTS)('a defect in a door, $arrangement', ({ env }) => {
  let gateway: TestGateway;
  let watching: StreamClient;

  beforeAll(async () => {
    gateway = await startTestGateway({
      env: {
        ...env,
        NODE_OPTIONS: `--import=${new URL('../support/plant-defects.mjs', import.meta.url).href}`,
      },
    });
    watching = await openStream(gateway);
  });
  afterAll(() => gateway?.stop());

  const defects = async (): Promise<unknown> => {
    const { body } = await gateway.call('GET', '/metrics');
    return Object.fromEntries(
      ['svc_door_defects_total', 'svc_threads_restarted_total'].map((name) => [
        name,
        Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(body)?.[1]),
      ]),
    );
  };

  test('ends one request over each protocol and nothing else; it is logged and counted', async () => {
    const overConnect = await sendRaw(gateway, [
      `POST ${CHECK}?planted-defect HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`,
    ]);
    expect(overConnect.statuses).toEqual([500]);
    expect((await gateway.call('GET', '/api/v1/ops?planted-defect')).status).toBe(500);
    expect(await callWith(gateway.grpc, '66666666S')).toBe(2); // INTERNAL_ERROR
    expect(await callWith(gateway.grpc, '1S')).toBe(0);

    await eventually(async () =>
      expect(await defects()).toEqual({ svc_door_defects_total: 3, svc_threads_restarted_total: 0 }),
    );
    expect(gateway.output.stderr.match(/failed at (a Connect call|an HTTP request|a gRPC call)/g)).toEqual([
      'failed at a Connect call',
      'failed at an HTTP request',
      'failed at a gRPC call',
    ]);
    expect(gateway.output.stderr.match(/planted by a test/g)).toHaveLength(3);
    expect({ stream: watching.socket.readyState, exitCode: gateway.process.exitCode }).toEqual({
      stream: WebSocket.OPEN,
      exitCode: null,
    });
  });
});
