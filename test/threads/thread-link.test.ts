import { describe, expect, onTestFinished, test } from 'vitest';
import type { ThreadStart } from '../../src/system/thread.ts';
import { ThreadLink, type ThreadLinkOptions } from '../../src/threads/thread-link.ts';
import { eventually } from '../support/eventually.ts';

/** The thread of prices answers questions about models; null is none. The one of sinks dies without its options. */
const MORTAL = { entry: 'audit-sinks' };
const question = (model: string | null) => model && { model, provider: 'openai', nowMs: Date.UTC(2026, 10, 28) };

function linkTo(start: ThreadStart, options: Omit<ThreadLinkOptions<object>, 'onDefect'> = {}) {
  const defects: string[] = [];
  const link = new ThreadLink<unknown, unknown, object>(start, {
    ...options,
    onDefect: (defect) => defects.push(defect.split('\n', 1)[0]!),
  });
  onTestFinished(() => link.close());
  return { link, defects };
}

describe('a thread that answers questions', () => {
  test('starts it with the first question, and gives each its own answer', async () => {
    const { link, defects } = linkTo({ entry: 'prices' });
    expect(link.isRunning).toBe(false);
    const answers = await Promise.all(['no-such-model', 'gpt-4o'].map((model) => link.ask(question(model))));
    expect(answers).toMatchObject([undefined, { provider: 'openai' }]);
    expect(link.isRunning).toBe(true);
    expect(defects).toEqual([]);
  });

  test('rejects a question that it cannot answer, and that one alone', async () => {
    const { link, defects } = linkTo({ entry: 'prices' });
    const answers = await Promise.allSettled([link.ask(question(null)), link.ask(question('gpt-4o'))]);
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(defects).toEqual(["TypeError: Cannot use 'in' operator to search for 'highestAtMs' in null"]);
  });

  test('rejects all that waits when it dies, names its file, and starts it again', async () => {
    const { link, defects } = linkTo(MORTAL);
    const died = /^the thread workers\/audit-sinks\.js failed: Cannot (read|destructure) propert.*undefined/;
    const first = await Promise.allSettled([link.ask('one'), link.ask('another')]);
    expect(first.map((asked) => asked.status === 'rejected' && asked.reason.message)).toEqual([
      expect.stringMatching(died),
      expect.stringMatching(died),
    ]);
    await expect(link.ask('one more')).rejects.toThrow(died);
    expect(defects).toEqual([expect.stringMatching(died), expect.stringMatching(died)]);
  });

  test('starts one that is always to run again by itself, until it is closed', async () => {
    const { link, defects } = linkTo(MORTAL, { restartMs: 10 });
    link.start();
    await eventually(() => expect(defects.length).toBeGreaterThan(2));
    await link.close();
    const deaths = defects.length;
    link.start();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([link.isRunning, defects.length]).toEqual([false, deaths]);
  });

  test('is closed with what it waits for, and says so of later questions', async () => {
    const { link, defects } = linkTo({ entry: 'prices' });
    const asked = link.ask(question('gpt-4o'));
    await Promise.all([link.close(), expect(asked).rejects.toThrow('the thread workers/prices.js exited with code')]);
    await expect(link.ask(question('gpt-4o'))).rejects.toThrow('the thread workers/prices.js is closed');
    expect(defects).toEqual([]);
  });
});
