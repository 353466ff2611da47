import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RunningOp } from '../../sdk/typescript/src/op.ts';
import type { CheckAnswer, Signal } from '../../sdk/typescript/src/types.ts';

const ALLOWED: CheckAnswer = {
  decision: 'allow',
  reason: '',
  policy: undefined,
  ruleId: undefined,
  opId: 't:s',
  opState: 'running',
  auditId: 1,
  unreachable: false,
  approvalId: undefined,
  obligations: [],
  remedy: undefined,
  cause: undefined,
  tier: undefined,
  period: undefined,
  resetsAt: undefined,
};
const turn = () => new Promise((resolve) => setImmediate(resolve));

function begin(parent?: RunningOp): RunningOp {
  const op = new RunningOp('t', parent === undefined ? 's' : 'child', parent, async () => ({ status: 'ok' }));
  op.begin(ALLOWED, undefined);
  return op;
}

type Step = Signal | 'checkpoint';
const steps = fc.array(fc.constantFrom<Step>('pause', 'resume', 'terminate', 'checkpoint'), {
  maxLength: 12,
  size: 'max',
});

describe('op properties', () => {
  test('any order of signals passes no checkpoint while paused or after termination', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (order) => {
        const op = begin();
        let [isPaused, isTerminated] = [false, false];
        const waiting: { isPassed: boolean; isThrown: boolean }[] = [];
        for (const step of order) {
          if (step === 'checkpoint') {
            const checkpoint = { isPassed: false, isThrown: false };
            op.checkpoint().then(
              () => {
                checkpoint.isPassed = true;
              },
              () => {
                checkpoint.isThrown = true;
              },
            );
            waiting.push(checkpoint);
            await turn();
            expect(checkpoint).toEqual({ isPassed: !isPaused && !isTerminated, isThrown: isTerminated });
          } else {
            op.obey(step, () => {});
            if (step === 'terminate') isTerminated = true;
            isPaused = !isTerminated && (step === 'pause' || (isPaused && step !== 'resume'));
            await turn();
          }
          expect(op.state).toBe(isTerminated ? 'terminated' : isPaused ? 'paused' : 'running');
          expect(op.signal.aborted).toBe(isTerminated);
          if (!isPaused) expect(waiting.every(({ isPassed, isThrown }) => isPassed !== isThrown)).toBe(true);
        }
      }),
    );
  });

  test('a pause is obeyed once the body is at a checkpoint; the latest signal counts', async () => {
    const obeyed: string[] = [];
    const op = begin();
    op.obey('pause', () => obeyed.push('pause 1'));
    expect(obeyed).toEqual([]);
    op.obey('resume', () => obeyed.push('resume 2'));
    op.obey('pause', () => obeyed.push('pause 3'));
    const checkpoint = op.checkpoint();
    await turn();
    expect(obeyed).toEqual(['resume 2', 'pause 3']);
    // The same again, from a new stream, is answered at once.
    op.obey('pause', () => obeyed.push('pause 3 again'));
    op.obey('resume', () => obeyed.push('resume 4'));
    await checkpoint;
    expect(obeyed).toEqual(['resume 2', 'pause 3', 'pause 3 again', 'resume 4']);
  });

  test('operations within a paused one wait too, so that its pause is obeyed', async () => {
    const outer = begin();
    const inner = begin(outer);
    let isObeyed = false;
    let isPassed = false;
    outer.obey('pause', () => {
      isObeyed = true;
    });
    const checkpoint = inner.checkpoint().then(() => {
      isPassed = true;
    });
    await turn();
    expect({ isObeyed, isPassed, inner: inner.state }).toEqual({ isObeyed: true, isPassed: false, inner: 'running' });
    outer.obey('resume', () => {});
    await checkpoint;
  });

  test('an operation within a terminated one aborts with its error', async () => {
    const outer = begin();
    const inner = begin(outer);
    inner.obey('pause', () => {});
    const checkpoint = inner.checkpoint();
    outer.obey('terminate', () => {});
    await expect(checkpoint).rejects.toBe(outer.signal.reason);
    expect(outer.signal.reason).toMatchObject({
      name: 'OpTerminatedError',
      opId: 't:s',
      message: 'operation t:s was terminated by an operator',
    });
    expect(inner.state).toBe('paused');
    // Begun too late, it is not even begun.
    expect(begin(outer).signal.aborted).toBe(true);
  });
});
