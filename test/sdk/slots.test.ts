import { describe, expect, test } from 'vitest';
import { Slots } from '../../sdk/typescript/src/waiters.ts';

describe('slots', () => {
  test('a released slot goes to the longest waiter', async () => {
    const slots = new Slots(1);
    expect(slots.tryTake()).toBe(true);
    const order: string[] = [];
    const waiting = ['first', 'second'].map((name) =>
      slots.take(10_000).then((isTaken) => order.push(`${name} ${isTaken}`)),
    );
    slots.give();
    expect(slots.tryTake()).toBe(false);
    slots.give();
    expect(slots.tryTake()).toBe(false);
    await Promise.all(waiting);
    expect(order).toEqual(['first true', 'second true']);
    slots.give();
    expect(slots.tryTake()).toBe(true);
  });

  test('a cancelled waiter gets no slot', async () => {
    const slots = new Slots(1);
    slots.tryTake();
    expect(await slots.take(1)).toBe(false);
    slots.give();
    expect(slots.tryTake()).toBe(true);
    const turnedAway = [slots.take(10_000), slots.take(10_000)];
    slots.endWaits();
    expect(await Promise.all(turnedAway)).toEqual([false, false]);
    slots.give();
    expect(slots.tryTake()).toBe(true);
  });
});
