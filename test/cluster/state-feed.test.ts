/**
 * Halts and approvals of several gateways over one database in memory: their own code decides, and the database is
 * slow, away, or refuses at the worst moment.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { StateFeed } from '../../src/cluster/state-feed.ts';
import { fail, ok, type Result } from '../../src/core/base/result.ts';
import type { Fault } from '../../src/core/fault.ts';
import type { Barrier, Bus, SharedStates, StateRow, StateWrite } from '../../src/ports/cluster.ts';

const AWAY: Fault = { kind: 'store_unreachable', retryAfterSecs: 1 };

/** A database: a lock for each key, and rows with versions. */
class FakeDatabase {
  readonly rows = new Map<string, StateRow>();
  readonly #locks = new Map<string, Promise<unknown>>();
  /** The failure of the next turn: no connection, or one that breaks before the commit. */
  nextFailure: 'connect' | 'commit' | undefined;
  turns = 0;
  nowMs = 1_000;

  store(): Omit<SharedStates, 'put'> {
    let seen = new Map<string, number>();
    return {
      load: async () => ok([...this.rows.values()]),
      adopt: async () => ok(0),
      find: async (_, id) => ok(this.rows.get(id)),
      changes: async () => {
        const rows = [...this.rows.values()].filter(({ id, version }) => seen.get(id) !== version);
        const versions = new Map([...this.rows.values()].map(({ id, version }) => [id, version]));
        await sleep(1);
        return ok({ rows, isWhole: false, seen: () => void (seen = versions) });
      },
      turn: (_, key, decide) => {
        const done = (this.#locks.get(key) ?? Promise.resolve()).then(() => this.#turn(key, decide));
        this.#locks.set(
          key,
          done.catch(() => undefined),
        );
        return done;
      },
    };
  }

  async #turn(
    key: string,
    decide: (rows: readonly StateRow[], nowMs: number) => readonly StateWrite[],
  ): Promise<Result<readonly StateRow[], Fault>> {
    const failure = this.nextFailure;
    this.nextFailure = undefined;
    await sleep(1);
    if (failure === 'connect') return fail(AWAY);
    this.turns += 1;
    const writes = decide(
      [...this.rows.values()].filter((row) => row.key === key && row.body !== undefined),
      this.nowMs,
    );
    await sleep(1);
    if (failure === 'commit') return fail(AWAY);
    const written = writes.map((each) => ({ ...each, version: (this.rows.get(each.id)?.version ?? 0) + 1 }));
    for (const row of written) this.rows.set(row.id, row);
    return ok(written);
  }
}

type Counter = { readonly uses: number };

/** A gateway whose rows are counters that may be used `most` times; its registry is a map. */
function openGateway(database: FakeDatabase, most = 1) {
  const registry = new Map<string, Counter>();
  const passed: string[] = [];
  const barrier: Barrier = { pass: async (topic) => (passed.push(topic), ['slow']) };
  const sent: unknown[] = [];
  const bus = { send: (_: unknown, message: unknown) => (sent.push(message), true) } as unknown as Bus;
  const errors: unknown[] = [];
  const feed = new StateFeed(
    {
      kind: 'halts',
      store: database.store(),
      bus,
      barrier,
      isAwaited: (body) => (body as Counter | undefined)?.uses !== 1,
      onError: (error) => errors.push(error),
    },
    [],
  );
  const keys: string[] = [];
  feed.follow({
    adopt: (rows) => {
      for (const { id, body } of rows) {
        if (body === undefined) registry.delete(id);
        else registry.set(id, body as Counter);
      }
    },
    within: (key, work) => {
      keys.push(key);
      work();
    },
  });
  /** As a command does it: decided at once, saved, and rolled back where it could not be. */
  const use = (id: string): Promise<Result<readonly string[] | 'used up', Fault>> =>
    feed.inTurn<readonly string[] | 'used up'>(id, async () => {
      const before = registry.get(id);
      if ((before?.uses ?? 0) >= most) return ok('used up');
      const after = { uses: (before?.uses ?? 0) + 1 };
      registry.set(id, after);
      try {
        return ok(await feed.save(id, after));
      } catch (error) {
        if (before === undefined) registry.delete(id);
        else registry.set(id, before);
        return fail((error as { readonly fault: Fault }).fault);
      }
    });
  return { feed, registry, use, passed, sent, errors, keys };
}

const allowed = (results: readonly Result<unknown, Fault>[]): number =>
  results.filter((result) => result.ok && result.value !== 'used up').length;

