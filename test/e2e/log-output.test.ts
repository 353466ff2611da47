/** The log is for whoever reads it, and the gateway goes on where nobody does, or nothing can be written. */
import { closeSync, openSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type GatewayOptions, startTestGateway, type TestGateway } from '../support/gateway.ts';

async function start(options: GatewayOptions): Promise<TestGateway> {
  const gateway = await startTestGateway(options);
  onTestFinished(async () => {
    await gateway.stop('SIGKILL');
  });
  return gateway;
}

const reload = (gateway: TestGateway) => gateway.call('POST', '/api/v1/policies/reload');

describe('log output', () => {
  test('a log on a disk without room ends nothing', async () => {
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const gateway = await start({ stderr: full });
    expect((await reload(gateway)).status).toBe(200); // which is a line of the log
    expect((await reload(gateway)).status).toBe(200);
    expect(await gateway.stop()).toBe(0);
  });

  /** A line each, some 200 KB together: more than a pipe holds. */
  const LOUD = Object.fromEntries(Array.from({ length: 1_500 }, (_, at) => [`SVC_NOT_A_SETTING_${at}`, '1']));
  const warnings = ({ output }: TestGateway): string[] =>
    [...output.stderr.matchAll(/"name":"SVC_NOT_A_SETTING_(\d+)"/g)].map(([, at = '']) => at);

  test('an unread log blocks nothing, is complete once read, and allows the shutdown', async () => {
    const gateway = await start({ env: LOUD, meanwhile: (child) => child.stderr?.pause() });
    expect((await reload(gateway)).status).toBe(200);
    gateway.process.stderr?.resume();
    await eventually(() => expect(gateway.output.stderr).toContain('policies reloaded'));
    expect(warnings(gateway)).toEqual(Array.from({ length: 1_500 }, (_, at) => String(at)));
    gateway.process.stderr?.pause();
    expect(await gateway.stop()).toBe(0);
  });

  test('a log unread for long says how many lines were lost', async () => {
    const name = (at: number): string => `SVC_NOT_A_SETTING_${at}_${'X'.repeat(1_000)}`;
    const env = Object.fromEntries(Array.from({ length: 1_500 }, (_, at) => [name(at), '1']));
    const gateway = await start({ env, meanwhile: (child) => child.stderr?.pause() });
    gateway.process.stderr?.resume();
    await eventually(() => expect(gateway.output.stderr).toContain('log lines were lost'));
    const lost = Number(/"lines":(\d+)/.exec(gateway.output.stderr)?.[1]);
    const written = gateway.output.stderr.match(/SVC_NOT_A_SETTING_\d+_X{1000}"/g)?.length ?? 0;
    expect(lost).toBeGreaterThan(0);
    expect(written + lost).toBe(1_500);
  });

  test('the log names who rotated the signing key, and its end says that it stopped', async () => {
    const gateway = await start({});
    const {
      body: {
        api_keys: [{ id }],
      },
    } = await gateway.call('GET', '/api/v1/iam/api-keys');
    const {
      body: { kid },
    } = await gateway.call('POST', '/api/v1/iam/signing-keys/rotate');
    expect(await gateway.stop()).toBe(0);
    const lines = gateway.output.stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { msg: string });
    expect(lines.map(({ msg, ...rest }) => [msg, rest])).toEqual([
      ['rotated the key that signs tokens', { level: 'info', time: expect.any(String), kid, by: `key:${id}` }],
      ['SIGTERM received; finishing requests in flight, then stopping', { level: 'info', time: expect.any(String) }],
      ['stopped', { level: 'info', time: expect.any(String) }],
    ]);
  });
});
