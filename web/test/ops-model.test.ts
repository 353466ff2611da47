import { describe, expect, test } from 'vitest';
import { shownWord } from '../src/live/op.ts';
import { countsOf, OpsModel } from '../src/live/ops-model.ts';
import { modelOf, NOON_MS, opFrame } from './frames.ts';

const shown = (model: OpsModel): readonly string[] =>
  model.list({}).map(({ opId, home, state }) => `${opId} ${home} ${state}`);

describe('operations on the dashboard', () => {
  test('are two if two gateways use one id, each with its own state', () => {
    const model = modelOf(opFrame({ home: 'one' }), opFrame({ home: 'two', state: 'paused' }));
    model.apply(opFrame({ home: 'one', state: 'terminated', updated: 2 }), NOON_MS);
    expect([...shown(model)].sort()).toEqual(['t:s one terminated', 't:s two paused']);
  });

  test('are two if two orgs use one id', () => {
    expect(modelOf(opFrame({ org: 'acme' }), opFrame({ org: 'globex' })).size).toBe(2);
  });

  test('are one outside a cluster, whatever comes again', () => {
    const model = modelOf(
      opFrame(),
      opFrame({ state: 'paused', updated: 2 }),
      opFrame({ state: 'running', updated: 1 }),
    );
    expect(shown(model)).toEqual(['t:s undefined paused']);
  });

  test('stand newest first, in whatever order a snapshot tells of them', () => {
    const model = modelOf(
      opFrame({ id: 'b:s', registered: 2 }),
      opFrame({ id: 'c:s', registered: 3 }),
      opFrame({ id: 'a:s', registered: 1 }),
    );
    expect(model.list({}).map(({ opId }) => opId)).toEqual(['c:s', 'b:s', 'a:s']);
  });

  test('are forgotten when the gateway has kept them for long enough', () => {
    const model = modelOf(opFrame({ id: 'done:s', state: 'completing', updated: 0 }), opFrame({ id: 'runs:s' }));
    model.expire(NOON_MS + 59_000);
    expect(model.size).toBe(2);
    model.expire(NOON_MS + 60_000);
    expect(shown(model)).toEqual(['runs:s undefined running']);
  });

  test('show what was asked for until the gateway confirms or refuses it', () => {
    const model = modelOf(opFrame());
    const [op] = model.list({});
    model.ask(op!.key, 'pause');
    expect(shownWord(op!)).toBe('paused');
    expect(countsOf(model.list({}))).toMatchObject({ asked: 1, counts: { running: 1, paused: 0 } });
    model.takeBack(op!.key, 'pause');
    expect(shownWord(op!)).toBe('running');
    model.ask(op!.key, 'terminate');
    model.apply(opFrame({ state: 'terminated', updated: 3, payload: { ended: 'denied' } }), NOON_MS);
    expect(shownWord(model.list({})[0]!)).toBe('denied');
  });

  test('are many: the finished go first, then the oldest, and what was left out is said', () => {
    const model = new OpsModel();
    model.begin({ opCount: 0, finishedTtlMs: 60_000 }, NOON_MS);
    for (let at = 0; at < 50_001; at += 1)
      model.apply(opFrame({ id: `${at}:s`, registered: at, state: at < 4_000 ? 'completing' : 'running' }), NOON_MS);
    expect(model.size).toBe(45_000);
    expect(model.dropped).toBe(1_001);
    expect(model.list({}).at(-1)?.opId).toBe('5001:s');
  });

  test('are still being read until the snapshot is whole, or quiet for seconds', () => {
    const model = new OpsModel();
    model.begin({ opCount: 2, finishedTtlMs: 60_000 }, NOON_MS);
    model.apply(opFrame({ id: 'a:s' }), NOON_MS);
    expect(model.isFilling(NOON_MS + 2_999)).toBe(true);
    expect(model.isFilling(NOON_MS + 3_000)).toBe(false);
    model.apply(opFrame({ id: 'b:s' }), NOON_MS);
    expect(model.isFilling(NOON_MS)).toBe(false);
  });
});
