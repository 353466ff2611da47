/** A gateway that has opened as many files and connections as it may. */
import { execFileSync } from 'node:child_process';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startTestGateway } from '../support/gateway.ts';

describe('descriptors', () => {
  test.skipIf(process.platform !== 'linux')(
    'logs once that no file descriptor is left, with advice, and the recovery',
    async () => {
      const gateway = await startTestGateway();
      onTestFinished(async () => {
        await gateway.stop('SIGKILL');
      });
      const allow = (descriptors: number) =>
        execFileSync('prlimit', ['--pid', String(gateway.process.pid), `--nofile=${descriptors}:`]);
      for (let round = 1; round <= 2; round += 1) {
        allow(10);
        await eventually(() =>
          expect(
            gateway.output.stderr.match(
              /"code":"EMFILE","remedy":"raise the limit [^"]+","msg":"out of file descriptors[^"]+"/g,
            ),
          ).toHaveLength(round),
        );
        allow(1_000);
        await eventually(() =>
          expect(gateway.output.stderr.match(/file descriptors are available again/g)).toHaveLength(round),
        );
      }
      expect(await gateway.stop()).toBe(0);
    },
  );
});
