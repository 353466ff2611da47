import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { expectAllowed, readH2loadLog } from '../../bench/lib/answers.ts';

describe('answers', () => {
  test('denied or refused checks are no measurement, and the benchmark lists them', async () => {
    let answer = { status: 200, body: '{"decision":"DECISION_ALLOW"}' };
    const server = createServer((_request, response) => response.writeHead(answer.status).end(answer.body));
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const ask = (): Promise<void> =>
      expectAllowed(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {}, '{}');
    await ask();
    answer = { status: 200, body: '{"decision":"DECISION_DENY","reason":"the audit log cannot be written"}' };
    await expect(ask()).rejects.toThrow(
      'at the end of the load, a check was answered: 200 {"decision":"DECISION_DENY","reason":"the audit log cannot be written"}',
    );
    answer = { status: 429, body: '{"code":"resource_exhausted","message":"the registry is full"}' };
    await expect(ask()).rejects.toThrow('429 {"code":"resource_exhausted","message":"the registry is full"}');
    const closed = new Promise((resolve) => {
      server.close(resolve);
    });
    server.closeAllConnections();
    await closed;
  });

  test('an unanswered check at a steady rate counts as failed, and its wait as none', () => {
    const { waits, failed } = readH2loadLog(
      '1700000000000000\t200\t1500\n1700000000000100\t503\t20\n1700000000000200\t200\t500\n',
      5,
    );
    expect([...waits]).toEqual([0.5, 1.5]);
    expect(failed).toBe(3);
    expect(readH2loadLog('', 5).failed).toBe(5);
  });
});
