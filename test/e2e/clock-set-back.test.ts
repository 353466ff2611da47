import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startTestGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/harness.ts';
import { openStream } from '../support/stream.ts';

describe('clock set back', () => {
  test('an API key expires in time although the clock is set back by an hour', async () => {
    const mark = join(temporaryFolder(), 'set-back');
    const gateway = await startTestGateway({
      env: {
        CLOCK_SET_BACK: mark,
        NODE_OPTIONS: `--import=${new URL('../support/clock-set-back.mjs', import.meta.url).href}`,
      },
    });
    onTestFinished(async () => {
      await gateway.stop();
    });
    const LEFT_MS = 4_000;
    const {
      body: { key },
    } = await gateway.call('POST', '/api/v1/iam/api-keys', {
      name: 'short',
      scopes: ['read'],
      expires_at: new Date(Date.now() + LEFT_MS).toISOString(),
    });
    const status = async () => (await gateway.call('GET', '/api/v1/ops', undefined, key)).status;
    const stream = await openStream(gateway, '', { bearer: key });
    expect(await status()).toBe(200);
    writeFileSync(mark, '');
    // Time passes at half speed until the clock has caught up.
    await eventually(async () => expect(await status()).toBe(401), 4 * LEFT_MS);
    expect(
      await Promise.race([stream.closed, new Promise((resolve) => setTimeout(resolve, 4_000, 'still open'))]),
    ).toMatchObject({ code: 4401 });
  });
});
