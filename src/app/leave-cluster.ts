/** `svc cluster leave`: makes the data directory of a stopped gateway one that a gateway alone may start on. */
import { existsSync } from 'node:fs';
import { newRun } from '../cluster/run.ts';
import type { Config } from '../config/config.ts';
import { openDatabase } from '../stores/database.ts';
import { isOfCluster, leaveCluster } from '../stores/embedded/runs.ts';
import { holdDataDir, openStore, startErrorOf } from '../stores/embedded/start.ts';
import { createPostgresLog } from '../stores/postgres/cluster/log.ts';
import { hasMembers } from '../stores/postgres/cluster/members.ts';
import { StartWait } from '../stores/postgres/start-wait.ts';
import { Closers } from '../system/closers.ts';
import type { Logger } from '../system/log.ts';
import { orStartError, StartError } from '../system/start-error.ts';

/** How much of each was taken along. */
export type Left = { readonly agents: number; readonly halts: number; readonly approvals: number };

/**
 * Copies the registrations, halts and approvals of the cluster into the data directory, in the place of those from
 * before it joined, and marks it as one that has left. Rejects with a `StartError`; then nothing is changed.
 */
export async function leaveClusterOf(config: Config, log: Logger): Promise<Left> {
  const closers = new Closers();
  try {
    return await leave(config, log, closers);
  } catch (error) {
    throw startErrorOf(error, config.SVC_DATA_DIR);
  } finally {
    await closers.closeAll(0);
  }
}

async function leave(config: Config, log: Logger, closers: Closers): Promise<Left> {
  const { SVC_DATA_DIR: dataDir, SVC_DATABASE_URL: url, SVC_DATABASE_POOL: maxConnections } = config;
  if (!existsSync(dataDir)) throw new StartError(`there is no data directory ${dataDir}; set SVC_DATA_DIR`);
  const lock = await holdDataDir(dataDir);
  closers.add('the lock of the data directory', () => lock.release());
  const store = await openStore(dataDir, log);
  closers.add('the embedded store', () => store.close());
  if (!isOfCluster(store)) throw new StartError(`the data directory ${dataDir} is not that of a gateway in a cluster`);
  if (url === undefined || url === 'embedded')
    throw new StartError('set SVC_DATABASE_URL to the database of the cluster');
  const { signal } = new AbortController();
  const wait = new StartWait(log, signal);
  const { postgres, close } = await orStartError(
    openDatabase({ url, dataDir, maxConnections, store, log, signal, wait }),
  );
  closers.add('the database', () => close());
  const run = newRun(); // reads need no run that takes part
  const trouble = (): string | undefined => postgres.trouble;
  if (!(await wait.value(() => hasMembers(postgres), trouble)))
    throw new StartError('no gateway is known in the database at SVC_DATABASE_URL; set it to that of the cluster');
  const shared = createPostgresLog({ postgres, run, leaseMs: 0 });
  const { agents, states } = await wait.value(() => shared.whole(), trouble);
  const kept = (kind: string) => states.filter((each) => each.kind === kind).map(({ id, body }) => ({ id, row: body }));
  const [halts, approvals] = [kept('halts'), kept('approvals')];
  await leaveCluster(store, { agents, halts, approvals });
  return { agents: agents.length, halts: halts.length, approvals: approvals.length };
}
