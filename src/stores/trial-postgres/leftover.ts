/** Cleans up after a killed gateway: a running server, or the pid file of one that is gone. */
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { TroubleLog } from '../../system/log.ts';
import { isProcess } from '../../system/machine.ts';
import { pause, withClient } from './server.ts';

const POLL_MS = 50;
/** Far longer than a server takes to write its pid file once it has made it. */
const EMPTY_FOR_MS = 1_000;

/**
 * Stops the server that still runs on this cluster, or removes a pid file whose number now belongs to somebody else.
 * A process is only ever signalled after it has proved to be ours: by our password and its data directory.
 */
export async function stopLeftover(
  cluster: string,
  urlOf: (port: number) => string,
  timeoutMs: number,
  log: TroubleLog,
): Promise<void> {
  const pidFile = join(cluster, 'postmaster.pid');
  if (await staysEmpty(pidFile)) {
    log.warn('the pid file of the embedded PostgreSQL is empty, as after a power loss; removing it', { file: pidFile });
    await rm(pidFile, { force: true });
    return;
  }
  const lines = await linesOf(pidFile);
  if (lines === undefined) return;
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (pid === 1 || !isProcess(pid)) return; // PostgreSQL itself sees that such a file is stale
  if (!(await servesCluster(urlOf(port), cluster)) && !(await runsIn(pid, cluster))) {
    log.warn('the pid file of the embedded PostgreSQL names a process of another program; removing it', { pid });
    await rm(pidFile, { force: true });
    return;
  }
  log.info('stopping the embedded PostgreSQL that an earlier gateway left running', { pid });
  // First a clean shutdown, then one without a checkpoint, then a kill. It loses nothing, and recovers at the next
  // start.
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) if (await isGoneAfter(pid, signal, timeoutMs)) return;
  throw new Error(`the embedded PostgreSQL of an earlier gateway (process ${pid}) does not stop`);
}

const linesOf = (file: string): Promise<readonly string[] | undefined> =>
  readFile(file, 'utf8').then(
    (text) => text.split('\n'),
    () => undefined,
  );

/** With such a file PostgreSQL refuses to start: it cannot know that no other is about to write its number. */
async function staysEmpty(pidFile: string): Promise<boolean> {
  const isEmpty = async (): Promise<boolean> => (await linesOf(pidFile))?.join('').trim() === '';
  if (!(await isEmpty())) return false;
  await pause(EMPTY_FOR_MS);
  return isEmpty();
}

async function isGoneAfter(pid: number, signal: NodeJS.Signals, timeoutMs: number): Promise<boolean> {
  if (isProcess(pid)) process.kill(pid, signal);
  const deadline = performance.now() + timeoutMs;
  while (isProcess(pid)) {
    if (performance.now() > deadline) return false;
    await pause(POLL_MS);
  }
  return true;
}

async function servesCluster(url: string, cluster: string): Promise<boolean> {
  try {
    const { rows } = await withClient(url, (client) => client.query<{ data_directory: string }>('SHOW data_directory'));
    return rows[0]?.data_directory === cluster;
  } catch {
    return false;
  }
}

/**
 * For a server that does not answer (any more), or knows its cluster under another name: it runs in its folder. Known
 * on Linux only.
 */
async function runsIn(pid: number, cluster: string): Promise<boolean> {
  const standsIn = await stat(`/proc/${pid}/cwd`).catch(() => undefined); // gone, or somebody else's
  const { dev, ino } = await stat(cluster);
  return standsIn?.ino === ino && standsIn.dev === dev;
}
