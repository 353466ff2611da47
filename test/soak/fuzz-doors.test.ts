/** A real gateway with half a million requests that are almost right (test/fuzz/doors.ts). */
import { describe, expect, test } from 'vitest';
import { fuzzDoors } from '../fuzz/doors.ts';
import { startTestGateway } from '../support/gateway.ts';
import { residentMib } from '../support/memory.ts';
import { startSoak } from '../support/soak.ts';

const REQUESTS = 500_000;

describe('doors', () => {
  test('answer half a million requests that are almost right', async () => {
    const soak = startSoak('fuzz-doors');
    const requests = soak.of(REQUESTS);
    const gateway = await startTestGateway();
    try {
      const { statuses, slowestMs } = await fuzzDoors(gateway, soak.seed, requests);
      expect(gateway.output.stderr).not.toMatch(/"level":"(?:error|fatal)"/);
      const sum = (pattern: RegExp): number =>
        [...statuses].reduce((count, [status, times]) => (pattern.test(status) ? count + times : count), 0);
      soak.done({
        requests,
        'answered with a success': sum(/^(?:2\d\d|grpc 0)$/),
        'refused for what is wrong with them': sum(/^(?:4\d\d|grpc (?:3|5|7|9|16))$/),
        'of a gateway without accounts, 503': sum(/^503$/),
        'other 5xx, INTERNAL or UNKNOWN': 0,
        'without an answer': 0,
        'slowest answer': `${Math.round(slowestMs)} ms`,
        'memory at the end': `${Math.round(residentMib(gateway.process.pid))} MiB`,
      });
    } finally {
      await gateway.stop('SIGKILL');
    }
  });
});
