import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startTestGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/harness.ts';
import { openStream } from '../support/stream.ts';

const HOUR_MS = 3_600_000;
const LEFT_MS = 1_000;

describe('clock set back', () => {
  test('an API key expires in time although the clock is set back by an hour', async () => {
    const offset = join(temporaryFolder(), 'offset');
    const gateway = await startTestGateway({
      env: {
        CLOCK_OFFSET: offset,
        NODE_OPTIONS: `--import=${new URL('../support/clock-offset.mjs', import.meta.url).href}`,
      },
    });
    onTestFinished(async () => {
      await gateway.stop();
    });
    const createKey = async () =>
      (
        await gateway.call('POST', '/api/v1/iam/api-keys', {
          name: 'short',
          scopes: ['read'],
          expires_at: new Date(Date.now() + HOUR_MS).toISOString(),
        })
      ).body;
    const { key } = await createKey();
    const status = async () => (await gateway.call('GET', '/api/v1/ops', undefined, key)).status;
    const stream = await openStream(gateway, '', { bearer: key });
    expect(await status()).toBe(200);
    // An hour later, but for a little, by its clock; which is then set right.
    writeFileSync(offset, String(HOUR_MS - LEFT_MS));
    await eventually(async () =>
      expect(Date.parse((await createKey()).created_at)).toBeGreaterThan(Date.now() + HOUR_MS / 2),
    );
    rmSync(offset);
    // Time passes at half speed until the clock has caught up.
    await eventually(async () => expect(await status()).toBe(401));
    expect(await stream.closed).toMatchObject({ code: 4401 });
  });
});
