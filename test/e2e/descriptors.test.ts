/** A gateway that has opened as many files and connections as it may. */
import { execFileSync } from 'node:child_process';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { grpcClient } from '../support/grpc-client.ts';

let gateway: TestGateway;

describe('descriptors', () => {
  beforeAll(async () => {
    // Its idle connections over HTTP may stay for a minute.
    gateway = await startTestGateway({ env: { SVC_HTTP_ENGINE: 'node', SVC_MAX_GRPC_CONNECTIONS: '4' } });
  });
  afterAll(async () => {
    await gateway.stop('SIGKILL');
  });

  test('idle gRPC connections make room for others, and the log says it once', async () => {
    const [host, port] = gateway.grpc.split(':');
    const idle: Socket[] = [];
    for (let nth = 0; nth < 12; nth += 1) {
      const socket = connect(Number(port), host);
      socket.on('error', () => undefined).resume();
      await new Promise((resolve) => socket.once('connect', resolve));
      idle.push(socket);
    }
    const client = grpcClient(gateway.grpc);
    const agent = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
    await eventually(async () =>
      expect(await client.call('DeregisterAgent', { agent })).toMatchObject({ code: 'UNAUTHENTICATED' }),
    );
    client.close();
    for (const socket of idle) socket.destroy();
    await eventually(() =>
      expect(gateway.output.stderr.match(/closes idle gRPC connections, so that others find a place/g)).toHaveLength(1),
    );
  });

  test.skipIf(process.platform !== 'linux')(
    'without files, who is connected is served, and others once there are some',
    async () => {
      const kept = new Agent({ keepAlive: true, maxSockets: 1 });
      onTestFinished(() => kept.destroy());
      const allow = (descriptors: number) =>
        execFileSync('prlimit', ['--pid', String(gateway.process.pid), `--nofile=${descriptors}:`]);
      expect(await metricsOver(kept)).toMatch(/^svc_files_available 1$/m);
      allow(10);
      await eventually(async () => expect(await metricsOver(kept)).toMatch(/^svc_files_available 0$/m));
      const newcomer = metricsOver(new Agent());
      expect(
        gateway.output.stderr.match(
          /"code":"EMFILE","remedy":"raise the limit [^"]+","msg":"out of file descriptors[^"]+"/g,
        ),
      ).toHaveLength(1);
      allow(1_000);
      await eventually(async () => expect(await metricsOver(kept)).toMatch(/^svc_files_available 1$/m));
      expect(await newcomer).toMatch(/^svc_files_available [01]$/m);
      expect(gateway.output.stderr.match(/file descriptors are available again/g)).toHaveLength(1);
      expect(await gateway.stop()).toBe(0);
    },
  );
});

const metricsOver = (agent: Agent): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { agent, headers: { authorization: `Bearer ${ADMIN_KEY}` } };
    request(`${gateway.url}/metrics`, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => resolve(text));
    })
      .on('error', reject)
      .end();
  });
