/** The head of the log in the database against the one in TypeScript, and what the tables come to. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Place, RunId } from '../../../../src/ports/cluster.ts';
import type { Entry, LogAnswer } from '../../../../src/ports/cluster-log.ts';
import { createPostgresLog } from '../../../../src/stores/postgres/cluster/log.ts';
import { createPostgresMembers } from '../../../../src/stores/postgres/cluster/members.ts';
import { migrate } from '../../../../src/stores/postgres/migrate.ts';
import { MIGRATIONS } from '../../../../src/stores/postgres/migrations.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../../../src/stores/postgres/postgres.ts';
import { SILENT } from '../../../support/database-server.ts';
import { ModelHead } from '../../../support/model-log.ts';
import { withPostgres } from '../../../support/postgres.ts';
import { randomOf } from '../../../support/random.ts';

const newDatabase = withPostgres();

async function openLog() {
  const url = await newDatabase();
  const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, SILENT);
  onTestFinished(() => postgres.close());
  await postgres.start();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  const join = async (name: string) => {
    const run = randomUUID() as string as RunId;
    await client.query(`SELECT cluster_join($1, $2, 60000, '1', '{1,1}', 'serve', NULL, '{}', '{}', '{}')`, [
      run,
      name,
    ]);
    const base = { postgres, run, leaseMs: 60_000 };
    const members = createPostgresMembers({ ...base, pool: postgres, settles: () => undefined });
    return { run, members, log: createPostgresLog(base) };
  };
  return { client, join };
}

const registration = (id: string, credential: string, parent?: string) => ({
  identity: { orgId: 'acme', teamId: 'search', agentId: id },
  credential,
  registeredAtMs: 1_000,
  parent,
});

async function asked(answer: ReturnType<ReturnType<typeof createPostgresLog>['after']>) {
  const answered = await answer;
  if (!answered.ok || answered.value.lost) throw new Error(`no answer: ${JSON.stringify(answered)}`);
  return answered.value;
}
type Known = Exclude<LogAnswer, { lost: true }>;
const plain = ({ seq, isGap, rows, mine }: Known) => ({
  ...{ seq, isGap, mine },
  rows: rows.map(({ entries, nonce }) => ({ nonce, entries: JSON.parse(JSON.stringify(entries)) as unknown })),
});

describe('the head of the log in the database', () => {
  test('answers as the one in TypeScript does', async () => {
    const { join } = await openLog();
    const [one, two] = [await join('one'), await join('two')];
    const model = new ModelHead();
    const whole = await one.log.whole();
    if (!whole.ok) throw new Error('no state');
    const places = [one, two].map(() => ({ here: whole.value.place, there: model.head }));
    const random = randomOf(11);
    const upTo = (most: number): number => Math.floor(random() * (most + 1));
    const entryOf = (): Entry => {
      const id = `a${upTo(5)}`;
      const body = upTo(4) === 0 ? null : { n: upTo(99), text: '\u0000 \ud800' };
      const expects = upTo(2) === 0 ? { expects: upTo(30) } : upTo(3) === 0 ? { upTo: upTo(60) } : {};
      if (upTo(1) === 0) return { kind: (['halts', 'orders', 'notice'] as const)[upTo(2)]!, id, body, ...expects };
      const parent = upTo(1) === 0 ? undefined : `a${upTo(5)}`;
      return { kind: 'agents', id, body: body && registration(id, `c${upTo(8)}`, parent), ...expects };
    };
    let last = { nonce: randomUUID() as string, groups: [] as Entry[][], at: 0 };
    for (let step = 0; step < 200; step += 1) {
      const at = upTo(1);
      const side = [one, two][at]!;
      const place = places[at]!;
      // A repeated nonce gets the same answer.
      if (upTo(4) > 0)
        last = {
          nonce: randomUUID(),
          at,
          groups: Array.from({ length: 1 + upTo(2) }, () => [entryOf(), entryOf()].slice(upTo(1))),
        };
      const answer = await asked(side.log.append(last.nonce, place.here, last.groups));
      const expected = model.append(side.run, last.nonce, place.there, last.groups, 500, []) as Known;
      expect(plain(answer)).toEqual(plain(expected));
      const [row, modelRow] = [answer.rows.at(-1), expected.rows.at(-1)];
      if (row !== undefined && modelRow !== undefined && upTo(2) > 0)
        places[at] = { here: { seq: row.seq, mark: row.mark }, there: { seq: modelRow.seq, mark: modelRow.mark } };
    }
    const state = await two.log.whole();
    const sorted = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).toSorted();
    const { agents, states } = model.whole();
    expect(state.ok && sorted(state.value.agents)).toEqual(sorted(agents));
    expect(state.ok && sorted(state.value.states)).toEqual(sorted(states));
  });

  test('keeps rows for ten minutes, and until all live gateways have applied them', async () => {
    const { client, join } = await openLog();
    const { log, run, members } = await join('one');
    const whole = await log.whole();
    const place = whole.ok ? whole.value.place : ({} as Place);
    for (let nth = 0; nth < 3; nth += 1)
      await asked(log.append(randomUUID(), place, [[{ kind: 'orders', id: 'o', body: {} }]]));
    const seqs = async () =>
      (await client.query('SELECT seq::int FROM cluster_log ORDER BY seq')).rows.map(({ seq }) => seq);
    await client.query(`UPDATE cluster_log SET at = now() - interval '11 minutes'`);
    await members.tidy();
    expect(await seqs()).toEqual([1, 2, 3, 4]);
    await client.query('UPDATE cluster_node SET applied = 3 WHERE epoch = $1', [run]);
    await members.tidy();
    expect(await seqs()).toEqual([3, 4]);
  });

  test('removes old rows some at a time, and in no append', async () => {
    const { client, join } = await openLog();
    const { log, run } = await join('one');
    const whole = await log.whole();
    const place = whole.ok ? whole.value.place : ({} as Place);
    await client.query(`INSERT INTO cluster_log (seq, nonce, mark, run, at, verdicts, entries)
      SELECT s, gen_random_uuid(), s::text, gen_random_uuid(), now() - interval '11 minutes', '[]', '[]'
        FROM generate_series(2, 1200) s`);
    await client.query(`UPDATE cluster_head SET seq = 1200, mark = '1200'`);
    await client.query('UPDATE cluster_node SET applied = 1200 WHERE epoch = $1', [run]);
    const rows = async () => (await client.query('SELECT count(*)::int AS n FROM cluster_log')).rows[0].n;
    await asked(log.append(randomUUID(), place, [[{ kind: 'halts', id: 'h', body: {} }]]));
    expect(await rows()).toBe(1_201);
    const tidied: unknown[] = [];
    for (let step = 0; step < 3; step += 1) {
      const { rows: answered } = await client.query('SELECT cluster_tidy(600000, 500) AS more');
      tidied.push([answered[0].more, await rows()]);
    }
    expect(tidied).toEqual([
      [true, 701],
      [true, 201],
      [false, 3],
    ]);
  });

  test('tells a gateway that has applied what this server lacks, or what it has removed', async () => {
    const { client, join } = await openLog();
    const { log } = await join('one');
    const whole = await log.whole();
    const place = whole.ok ? whole.value.place : { seq: 0, mark: '' };
    expect(await log.after({ seq: place.seq + 1, mark: 'x' })).toEqual({ ok: true, value: { lost: true } });
    expect(await log.after({ ...place, mark: 'x' })).toEqual({ ok: true, value: { lost: true } });
    for (let nth = 0; nth < 3; nth += 1)
      await asked(log.append(randomUUID(), place, [[{ kind: 'orders', id: 'o', body: {} }]]));
    const places = await log.placesAfter(place.seq);
    expect(places.ok && places.value.map(({ seq }) => seq)).toEqual([2, 3, 4]);
    await client.query('DELETE FROM cluster_log WHERE seq < 3');
    expect(await asked(log.after(place))).toMatchObject({ isGap: true });
  });

  test('takes over what a cluster of the release before has in its tables', async () => {
    const url = await newDatabase({ isEmpty: true });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    await migrate(
      client,
      MIGRATIONS.filter(({ number }) => number < 24),
    );
    await client.query(`
      INSERT INTO agents (key, org, team, agent, credential, registered_at, removed) VALUES
        ('acme/search/kept', 'acme', 'search', 'kept', 'digest', to_timestamp(1), false),
        ('acme/search/gone', 'acme', 'search', 'gone', NULL, to_timestamp(1), true);
      INSERT INTO cluster_state (kind, id, key, body, version, removed) VALUES
        ('halts', 'h', 'h', '{"scope":"global"}', 4, false), ('halts', 'old', 'old', '{}', 2, true),
        ('controls', 'acme/search/kept t:1', 'acme/search/kept t:1', '{"opId":"t:1"}', 7, false);
      INSERT INTO policy_set (version, documents, published_by) VALUES ('v1', '[]', 'gateway');
      INSERT INTO policy_active (version, activated_by) VALUES ('v1', 'gateway')`);
    expect(await migrate(client)).toContain(24);
    const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, SILENT);
    onTestFinished(() => postgres.close());
    await postgres.start();
    const whole = await createPostgresLog({ postgres, run: randomUUID() as string as RunId, leaseMs: 60_000 }).whole();
    expect(whole.ok && { ...whole.value, place: whole.value.place.seq }).toEqual({
      place: 1,
      agents: [registration('kept', 'digest')],
      states: [
        { kind: 'halts', id: 'h', body: { scope: 'global' }, version: 1 },
        { kind: 'orders', id: 'acme/search/kept t:1', body: { opId: 't:1' }, version: 1 },
      ],
      policy: { version: 'v1', by: 'gateway' },
    });
  });

  test('ends a set of policies at the very moment at which the next one begins', async () => {
    const { client, join } = await openLog();
    const { log } = await join('one');
    const whole = await log.whole();
    const place = whole.ok ? whole.value.place : { seq: 0, mark: '' };
    await client.query(`INSERT INTO policy_set (version, documents, published_by)
      VALUES ('v1', '[]', 'gateway'), ('v2', '[]', 'gateway')`);
    const activation = (version: string): Entry[] => [
      { kind: 'policy', id: 'active', body: { version, by: 'gateway' } },
    ];
    await asked(log.append(randomUUID(), place, [activation('v1'), activation('v2')]));
    const { rows } = await client.query(`SELECT o.version AS ended, n.version AS begun, n.since = a.activated_at AS at
      FROM policy_set o JOIN policy_set n ON o.till = n.since JOIN policy_active a ON a.version = n.version`);
    expect(rows).toEqual([{ ended: 'v1', begun: 'v2', at: true }]);
  });

  test('lets what is offered again replace nothing newer, and bring nothing back', async () => {
    const { join } = await openLog();
    const { log } = await join('one');
    const whole = await log.whole();
    const place = whole.ok ? whole.value.place : { seq: 0, mark: '' };
    const order = (id: string, body: unknown, at?: number): Entry[] => [
      { kind: 'orders', id, body, ...(at && { at }) },
    ];
    const first = await asked(log.append(randomUUID(), place, [order('changed', { n: 2 }), order('removed', null)]));
    const atMs = first.rows.at(-1)!.atMs;
    const again = await asked(
      log.append(randomUUID(), place, [
        order('changed', { n: 1 }, atMs - 1),
        order('removed', {}, atMs - 1),
        order('lost', {}, atMs - 1),
        order('later', {}, atMs + 1),
      ]),
    );
    expect(again.mine?.verdicts).toBe(undefined);
    expect(again.rows.at(-1)?.entries.map(({ id }) => id)).toEqual(['lost', 'later']);
    // As old as they were first, wherever they stand now.
    const older = await asked(log.append(randomUUID(), place, [order('later', { n: 1 }, atMs + 0.5)]));
    expect(older.rows.at(-1)?.entries).toEqual([]);
  });

  test('lets nobody append whose run was replaced', async () => {
    const { join } = await openLog();
    const before = await join('one');
    await join('one');
    const appended = await before.log.append(randomUUID(), { seq: 1, mark: '' }, []);
    expect(appended).toEqual({ ok: false, fault: { kind: 'replaced' } });
  });

  test('enters what many append at once one after the other, and each once', async () => {
    const { client, join } = await openLog();
    const { log } = await join('one');
    const whole = await log.whole();
    const place = whole.ok ? whole.value.place : ({} as Place);
    const nonces = Array.from({ length: 10 }, () => randomUUID());
    const entry = { kind: 'orders', id: 'o', body: {}, expects: 0 } as const;
    const answers = await Promise.all(
      [...nonces, ...nonces].map((nonce) => asked(log.append(nonce, place, [[entry]]))),
    );
    expect(new Set(answers.map(({ mine }) => mine!.seq)).size).toBe(10);
    expect(answers.filter(({ mine }) => mine!.verdicts?.[0] === 'accepted')).toHaveLength(2); // one, asked for twice
    expect((await client.query('SELECT count(*)::int AS n FROM cluster_log')).rows).toEqual([{ n: 11 }]);
  });
});
