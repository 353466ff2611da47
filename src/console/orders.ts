/**
 * Orders to a running gateway from its own machine, as files in a folder of its data directory. Only its user may
 * enter that, and could change everything in it anyway: so whoever can write an order needs no credential, which is how
 * an operator gets in who has lost them all.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../core/base/text.ts';
import { ifThereSync, replaceFile, textIfThereSync } from '../system/files.ts';

const FOLDER = 'console';
const LOOK_EVERY_MS = 500;
const ANSWER_TIMEOUT_MS = 15_000;
/** An order or an answer that nobody has taken by then is deleted: it may hold a secret. */
const STALE_MS = 60_000;
const MAX_ORDER_BYTES = 4_096;
const ORDER = /^[0-9a-f]{16}\.order$/;

/** The answer to an order: plain data. */
export type ConsoleAnswer = Readonly<Record<string, unknown>>;

/** Takes orders until the returned function is called. `carryOut` rejects with what the operator is to read. */
export function serveConsole(
  dataDir: string,
  carryOut: (order: unknown) => Promise<ConsoleAnswer>,
  onError: (error: unknown) => void,
): () => void {
  const folder = join(dataDir, FOLDER);
  let isBusy = false;
  const look = async (): Promise<void> => {
    for (const name of ifThereSync(() => readdirSync(folder)) ?? []) {
      const path = join(folder, name);
      if (isStale(path)) rmSync(path, { force: true });
      else if (ORDER.test(name)) await answer(path, carryOut);
    }
  };
  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    look()
      .catch(onError)
      .finally(() => {
        isBusy = false;
      });
  }, LOOK_EVERY_MS).unref();
  return () => clearInterval(timer);
}

async function answer(path: string, carryOut: (order: unknown) => Promise<ConsoleAnswer>): Promise<void> {
  const text = statSync(path).size > MAX_ORDER_BYTES ? '' : readFileSync(path, 'utf8');
  rmSync(path); // once, whatever becomes of it
  const given = await Promise.resolve()
    .then(() => carryOut(JSON.parse(text)))
    .catch((error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }));
  await replaceFile(path.replace(/order$/, 'answer'), `${JSON.stringify(given)}\n`);
}

function isStale(path: string): boolean {
  const changedMs = ifThereSync(() => statSync(path).mtimeMs);
  return changedMs !== undefined && Date.now() - changedMs > STALE_MS;
}

/**
 * Gives an order to the gateway that runs on the data directory. Resolves with its answer; undefined where none came.
 * Rejects with the error of the system, for a folder that is not one's own.
 */
export async function orderAtConsole(dataDir: string, order: object): Promise<ConsoleAnswer | undefined> {
  const folder = join(dataDir, FOLDER);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  const path = join(folder, `${randomBytes(8).toString('hex')}.order`);
  const answerPath = path.replace(/order$/, 'answer');
  await replaceFile(path, JSON.stringify(order)); // as a whole: half an order is none
  for (const endMs = Date.now() + ANSWER_TIMEOUT_MS; Date.now() < endMs; await sleep(LOOK_EVERY_MS / 5)) {
    const text = textIfThereSync(answerPath);
    if (text === undefined) continue;
    rmSync(answerPath);
    return JSON.parse(text) as ConsoleAnswer;
  }
  rmSync(path, { force: true });
  return undefined;
}
