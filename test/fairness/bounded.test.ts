import { describe, expect, test } from 'vitest';
import { fail, ok, type Result } from '../../src/core/base/result.ts';
import type { Fault } from '../../src/core/fault.ts';
import { bounded } from '../../src/fairness/bounded.ts';
import { eventually } from '../support/eventually.ts';
import { testClock } from '../support/harness.ts';

const OVERLOADED = fail({ kind: 'overloaded', what: 'sign-in', retryAfterSecs: 1 } as const);

/** A use case whose runs a test ends by hand. */
function open({ atOnce = 2, waiting = 3, waitMs = 10_000, callerOf = (_name: string): string | null => null } = {}) {
  const clock = testClock();
  const started: string[] = [];
  const end = new Map<string, (how: Result<string, Fault> | Error) => void>();
  const run = bounded(
    { atOnce, waiting, waitMs, what: 'sign-in' },
    clock,
    callerOf,
    (name: string) =>
      new Promise<Result<string, Fault>>((resolve, reject) => {
        started.push(name);
        end.set(name, (how) => (how instanceof Error ? reject(how) : resolve(how)));
      }),
  );
  return {
    clock,
    started,
    run,
    end: (name: string, how: Result<string, Fault> | Error = ok(`${name} done`)) => end.get(name)!(how),
  };
}

describe('bounded', () => {
  test('runs up to the limit, queues the others in order, and refuses one more', async () => {
    const { run, started, end } = open();
    const answers = ['a', 'b', 'c', 'd', 'e'].map((name) => run(name));
    expect(await run('f')).toEqual(OVERLOADED);
    expect(started).toEqual(['a', 'b']);
    end('b');
    expect(await answers[1]).toEqual(ok('b done'));
    expect(started).toEqual(['a', 'b', 'c']);
    for (const name of ['a', 'c']) end(name);
    await Promise.all([answers[0], answers[2]]);
    expect(started).toEqual(['a', 'b', 'c', 'd', 'e']);
    for (const name of ['d', 'e']) end(name);
    expect(await Promise.all([answers[3], answers[4]])).toEqual([ok('d done'), ok('e done')]);
  });

  test('a failed task frees its place', async () => {
    const { run, started, end } = open({ atOnce: 1 });
    const [first, second, third] = [run('a'), run('b'), run('c')];
    end('a', new Error('a defect'));
    await expect(first).rejects.toThrow('a defect');
    end('b', OVERLOADED);
    expect(await second).toEqual(OVERLOADED);
    end('c');
    expect(await third).toEqual(ok('c done'));
    expect(started).toEqual(['a', 'b', 'c']);
  });

  test('a task whose turn comes too late is refused, and the next one runs', async () => {
    const { run, started, end, clock } = open({ atOnce: 1 });
    const first = run('a');
    const late = run('late');
    clock.advance(6_000);
    const inTime = run('in time');
    clock.advance(4_001);
    end('a');
    expect(await late).toEqual(OVERLOADED);
    expect(await first).toEqual(ok('a done'));
    expect(started).toEqual(['a', 'in time']);
    end('in time');
    expect(await inTime).toEqual(ok('in time done'));
  });

  test('when all are done there is room for as many as before', async () => {
    const { run, started, end } = open({ atOnce: 2, waiting: 0 });
    for (const round of ['1', '2', '3']) {
      const answers = [run(`a${round}`), run(`b${round}`)];
      expect(await run('too many')).toEqual(OVERLOADED);
      end(`a${round}`);
      end(`b${round}`);
      await Promise.all(answers);
    }
    expect(started).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
  });

  test('gives one caller half of the places, one at a time, with others in between', async () => {
    const { run, started, end } = open({ atOnce: 1, waiting: 7, callerOf: (name) => name.slice(0, -1) });
    const answers = ['nat1', 'nat2', 'nat3', 'nat4'].map((name) => run(name));
    expect(await run('nat5')).toEqual(OVERLOADED);
    answers.push(run('other1'));
    for (const name of ['nat1', 'other1', 'nat2', 'nat3', 'nat4']) {
      await eventually(() => expect(started.at(-1)).toBe(name));
      end(name);
    }
    expect((await Promise.all(answers)).every(({ ok: isDone }) => isDone)).toBe(true);
  });
});
