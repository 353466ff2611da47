import { describe, expect, test } from 'vitest';
import type { AgentKey } from '../../../src/core/base/ids.ts';
import type { OpSlot } from '../../../src/core/ops/ops.ts';
import { SignalBoxes, type Signalled } from '../../../src/core/ops/signals.ts';

const CRAWLER = 'acme/search/crawler' as AgentKey;
const OTHER = 'acme/search/other' as AgentKey;
const op = (agent: AgentKey, number: number): Signalled => ({ agent, slot: (number - 1) as OpSlot, number });
const ONE = op(CRAWLER, 1);
const TWO = op(CRAWLER, 2);
const signals = (boxes: SignalBoxes, agent = CRAWLER): string[] =>
  boxes.pendingOf(agent).map(({ slot, signal }) => `${signal} t:${slot + 1}`);

describe('signals', () => {
  test('keeps only the newest signal of an operation, in order of their creation', () => {
    const boxes = new SignalBoxes();
    boxes.post(ONE, 'pause', 10);
    boxes.post(TWO, 'pause', 10);
    boxes.post(ONE, 'terminate', 10);
    boxes.post(op(OTHER, 3), 'resume', 10);
    expect(signals(boxes)).toEqual(['pause t:2', 'terminate t:1']);
    expect(signals(boxes, OTHER)).toEqual(['resume t:3']);
  });

  test('sequence numbers grow with a stopped clock, within a millisecond, over restarts', () => {
    const before = new SignalBoxes();
    const numbers = [
      before.post(ONE, 'pause', 1_000),
      before.post(op(OTHER, 2), 'pause', 1_000),
      before.post(ONE, 'resume', 900),
    ];
    expect(numbers).toEqual([1_000, 1_001, 1_002]);
    expect(new SignalBoxes().post(ONE, 'pause', 2_000)).toBe(2_000);
  });

  test('an acknowledgement removes its signal and may be repeated', () => {
    const boxes = new SignalBoxes();
    const sequence = boxes.post(ONE, 'pause', 10);
    boxes.post(TWO, 'pause', 10);
    expect(boxes.acknowledge(ONE, sequence, 20)).toBe(true);
    expect(signals(boxes)).toEqual(['pause t:2']);
    expect(boxes.acknowledgedAtMs(ONE.slot, ONE.number)).toBe(20);
    expect(boxes.acknowledge(ONE, sequence, 30)).toBe(true);
    expect(boxes.acknowledgedAtMs(ONE.slot, ONE.number)).toBe(20);
  });

  test('acknowledging an older signal while the next is recorded leaves the next', () => {
    const boxes = new SignalBoxes();
    const sequence = boxes.post(ONE, 'pause', 10);
    boxes.expect(ONE.slot, ONE.number);
    expect(boxes.acknowledge(ONE, sequence, 20)).toBe(true);
    boxes.post(ONE, 'resume', 30);
    expect(boxes.acknowledgedAtMs(ONE.slot, ONE.number)).toBeUndefined();
  });

  test('an acknowledgement of an older signal leaves the newer one to be delivered', () => {
    const boxes = new SignalBoxes();
    const sequence = boxes.post(ONE, 'pause', 10);
    boxes.post(ONE, 'terminate', 11);
    expect(boxes.acknowledge(ONE, sequence, 20)).toBe(true);
    expect(signals(boxes)).toEqual(['terminate t:1']);
    expect(boxes.acknowledgedAtMs(ONE.slot, ONE.number)).toBeUndefined();
  });

  test.each([
    ['of a signal that was never sent', ONE, 99],
    ['of a lower number that was never sent', ONE, 9],
    ['of another operation', TWO, 10],
  ] as const)('an acknowledgement %s is refused', (_what, other, sequence) => {
    const boxes = new SignalBoxes();
    boxes.post(ONE, 'pause', 10);
    expect(boxes.acknowledge(other, sequence, 20)).toBe(false);
    expect(signals(boxes)).toEqual(['pause t:1']);
  });

  test('a number that was never sent acknowledges nothing', () => {
    const boxes = new SignalBoxes();
    boxes.post(ONE, 'pause', 10);
    boxes.post(ONE, 'resume', 20);
    expect([9, 10, 15, 20].map((sequence) => boxes.acknowledge(ONE, sequence, 30))).toEqual([false, true, false, true]);
    expect([9, 10, 15, 20].map((sequence) => boxes.acknowledge(ONE, sequence, 40))).toEqual([false, true, false, true]);
    expect(boxes.acknowledgedAtMs(ONE.slot, ONE.number)).toBe(30);
  });

  test('the last signals of an operation paused and resumed forever can be acknowledged', () => {
    const boxes = new SignalBoxes();
    for (let sequence = 1; sequence <= 1_000; sequence += 1) boxes.post(ONE, 'pause', sequence);
    expect([936, 937, 1_000].map((sequence) => boxes.acknowledge(ONE, sequence, 30))).toEqual([false, true, true]);
  });

  test('drop all about an operation or an agent with it', () => {
    const boxes = new SignalBoxes();
    const sequence = boxes.post(ONE, 'pause', 10);
    boxes.acknowledge(ONE, sequence, 20);
    const unseen = boxes.post(ONE, 'terminate', 30);
    boxes.post(TWO, 'pause', 30);
    boxes.setAcknowledged(ONE.slot, ONE.number, 20);
    boxes.forget(ONE);
    expect(boxes.acknowledgedAtMs(ONE.slot, ONE.number)).toBeUndefined();
    expect([sequence, unseen].map((each) => boxes.acknowledge(ONE, each, 40))).toEqual([false, false]);
    expect(signals(boxes)).toEqual(['pause t:2']);
    boxes.forget(TWO);
    expect(signals(boxes)).toEqual([]);
  });

  test('the next operation in a slot has none of the signals of the one before', () => {
    const boxes = new SignalBoxes();
    const sequence = boxes.post(ONE, 'pause', 10);
    boxes.post(ONE, 'resume', 20);
    const next = { ...ONE, number: 7 };
    expect(boxes.acknowledge(next, 20, 30)).toBe(false);
    boxes.forget(ONE);
    boxes.post(next, 'pause', 30);
    expect([sequence, 20, 30].map((each) => boxes.acknowledge(next, each, 40))).toEqual([false, false, true]);
    expect(boxes.acknowledge(ONE, 30, 50)).toBe(false);
  });

  test('the order holds whichever signals are acknowledged, sent again or forgotten', () => {
    const boxes = new SignalBoxes();
    const ops = [1, 2, 3, 4, 5, 5_000].map((number) => op(CRAWLER, number));
    const sent = ops.map((each) => boxes.post(each, 'pause', 10));
    boxes.acknowledge(ops[0]!, sent[0]!, 20);
    boxes.post(ops[2]!, 'terminate', 20);
    boxes.forget(ops[4]!);
    expect(signals(boxes)).toEqual(['pause t:2', 'pause t:4', 'pause t:5000', 'terminate t:3']);
    boxes.post(ops[0]!, 'resume', 30);
    boxes.forget(ops[5]!);
    expect(signals(boxes)).toEqual(['pause t:2', 'pause t:4', 'terminate t:3', 'resume t:1']);
  });
});
