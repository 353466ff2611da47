/** Measures parts of the log that gateways of a cluster share, without gateways. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { AppliedEverywhere } from '../../src/cluster/applied.ts';
import type { ClusterMessage, Member, RunId } from '../../src/ports/cluster.ts';
import { createPostgresLog } from '../../src/stores/postgres/cluster/log.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../src/stores/postgres/postgres.ts';
import type { TroubleLog } from '../../src/system/log.ts';

const LEASE_MS = 60_000;
/** How far each member has come when it says so. */
const SAID_EVERY = 20;

/** Returns the processor time, in milliseconds, of so many changes that wait at once for so many members. */
export async function confirmingMs(changes: number, count: number): Promise<number> {
  let hear: (from: RunId, message: ClusterMessage) => void = () => undefined;
  const everywhere = new AppliedEverywhere({
    self: 'self' as RunId,
    bus: { isConnected: true, send: () => true, onMessage: (listener) => (hear = listener), onGap: () => undefined },
    store: { noteUnconfirmed: async () => ({ ok: true, value: undefined }) },
    isSame: () => true,
    steadyMs: () => performance.now(),
    after: (ms, call) => {
      const timer = setTimeout(call, ms);
      return () => clearTimeout(timer);
    },
  });
  everywhere.say({ seq: changes, mark: '' });
  const members = Array.from({ length: count }, (_, at) => memberOf(`gateway-${at}`));
  const begunAt = process.cpuUsage();
  const waiting = Array.from({ length: changes }, (_, at) => everywhere.pass({ seq: at + 1, members }));
  for (let seq = SAID_EVERY; seq <= changes; seq += SAID_EVERY)
    for (const { run } of members) hear(run, { type: 'acted', place: { seq, mark: '' } });
  const unconfirmed = (await Promise.all(waiting)).flat();
  const { user, system } = process.cpuUsage(begunAt);
  if (unconfirmed.length > 0) throw new Error(`${unconfirmed.length} changes were not confirmed`);
  return (user + system) / 1_000;
}

const memberOf = (name: string): Member => ({
  run: name as RunId,
  name,
  state: 'live',
  version: '0.0.0',
  protocols: [1, 1],
  leaseUntilMs: 0,
  skewMs: 0,
  policyVersion: undefined,
  auditHead: undefined,
  unconfirmed: 0,
  isOnBus: true,
  onOutage: 'serve',
  applied: undefined,
});

/** Returns how long each of so many halts takes to be entered, in milliseconds, where the state has so many rows. */
export async function haltsAmong(rows: number, halts: number, url: string, log: TroubleLog): Promise<number[]> {
  const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, log);
  await postgres.start();
  const run = randomUUID() as string as RunId;
  const prepared = await postgres.attempt(async (on) => {
    await on.query(`SELECT cluster_join($1, 'halting', $2, '1', '{1,1}', 'serve', NULL, '{}', '{}', '{}')`, [
      run,
      LEASE_MS,
    ]);
  });
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.fault));
  await fill(url, rows);
  const shared = createPostgresLog({ postgres, run, leaseMs: LEASE_MS });
  const begun = await postgres.attempt((on) =>
    on.query<{ seq: string; mark: string }>('SELECT seq, mark FROM cluster_head'),
  );
  if (!begun.ok) throw new Error(JSON.stringify(begun.fault));
  let place = { seq: Number(begun.value.rows[0]!.seq), mark: begun.value.rows[0]!.mark };
  const tookMs: number[] = [];
  for (let nth = 0; nth < halts; nth += 1) {
    const body = { id: `halt-${nth}`, scope: 'global', mode: 'pause', reason: 'an incident' };
    const startedMs = performance.now();
    const answered = await shared.append(randomUUID(), place, [[{ kind: 'halts', id: body.id, body, expects: 0 }]]);
    tookMs.push(performance.now() - startedMs);
    if (!answered.ok || answered.value.lost) throw new Error(`no answer: ${JSON.stringify(answered)}`);
    const row = answered.value.rows.at(-1)!;
    place = { seq: row.seq, mark: row.mark };
  }
  await postgres.close();
  return tookMs;
}

/** With orders to operations of gateways that have ended. */
async function fill(url: string, rows: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `INSERT INTO cluster_state (kind, id, body, version)
       SELECT 'orders', 'acme/search/crawler op:' || n, '{"signal":"pause"}', 1 FROM generate_series(1, $1::int) n`,
    [rows],
  );
  await client.query('ANALYZE cluster_state');
  await client.end();
}
