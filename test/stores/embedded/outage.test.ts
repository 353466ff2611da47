import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { StoreUnwritable } from '../../../src/ports/ports.ts';
import { StoreOutage } from '../../../src/stores/embedded/outage.ts';
import type { Logger } from '../../../src/system/log.ts';

const STORE_FULL = new StoreUnwritable(
  Object.assign(new Error('database or disk is full'), { code: 'ENOSPC', path: '/data/store/gateway.sqlite' }),
);
const KEYS_FULL = new StoreUnwritable(
  Object.assign(new Error('no space left on device'), { code: 'ENOSPC', path: '/data/keys/signing.json' }),
);
const WRITTEN_AGAIN = 'the embedded store can be written again';

/** Each attempt to write waits for its outcome. */
function openOutage() {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const said: string[] = [];
  const attempts: { readonly resolve: () => void; readonly reject: (cause: Error) => void }[] = [];
  const probe = () => new Promise<void>((resolve, reject) => void attempts.push({ resolve, reject }));
  const outage = new StoreOutage({ path: '/data/store/gateway.sqlite', probe }, {
    warn: (line: string) => void said.push(line),
  } as unknown as Logger);
  onTestFinished(() => outage.stop());
  return { outage, said, attempts };
}

describe('store outage', () => {
  test('an outage is logged once per kind of work, and its end once', async () => {
    const { outage, said, attempts } = openOutage();
    const noted = ['saving a key', 'saving a key', 'saving spend', 'saving a key'].map((doing) =>
      outage.noteFailure(STORE_FULL, doing),
    );
    expect(noted).toEqual([true, false, true, false]);
    await vi.advanceTimersByTimeAsync(2_000);
    attempts[0]?.reject(STORE_FULL);
    await vi.advanceTimersByTimeAsync(2_000);
    expect({ isOn: outage.isOn, attemptCount: attempts.length, saidNothing: said }).toEqual({
      isOn: true,
      attemptCount: 2,
      saidNothing: [],
    });
    attempts[1]?.resolve();
    await vi.advanceTimersByTimeAsync(10_000);
    expect({ isOn: outage.isOn, attemptCount: attempts.length, saidNothing: said }).toEqual({
      isOn: false,
      attemptCount: 2,
      saidNothing: [WRITTEN_AGAIN],
    });
    expect(outage.noteFailure(STORE_FULL, 'saving a key')).toBe(true);
    expect(outage.isOn).toBe(true);
  });

  test('slow attempts do not repeat the log line for the end of an outage', async () => {
    const { outage, said, attempts } = openOutage();
    outage.noteFailure(STORE_FULL, 'saving a key');
    await vi.advanceTimersByTimeAsync(4_000);
    for (const attempt of attempts) attempt.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect({ isOn: outage.isOn, attemptCount: attempts.length, saidNothing: said }).toEqual({
      isOn: false,
      attemptCount: 2,
      saidNothing: [WRITTEN_AGAIN],
    });
  });

  test('failures of other files are logged each time and are no store outage', () => {
    const { outage } = openOutage();
    expect([outage.noteFailure(KEYS_FULL, 'rotating'), outage.noteFailure(KEYS_FULL, 'rotating'), outage.isOn]).toEqual(
      [true, true, false],
    );
  });
});
