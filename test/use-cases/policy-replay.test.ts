import { describe, expect, test } from 'vitest';
import { fail, ok } from '../../src/core/base/result.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import type { ReplayResult } from '../../src/core/policy/replay.ts';
import {
  type OtherLog,
  type ReplayEngine,
  ReplayKeeper,
  type ReplayLimits,
} from '../../src/use-cases/policy-replay.ts';

const ADMIN: Principal = { subject: 'key:ops', scopes: ['admin'], orgId: null };
const RESULT: ReplayResult = { checks: 3, same: 3, changed: 0, skipped: {}, changes: [] };
const asked = (ticket: string) => ({ ticket, set: { texts: [] }, filter: {} });

type World = {
  readonly engine?: Partial<ReplayEngine>;
  readonly others?: readonly OtherLog[];
  readonly limits?: Partial<ReplayLimits>;
};

function keeperOf({ engine = {}, others = [], limits }: World) {
  const added: string[] = [];
  const errors: string[] = [];
  let ended = 0;
  const keeper = new ReplayKeeper({
    textsOf: async () => fail({ kind: 'not_found', what: 'policy version x' }),
    openEngine: () => ({
      open: async () => ok(undefined),
      extent: async () => 10,
      read: async (_filter, onRead) => onRead(10),
      add: async (lines) => void added.push(lines),
      result: async () => RESULT,
      end: async () => void (ended += 1),
      ...engine,
    }),
    otherLogs: () => others,
    later: (ms, act) => {
      const timer = setTimeout(act, ms);
      return () => clearTimeout(timer);
    },
    onError: (error) => void errors.push((error as Error).message),
    limits: { newsMs: 5, ...limits },
  });
  return { keeper, added, errors, endings: () => ended };
}

const never = <T>(): Promise<T> => new Promise(() => undefined);

describe('a replay at a gateway', () => {
  test('answers its result once, and leaves room for the next', async () => {
    const { keeper, endings } = keeperOf({});
    expect(await keeper.start(ADMIN, asked('a'))).toEqual(ok({ incomplete: [] }));
    expect(await keeper.next('a')).toEqual(ok({ kind: 'result', result: RESULT }));
    expect(await keeper.next('a')).toMatchObject({ fault: { kind: 'not_found' } });
    expect(endings()).toBe(1);
    expect((await keeper.start(ADMIN, asked('b'))).ok).toBe(true);
  });

  test('is the only one, until its caller leaves', async () => {
    const { keeper, endings } = keeperOf({ engine: { read: () => never() } });
    await keeper.start(ADMIN, asked('a'));
    expect(await keeper.start({ ...ADMIN, subject: 'key:other' }, asked('b'))).toEqual(
      fail({ kind: 'conflict', detail: 'this gateway replays already, for key:ops; try again when that has ended' }),
    );
    keeper.leave('b'); // not its own
    expect(await keeper.next('a')).toEqual(ok({ kind: 'progress', progress: { read: 0, total: 10 } }));
    keeper.leave('a');
    expect(endings()).toBe(1);
    expect((await keeper.start(ADMIN, asked('b'))).ok).toBe(true);
  });

  test('ends by itself when nobody asks, and when it takes too long', async () => {
    for (const limits of [{ idleMs: 20 }, { overallMs: 20 }]) {
      const { keeper, endings } = keeperOf({ engine: { read: () => never() }, limits });
      await keeper.start(ADMIN, asked('a'));
      await new Promise((resolve) => setTimeout(resolve, 60));
      expect({ limits, endings: endings() }).toEqual({ limits, endings: 1 });
      expect(await keeper.next('a')).toMatchObject({ fault: { kind: 'not_found' } });
    }
  });

  test('fails by itself when its thread does', async () => {
    const { keeper, errors } = keeperOf({ engine: { read: () => Promise.reject(new Error('out of memory')) } });
    await keeper.start(ADMIN, asked('a'));
    expect(await keeper.next('a')).toEqual(fail({ kind: 'internal' }));
    expect(errors).toEqual(['out of memory']);
    expect((await keeper.start(ADMIN, asked('b'))).ok).toBe(true);
  });

  test('is refused with mistakes in its policies, without its version, and to one org', async () => {
    const { keeper } = keeperOf({ engine: { open: async () => fail(['a.yaml:1:1: bad']) } });
    expect(await keeper.start(ADMIN, asked('a'))).toEqual(
      fail({ kind: 'policy_invalid', problems: ['a.yaml:1:1: bad'] }),
    );
    const byVersion = { ...asked('a'), set: { version: 'x' } };
    expect(await keeper.start(ADMIN, byVersion)).toMatchObject({ fault: { kind: 'not_found' } });
    expect(await keeper.start({ ...ADMIN, orgId: 'acme' }, asked('a'))).toMatchObject({
      fault: { kind: 'org_forbidden' },
    });
    expect(await keeper.start({ ...ADMIN, scopes: ['read'] }, asked('a'))).toMatchObject({
      fault: { kind: 'insufficient_scope' },
    });
  });

  test('reads the logs of all gateways, and names those that do not answer', async () => {
    const pieces = [
      { text: '{"id":40,"x":1}\n{"id":21}', before: 21 },
      { text: '{"id":20}', before: undefined },
    ];
    const others: OtherLog[] = [
      { name: 'b', answers: async () => true, read: async (_, before) => ok(pieces[before === undefined ? 0 : 1]!) },
      { name: 'c', answers: async () => false, read: () => never() },
    ];
    const { keeper, added } = keeperOf({ others, engine: { result: () => never() } });
    expect(await keeper.start(ADMIN, asked('a'))).toEqual(ok({ incomplete: ['c'] }));
    expect(await keeper.next('a')).toEqual(ok({ kind: 'progress', progress: { read: 50, total: 50 } }));
    expect(added).toEqual(['{"id":40,"x":1}\n{"id":21}', '{"id":20}']);
  });

  test('is cut short by a gateway that falls silent half-way', async () => {
    const silent = fail({ kind: 'unreachable_gateway', gateway: 'b', retryAfterSecs: 1 } as const);
    const { keeper } = keeperOf({ others: [{ name: 'b', answers: async () => true, read: async () => silent }] });
    await keeper.start(ADMIN, asked('a'));
    expect(await keeper.next('a')).toEqual(silent);
  });
});