describe('a decision of people at several gateways', () => {
  test('is used once, however many race for it at however many gateways', async () => {
    const database = new FakeDatabase();
    const gateways = [openGateway(database), openGateway(database), openGateway(database)];
    const uses = await Promise.all(gateways.flatMap(({ use }) => Array.from({ length: 20 }, () => use('a'))));
    expect(allowed(uses)).toBe(1);
    expect(uses.every(({ ok: isOk }) => isOk)).toBe(true);
    expect(database.rows.get('a')).toMatchObject({ body: { uses: 1 }, version: 1 });
    // Uses that wait for the turn of one key are decided together.
    expect(database.turns).toBeLessThanOrEqual(6);
  });

  test('is counted exactly while turns fail, and failed turns leave nothing', async () => {
    const database = new FakeDatabase();
    const gateways = [openGateway(database, 1_000), openGateway(database, 1_000)];
    let counted = 0;
    for (let round = 0; round < 60; round += 1) {
      database.nextFailure = round % 3 === 0 ? 'commit' : round % 3 === 1 ? 'connect' : undefined;
      const uses = await Promise.all(gateways.flatMap(({ use }) => [use('a'), use('a')]));
      counted += allowed(uses);
      expect((database.rows.get('a')?.body as Counter | undefined)?.uses ?? 0).toBe(counted);
    }
    for (const { feed, registry } of gateways) {
      await feed.refresh();
      expect(registry.get('a')).toEqual({ uses: counted });
    }
    expect(counted).toBeGreaterThan(60);
  });

  test('reaches the others with a reading, and never goes back to what was before', async () => {
    const database = new FakeDatabase();
    const [one, two] = [openGateway(database, 1_000), openGateway(database, 1_000)];
    let highest = 0;
    for (let round = 0; round < 30; round += 1) {
      const reading = two.feed.refresh();
      await Promise.all([one.use('a'), two.use('a'), reading]);
      const uses = two.registry.get('a')?.uses ?? 0;
      expect(uses).toBeGreaterThan(highest);
      highest = uses;
    }
    await Promise.all([one.feed.refresh(), two.feed.refresh()]);
    expect([one.registry.get('a'), two.registry.get('a')]).toEqual([{ uses: 60 }, { uses: 60 }]);
  });

  test('is answered when all gateways act by it, with the names of those that do not', async () => {
    const database = new FakeDatabase();
    const { use, passed, sent } = openGateway(database, 2);
    // After a first use, later ones learn of it from the database.
    expect(await use('a')).toEqual(ok([]));
    expect([passed, sent]).toEqual([[], [{ type: 'changed', topic: 'halts' }]]);
    expect(await use('a')).toEqual(ok(['slow']));
    expect(passed).toEqual(['halts']);
  });

  test('is taken back if it could not be recorded, unless others have built on it', async () => {
    const database = new FakeDatabase();
    const [one, two] = [openGateway(database, 9), openGateway(database, 9)];
    await one.use('a');
    await one.use('a');
    one.registry.set('a', { uses: 1 });
    await one.feed.save('a', { uses: 1 }); // outside of a turn: the second use was not recorded
    expect(database.rows.get('a')).toMatchObject({ body: { uses: 1 }, version: 3 });
    await one.use('a');
    await two.use('a');
    expect(await one.feed.save('a', { uses: 1 })).toEqual([]);
    expect(database.rows.get('a')?.body).toEqual({ uses: 3 });
    // A row that nobody has seen is removed again.
    await one.use('b');
    one.registry.delete('b');
    await one.feed.remove('b');
    expect(database.rows.get('b')?.body).toBe(undefined);
  });

  test('is refused to all who wait once the database is away, and not later', async () => {
    const database = new FakeDatabase();
    const { use, registry } = openGateway(database, 9);
    database.nextFailure = 'connect';
    const uses = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((id) => use(id)));
    // Four have their turns at once; those behind them would meet the same.
    expect(uses.map((use) => (use.ok ? 'ok' : use.fault.kind))).toEqual([
      'store_unreachable',
      'ok',
      'ok',
      'ok',
      'store_unreachable',
      'store_unreachable',
    ]);
    expect([...registry.keys()]).toEqual(['b', 'c', 'd']);
    expect(allowed([await use('a')])).toBe(1);
  });

  test('is looked up if its id is unknown here', async () => {
    const database = new FakeDatabase();
    const [one, two] = [openGateway(database), openGateway(database)];
    await one.use('a');
    await two.feed.find('a');
    await two.feed.find('none');
    expect([...two.registry]).toEqual([['a', { uses: 1 }]]);
  });

  test('ends a defect in one turn with that turn', async () => {
    const database = new FakeDatabase();
    const { feed, use, errors } = openGateway(database);
    const broken = feed.inTurn('a', () => {
      throw new Error('defect');
    });
    expect(await broken).toEqual(fail({ kind: 'internal' }));
    expect(errors).toHaveLength(1);
    expect(allowed([await use('a')])).toBe(1);
  });
});
