import { describe, expect, test } from 'vitest';
import type { Approval } from '../../src/core/approvals/approval.ts';
import { ok } from '../../src/core/base/result.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import { ApprovalWaits } from '../../src/use-cases/approvals.ts';

const ADMIN: Principal = { subject: 'key:k1', scopes: ['admin'], orgId: null };

/** Approvals as a governor has them, and a clock that only `elapse` moves. */
function openWaits() {
  let nowMs = 0;
  let state: Approval['state'] = 'pending';
  const timers = new Map<() => void, number>();
  const approval = (): Approval => ({ id: 'a-1', state, agent: { orgId: 'acme' } }) as unknown as Approval;
  const waits = new ApprovalWaits({
    commands: { ask: () => Promise.resolve(ok(approval())) } as never,
    nowMs: () => nowMs,
    after: (ms, call) => {
      timers.set(call, nowMs + ms);
      return () => void timers.delete(call);
    },
  });
  return {
    wait: (ms: number) => waits.wait({ principal: ADMIN }, { id: 'a-1', waitMs: ms, ticket: 'mine' }),
    leave: (ticket: string) => waits.leave(ticket),
    waits,
    change: (to: Approval['state']) => {
      state = to;
      waits.wake(approval());
    },
    elapse: (ms: number) => {
      nowMs += ms;
      for (const [call, atMs] of timers) if (atMs <= nowMs) call();
    },
    timers,
  };
}

describe('waiting for an approval', () => {
  test('ends with a decision that comes in the turn in which the approval is read', async () => {
    const { wait, change, timers } = openWaits();
    const answered = wait(60_000);
    change('approved');
    expect(await answered).toMatchObject({ ok: true, value: { state: 'approved' } });
    expect(timers.size).toBe(0);
  });

  test('ends when its caller leaves, and gives its place back', async () => {
    const { wait, leave, timers, waits } = openWaits();
    const answered = wait(60_000);
    await expect.poll(() => waits.size).toBe(1);
    leave('another');
    leave('mine');
    expect(await answered).toMatchObject({ ok: true, value: { state: 'pending' } });
    expect({ timers: timers.size, waits: waits.size }).toEqual({ timers: 0, waits: 0 });
    const left = wait(60_000);
    leave('mine');
    expect(await left).toMatchObject({ ok: true, value: { state: 'pending' } });
  });

  test('goes on after a change that decides nothing, until its time is over', async () => {
    const { wait, change, elapse, timers } = openWaits();
    const answered = wait(60_000);
    await expect.poll(() => timers.size).toBe(1);
    change('pending');
    await expect.poll(() => timers.size).toBe(1);
    elapse(60_000);
    expect(await answered).toMatchObject({ ok: true, value: { state: 'pending' } });
    expect(timers.size).toBe(0);
  });
});
