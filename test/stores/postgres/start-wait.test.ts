import { describe, expect, test } from 'vitest';
import { fail, ok, type Result } from '../../../src/core/base/result.ts';
import type { Fault } from '../../../src/core/fault.ts';
import { StartWait } from '../../../src/stores/postgres/start-wait.ts';

const AWAY: Result<never, Fault> = fail({ kind: 'store_unreachable', retryAfterSecs: 2 });

/** Time passes only while something waits or asks. */
function waiting(signal = new AbortController().signal) {
  const notices: unknown[] = [];
  let nowMs = 0;
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  const wait = new StartWait({ info: (_message, fields) => notices.push(fields) }, signal, {
    steadyMs: () => nowMs,
    pause: async (ms) => pass(ms),
  });
  return { wait, notices, pass, nowMs: () => nowMs };
}

describe('the wait of a start for its database', () => {
  test('is shared by all, and ends with the last message of the database', async () => {
    const { wait, notices, pass, nowMs } = waiting();
    const trouble = () => 'timeout expired';
    const awayFor = (times: number) => async () => {
      pass(3_000);
      times -= 1;
      return times < 0 ? ok('here') : AWAY;
    };
    expect(await wait.value(awayFor(0), trouble)).toBe('here');
    expect(notices).toEqual([]);
    expect(await wait.value(awayFor(3), trouble)).toBe('here'); // 12 s away, and 3 s to answer
    expect(await wait.value(awayFor(3), trouble)).toBe('here');
    expect(notices).toEqual([{ upToSecs: 30 }]);
    await expect(wait.value(awayFor(9), trouble)).rejects.toThrow(
      'cannot use the database in SVC_DATABASE_URL: after 30 s: timeout expired',
    );
    expect(nowMs()).toBe(3_000 + 15_000 + 15_000 + 4_000 + 3_000);
  });

  test('takes in what a database that accepts connections and does not answer costs', async () => {
    const { wait } = waiting();
    await expect(wait.until(new Promise(() => undefined), () => undefined)).rejects.toThrow(
      'after 30 s: it accepted the connection, but has not responded since',
    );
  });

  test('is skipped for other faults, and without a database', async () => {
    const { wait, nowMs } = waiting();
    const refused = async () => fail({ kind: 'audit_unavailable' } as const);
    await expect(wait.value(refused, () => 'timeout expired')).rejects.toThrow('audit log');
    await expect(
      wait.value(
        async () => AWAY,
        () => undefined,
      ),
    ).rejects.toThrow(/./);
    expect(nowMs()).toBe(0);
  });

  test('ends at once when the start is aborted', async () => {
    const ending = new AbortController();
    const { wait } = waiting(ending.signal);
    const never = () => new Promise<never>(() => undefined);
    const asked = wait.value(never, () => 'away');
    ending.abort(new Error('stopped by SIGTERM'));
    await expect(asked).rejects.toThrow('stopped by SIGTERM');
    await expect(wait.until(never(), () => 'away')).rejects.toThrow('stopped by SIGTERM');
  });
});
