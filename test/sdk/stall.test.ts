import { EventEmitter } from 'node:events';
import { stat } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Checker, type CheckerOptions } from '../../sdk/typescript/src/checks.ts';
import { GatewayError } from '../../sdk/typescript/src/errors.ts';
import { Homes } from '../../sdk/typescript/src/homes.ts';
import { checkBodyOf } from '../../sdk/typescript/src/messages.ts';
import { Underway } from '../../sdk/typescript/src/waiters.ts';

const CHECK = checkBodyOf(
  { action: 'tool.call' },
  { orgId: '', teamId: 't', agentId: 'a' },
  { traceId: 'trace', spanId: 'span' },
);
const ALLOW = {
  decision: 1,
  reason: 'fine',
  policy: 'p',
  ruleId: 'r',
  opId: 'trace:span',
  opState: 2,
  auditId: 1,
  correlationId: '1',
  error: null,
  obligations: [],
  opHome: '',
};

type Event = readonly [name: 'data' | 'error', value: object];

/**
 * A checker to which this happens as to a socket: it lies ready while the agent computes, and is read once that is
 * done.
 */
function checkerOf(checkMs: number, [name, value]: Event) {
  const orphans: string[] = [];
  const openChecks = (): EventEmitter => {
    const call = new EventEmitter();
    const ask = (): boolean => {
      stat('.', () => call.emit(name, value));
      return true;
    };
    return Object.assign(call, { ask });
  };
  const checker = new Checker({
    settings: { checkMs, maxInFlight: 10, onUnreachable: 'deny', address: 'gateway:50051' },
    transport: { openChecks },
    credential: { current: 'token', canRenew: false },
    reach: { succeeded: () => {}, failed: () => {}, isLost: false },
    underway: new Underway(),
    orphans: { add: (opId: string) => void orphans.push(opId) },
    homes: new Homes(),
  } as unknown as CheckerOptions);
  return { checker, orphans };
}

/** Lets the event loop wait. */
function computeFor(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe('stall', () => {
  test('a check answered in time is allowed, even if the agent was busy computing', async () => {
    const { checker, orphans } = checkerOf(100, ['data', ALLOW]);
    const answer = checker.check(CHECK, { isFresh: true });
    computeFor(500);
    expect(await answer).toMatchObject({ decision: 'allow', unreachable: false });
    expect(orphans).toEqual([]);
  });

  test('a check cut off at its deadline is completed: it may have been allowed', async () => {
    const cut = new GatewayError('unavailable', 'the connection was closed');
    const { checker, orphans } = checkerOf(100, ['error', cut]);
    const answer = checker.check(CHECK, { isFresh: true });
    computeFor(500);
    expect(await answer).toMatchObject({ decision: 'deny', unreachable: true });
    expect(orphans).toEqual(['trace:span']);
  });
});
