/** A gateway that has opened as many files and connections as it may. */
import { execFileSync } from 'node:child_process';
import { Agent, request } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';

describe('descriptors', () => {
  test.skipIf(process.platform !== 'linux')(
    'without files, who is connected is served, and others once there are some',
    async () => {
      // Its idle connections may stay for a minute.
      const gateway = await startTestGateway({ env: { SVC_HTTP_ENGINE: 'node' } });
      const kept = new Agent({ keepAlive: true, maxSockets: 1 });
      onTestFinished(async () => {
        kept.destroy();
        await gateway.stop('SIGKILL');
      });
      const allow = (descriptors: number) =>
        execFileSync('prlimit', ['--pid', String(gateway.process.pid), `--nofile=${descriptors}:`]);
      expect(await metricsOver(gateway, kept)).toMatch(/^svc_files_available 1$/m);
      allow(10);
      await eventually(async () => expect(await metricsOver(gateway, kept)).toMatch(/^svc_files_available 0$/m));
      const newcomer = metricsOver(gateway, new Agent());
      expect(
        gateway.output.stderr.match(
          /"code":"EMFILE","remedy":"raise the limit [^"]+","msg":"out of file descriptors[^"]+"/g,
        ),
      ).toHaveLength(1);
      allow(1_000);
      await eventually(async () => expect(await metricsOver(gateway, kept)).toMatch(/^svc_files_available 1$/m));
      expect(await newcomer).toMatch(/^svc_files_available [01]$/m);
      expect(gateway.output.stderr.match(/file descriptors are available again/g)).toHaveLength(1);
      expect(await gateway.stop()).toBe(0);
    },
  );
});

const metricsOver = (gateway: TestGateway, agent: Agent): Promise<string> =>
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
