import { EventEmitter } from 'node:events';
import { stat } from 'node:fs';
import { expect, test } from 'vitest';
import { Checker, type CheckerOptions } from '../../src/sdk/checks.ts';
import { checkBodyOf } from '../../src/sdk/messages.ts';
import { Underway } from '../../src/sdk/underway.ts';

const CHECK = checkBodyOf({ action: 'tool.call' }, { orgId: '', teamId: 't', agentId: 'a' }, { traceId: 'trace', spanId: 'span' });
const ALLOW = { decision: 1, reason: 'fine', policy: 'p', ruleId: 'r', opId: 'trace:span', opState: 2, auditId: 1, correlationId: '1', error: null };

/** A checker whose answers come as those of a socket do: they lie ready while the agent computes, and are read once it is done. */
function checkerOf(checkMs: number): Checker {
  const openChecks = (): EventEmitter => {
    const call = new EventEmitter();
    return Object.assign(call, { write: () => stat('.', () => call.emit('data', ALLOW)) });
  };
  return new Checker({
    settings: { checkMs, maxInFlight: 10, onUnreachable: 'deny', address: 'gateway:50051' },
    transport: { openChecks },
    credential: { current: 'token', canRenew: false },
    reach: { succeeded: () => {}, failed: () => {}, isLost: false },
    underway: new Underway(),
    onOrphan: () => {},
  } as unknown as CheckerOptions);
}

test('a check that was answered in time is allowed, also when the agent itself computed for longer than a check may take', async () => {
  const checker = checkerOf(100);
  const answer = checker.check(CHECK, { isFresh: true });
  const end = performance.now() + 500;
  while (performance.now() < end);
  expect(await answer).toMatchObject({ decision: 'allow', unreachable: false });
});
