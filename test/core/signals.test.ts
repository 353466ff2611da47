import { describe, expect, test } from 'vitest';
import type { AgentKey, OpId } from '../../src/core/base/ids.ts';
import { SignalBoxes } from '../../src/core/signals.ts';

const CRAWLER = 'acme/search/crawler' as AgentKey;
const OTHER = 'acme/search/other' as AgentKey;
const ONE = 't:1' as OpId;
const TWO = 't:2' as OpId;
const signals = (boxes: SignalBoxes, agent = CRAWLER): string[] =>
  boxes.pendingOf(agent).map(({ opId, signal }) => `${signal} ${opId}`);

describe('signals', () => {
  test('keeps only the newest signal of an operation, in order of their creation', () => {
    const boxes = new SignalBoxes();
    boxes.post(CRAWLER, ONE, 'pause', 10);
    boxes.post(CRAWLER, TWO, 'pause', 10);
    boxes.post(CRAWLER, ONE, 'terminate', 10);
    boxes.post(OTHER, 't:3' as OpId, 'resume', 10);
    expect(signals(boxes)).toEqual(['pause t:2', 'terminate t:1']);
    expect(signals(boxes, OTHER)).toEqual(['resume t:3']);
  });

  test('sequence numbers grow with a stopped clock, within a millisecond, over restarts', () => {
    const before = new SignalBoxes();
    const numbers = [
      before.post(CRAWLER, ONE, 'pause', 1_000),
      before.post(OTHER, TWO, 'pause', 1_000),
      before.post(CRAWLER, ONE, 'resume', 900),
    ].map(({ sequence }) => sequence);
    expect(numbers).toEqual([1_000, 1_001, 1_002]);
    expect(new SignalBoxes().post(CRAWLER, ONE, 'pause', 2_000).sequence).toBe(2_000);
  });

  test('an acknowledgement removes its signal and may be repeated', () => {
    const boxes = new SignalBoxes();
    const { sequence } = boxes.post(CRAWLER, ONE, 'pause', 10);
    boxes.post(CRAWLER, TWO, 'pause', 10);
    expect(boxes.acknowledge(CRAWLER, ONE, sequence, 20)).toBe(true);
    expect(signals(boxes)).toEqual(['pause t:2']);
    expect(boxes.acknowledgedAtMs(ONE)).toBe(20);
    expect(boxes.acknowledge(CRAWLER, ONE, sequence, 30)).toBe(true);
    expect(boxes.acknowledgedAtMs(ONE)).toBe(20);
  });

  test('acknowledging an older signal while the next is recorded leaves the next', () => {
    const boxes = new SignalBoxes();
    const { sequence } = boxes.post(CRAWLER, ONE, 'pause', 10);
    boxes.expect(ONE);
    expect(boxes.acknowledge(CRAWLER, ONE, sequence, 20)).toBe(true);
    boxes.post(CRAWLER, ONE, 'resume', 30);
    expect(boxes.acknowledgedAtMs(ONE)).toBeUndefined();
  });

  test('an acknowledgement of an older signal leaves the newer one to be delivered', () => {
    const boxes = new SignalBoxes();
    const { sequence } = boxes.post(CRAWLER, ONE, 'pause', 10);
    boxes.post(CRAWLER, ONE, 'terminate', 11);
    expect(boxes.acknowledge(CRAWLER, ONE, sequence, 20)).toBe(true);
    expect(signals(boxes)).toEqual(['terminate t:1']);
    expect(boxes.acknowledgedAtMs(ONE)).toBeUndefined();
  });

  test.each([
    ['of a signal that was never sent', ONE, 99],
    ['of a lower number that was never sent', ONE, 9],
    ['of another operation', TWO, 10],
  ] as const)('an acknowledgement %s is refused', (_what, opId, sequence) => {
    const boxes = new SignalBoxes();
    boxes.post(CRAWLER, ONE, 'pause', 10);
    expect(boxes.acknowledge(CRAWLER, opId, sequence, 20)).toBe(false);
    expect(boxes.acknowledge(OTHER, ONE, 10, 20)).toBe(false);
    expect(signals(boxes)).toEqual(['pause t:1']);
  });

  test('a number that was never sent acknowledges nothing', () => {
    const boxes = new SignalBoxes();
    boxes.post(CRAWLER, ONE, 'pause', 10);
    boxes.post(CRAWLER, ONE, 'resume', 20);
    expect([9, 10, 15, 20].map((sequence) => boxes.acknowledge(CRAWLER, ONE, sequence, 30))).toEqual([
      false,
      true,
      false,
      true,
    ]);
    expect([9, 10, 15, 20].map((sequence) => boxes.acknowledge(CRAWLER, ONE, sequence, 40))).toEqual([
      false,
      true,
      false,
      true,
    ]);
    expect(boxes.acknowledgedAtMs(ONE)).toBe(30);
  });

  test('the last signals of an operation paused and resumed forever can be acknowledged', () => {
    const boxes = new SignalBoxes();
    for (let sequence = 1; sequence <= 1_000; sequence += 1) boxes.post(CRAWLER, ONE, 'pause', sequence);
    expect([936, 937, 1_000].map((sequence) => boxes.acknowledge(CRAWLER, ONE, sequence, 30))).toEqual([
      false,
      true,
      true,
    ]);
  });

  test('what is known of an operation or an agent is dropped with it', () => {
    const boxes = new SignalBoxes();
    const { sequence } = boxes.post(CRAWLER, ONE, 'pause', 10);
    boxes.acknowledge(CRAWLER, ONE, sequence, 20);
    const unseen = boxes.post(CRAWLER, ONE, 'terminate', 30);
    boxes.post(CRAWLER, TWO, 'pause', 30);
    boxes.setAcknowledged(ONE, 20);
    boxes.forget(CRAWLER, ONE);
    expect(boxes.acknowledgedAtMs(ONE)).toBeUndefined();
    expect([sequence, unseen.sequence].map((each) => boxes.acknowledge(CRAWLER, ONE, each, 40))).toEqual([
      false,
      false,
    ]);
    expect(signals(boxes)).toEqual(['pause t:2']);
    boxes.dropAgent(CRAWLER);
    expect(signals(boxes)).toEqual([]);
  });
});
