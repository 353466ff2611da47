/** The governor's effects of operators' signals; the boxes themselves are in signals.test.ts. */
import { describe, expect, test } from 'vitest';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  controlOf,
  digestOf,
  openGovernor,
  opId,
  SIBLING,
  signalOf,
} from '../support/governor.ts';

const voucher = { agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined };

describe('governor signals', () => {
  test('delivers a signal only while its operation exists and has not completed', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1);
    const post = (op: string) => governor.post(signalOf(op, op === 't:s' ? 1 : 2, 'pause'), 10);
    expect({ known: post('t:s'), unknown: post('t:none') }).toEqual({
      known: { opId: 't:s', signal: 'pause', sequence: 10 },
      unknown: undefined,
    });
    governor.apply<'complete-op'>({ type: 'complete-op', ...voucher, opId: opId('t:s') }, 20);
    expect(post('t:s')).toBeUndefined();
  });

  test('a signal recorded after its operation is gone never reaches a reused id', () => {
    for (const agent of [CRAWLER, SIBLING]) {
      const governor = openGovernor();
      governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1);
      const [signal] = governor
        .apply<'control-op'>(controlOf('t:s', 'terminate'), 10)
        .effects.filter((effect) => effect.kind === 'signal');
      governor.sweep(100_000); // the disk that the entry is written to stands still
      governor.apply<'check'>(checkOf(agent, 't:s'), 100_001);
      expect(governor.post(signal!, 100_002)).toBeUndefined();
      const pending = [CRAWLER, SIBLING].map(
        (each) =>
          governor.apply<'open-control'>(
            { type: 'open-control', agent: each, credential: digestOf(each), principal: undefined, stream: 1 },
            100_003,
          ).reply,
      );
      expect(pending).toEqual([
        { ok: true, value: { pending: [] } },
        { ok: true, value: { pending: [] } },
      ]);
    }
  });

  test('an operation shows its last acknowledged signal until the next, even completed', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:1'), 1);
    governor.apply<'control-op'>(controlOf('t:1', 'pause'), 10);
    governor.apply<'control-op'>(controlOf('t:1', 'resume'), 20);
    governor.post(signalOf('t:1', 1, 'resume'), 20);
    governor.apply<'ack-signal'>({ type: 'ack-signal', ...voucher, opId: opId('t:1'), sequence: 20 }, 30);
    const completed = governor.apply<'complete-op'>({ type: 'complete-op', ...voucher, opId: opId('t:1') }, 40);
    expect(completed.reply).toMatchObject({ value: { state: 'completing', acknowledgedAtMs: 30 } });
    expect(governor.rollBack([completed.undo!], [], 0, 50)).toMatchObject([
      { op: { state: 'running', acknowledgedAtMs: 30 } },
    ]);
  });

  test('a re-registered agent gets the unacknowledged signals of its operations', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1);
    governor.apply<'control-op'>(controlOf('t:s', 'pause'), 10);
    governor.post(signalOf('t:s', 1, 'pause'), 10);
    governor.apply<'deregister-agent'>({ type: 'deregister-agent', principal: ADMIN, agent: CRAWLER }, 20);
    governor.apply<'register-agent'>(
      { type: 'register-agent', principal: ADMIN, agent: CRAWLER, credential: digestOf(CRAWLER), parent: undefined },
      30,
    );
    const pending = () => governor.apply<'open-control'>({ type: 'open-control', ...voucher, stream: 1 }, 40).reply;
    expect(governor.ops.counts.paused).toBe(1);
    expect(pending()).toEqual({ ok: true, value: { pending: [{ opId: 't:s', signal: 'pause', sequence: 10 }] } });
    governor.apply<'ack-signal'>({ type: 'ack-signal', ...voucher, opId: opId('t:s'), sequence: 10 }, 50);
    expect(pending()).toEqual({ ok: true, value: { pending: [] } });
  });
});
