/** The checker of the soak: it must find what it looks for, and cry about nothing that may happen. */
import { describe, expect, test } from 'vitest';
import { type CheckCall, ClusterHistory } from '../support/cluster-history.ts';

function openHistory() {
  const history = new ClusterHistory();
  let made = 0;
  const check = (askedMs: number, more: Partial<CheckCall> = {}): CheckCall =>
    history.add({
      kind: 'check',
      gateway: 'one',
      org: 'acme',
      agent: 'crawler',
      token: 'token',
      cost: 10,
      opId: `op-${(made += 1)}`,
      askedMs,
      answeredMs: askedMs + 5,
      decision: 'allow',
      auditId: made,
      ...more,
    });
  return { history, check };
}

describe('the checker of a cluster', () => {
  test('finds a cap that was overrun, and not one whose money came back in time', () => {
    const { history, check } = openHistory();
    for (const askedMs of [0, 10]) check(askedMs);
    const { opId } = check(20);
    expect(history.overruns('acme', 30)).toEqual([]);
    history.add({ kind: 'complete', opId, askedMs: 30 });
    check(31);
    expect(history.overruns('acme', 30)).toEqual([]);
    check(40);
    expect(history.overruns('acme', 30)).toEqual(['acme held 40 of 30 at 45 ms']);
    expect(history.mayBeHeld('acme')).toBe(50); // whether it was completed is not known
  });

  test('does not count what was denied, or never answered, as certainly held', () => {
    const { history, check } = openHistory();
    check(0, { decision: 'deny' });
    check(1, { answeredMs: undefined, decision: undefined, auditId: undefined } as object);
    expect(history.overruns('acme', 0)).toEqual([]);
    expect(history.mayBeHeld('acme')).toBe(10);
  });

  test.each([
    ['halt', 'acme'] as const,
    ['revocation', 'crawler'] as const,
    ['rotation', 'token'] as const,
    ['pause', 'paused'] as const,
  ])('finds what was allowed after a %s was answered', (kind, of) => {
    const { history, check } = openHistory();
    history.add({ kind, of, askedMs: 10, answeredMs: 20, unconfirmed: ['two'], releasedMs: 100 });
    const opId = 'paused';
    check(19, { opId }); // asked before it was answered
    check(30, { opId, gateway: 'two' });
    check(98, { opId }); // answered after the release was asked for
    check(30, { org: 'other', agent: 'other', token: 'other' });
    check(30, { opId, decision: 'deny' });
    expect(history.allowedAfterStop()).toEqual([]);
    check(30, { opId });
    expect(history.allowedAfterStop()).toEqual([`paused was allowed at one after the ${kind} of ${of}`]);
  });

  test('finds two winners of one token, and two good tokens of one agent', () => {
    const { history, check } = openHistory();
    const [one, other] = ['first', 'second'].map((token) => ({ agent: 'crawler', token }));
    const contest = { kind: 'contest', rivals: [one!, other!], askedMs: 0 } as const;
    history.add({ ...contest, of: 'token', accepted: 1, answeredMs: 10, unconfirmed: ['two'] });
    history.add({ ...contest, of: 'agent', accepted: 2, answeredMs: 10, unconfirmed: ['two'] });
    check(9, { token: 'first' }); // asked before all was answered
    check(11, { token: 'first', gateway: 'two' });
    check(12, { token: 'first', decision: 'deny' });
    check(13, { token: 'second' });
    expect(history.wonTwice()).toEqual([]);
    check(14, { token: 'first', gateway: 'three' });
    const rivals = 'crawler by first and crawler by second';
    expect(history.wonTwice()).toEqual([
      `${rivals} were both allowed afterwards`,
      `${rivals} were both allowed afterwards`,
    ]);
    history.add({ ...contest, of: 'token', accepted: 2 });
    expect(history.wonTwice()).toHaveLength(3);
  });

  test('finds a decision that is in no log, or in another place', () => {
    const { history, check } = openHistory();
    for (const askedMs of [0, 1, 2]) check(askedMs);
    const one = new Map([[1, 'op-1'] as const, [2, 'op-9'] as const]);
    expect(history.unrecorded(new Map([['one', one]]))).toEqual([
      'op-2 is not entry 2 of one',
      'op-3 is not entry 3 of one',
    ]);
  });

  test('knows how much may have been spent, with and without what was cut off', () => {
    const { history } = openHistory();
    const usage = { kind: 'usage', org: 'acme', cost: 10, askedMs: 0 } as const;
    history.add({ ...usage, usageId: 'answered', answeredMs: 1 });
    history.add({ ...usage, usageId: 'repeated', answeredMs: 1 });
    history.add({ ...usage, usageId: 'repeated', answeredMs: 2 });
    expect(history.spendBounds('acme')).toEqual({ least: 20, most: 20 });
    history.add({ ...usage, usageId: 'cut off' });
    history.add({ ...usage, usageId: 'cut off', answeredMs: 9 });
    expect(history.spendBounds('acme')).toEqual({ least: 30, most: 40 });
  });
});
