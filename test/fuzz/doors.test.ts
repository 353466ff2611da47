/** A short pass of what test/soak/fuzz-doors.test.ts does hundreds of thousands of times. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { fuzzDoors } from './doors.ts';

const REQUESTS = 500;

let gateway: TestGateway;

describe('doors', () => {
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterAll(async () => {
    await gateway?.stop('SIGKILL');
  });

  test('answer requests that are almost right, and none of them with a defect', async () => {
    const { statuses } = await fuzzDoors(gateway, 1, REQUESTS);
    for (const status of ['200', '400', '401', '404', 'grpc 0', 'grpc 3'])
      expect(statuses.get(status) ?? 0, `answers with ${status}`).toBeGreaterThan(0);
    expect(gateway.output.stderr).not.toMatch(/"level":"(?:error|fatal)"/);
    expect((await gateway.call('GET', '/healthz')).status).toBe(200);
  });
});
