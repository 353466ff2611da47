import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Closers } from '../../src/system/closers.ts';

describe('closers', () => {
  test('close what was opened last first, one after the other, and name each step', async () => {
    const closers = new Closers();
    const steps: string[] = [];
    closers.add('the lock', () => void steps.push('lock closed'));
    closers.add('the store', async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      steps.push('store closed');
    });
    await closers.closeAll(0, (name) => void steps.push(name));
    expect(steps).toEqual(['the store', 'store closed', 'the lock', 'lock closed']);
  });

  test('close all others if one fails, and report it', async () => {
    const closers = new Closers();
    const closed: string[] = [];
    closers.add('a', () => void closed.push('a'));
    closers.add('b', () => Promise.reject(new Error('b does not close')));
    closers.add('c', () => {
      throw new Error('c does not close');
    });
    await expect(closers.closeAll(0)).rejects.toThrow('c does not close');
    expect(closed).toEqual(['a']);
  });

  test('each is closed once, however often all are', async () => {
    const closers = new Closers();
    let count = 0;
    closers.add('a', () => void (count += 1));
    await Promise.all([closers.closeAll(0), closers.closeAll(0)]);
    expect(count).toBe(1);
  });

  test('the grace is shared, and once it is over each has its least', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const closers = new Closers();
    const leftMs: Record<string, number> = {};
    closers.add('later', (grace) => {
      leftMs.later = grace.leftMs();
      leftMs.laterAtLeast = grace.leftMs(500);
    });
    closers.add('first', async (grace) => {
      leftMs.first = grace.leftMs();
      await new Promise((resolve) => setTimeout(resolve, 60));
    });
    const closed = closers.closeAll(50);
    await vi.advanceTimersByTimeAsync(60);
    await closed;
    expect(leftMs).toEqual({ first: 50, later: 0, laterAtLeast: 500 });
  });
});
