/** Checks over Connect from an open-loop client in a thread of its own, all of which must be allowed. */
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { HttpLane } from '../../src/load/http-lane.ts';
import * as openLoop from '../../src/load/open-loop.ts';

export type OpenLoad = {
  /** The URL of the request, with its path. */
  readonly url: string;
  /** The `<id>` in it becomes a number of its own for each request, and `<agent>` that of one of `agents` in turn. */
  readonly body: string;
  readonly rate: number;
  readonly seconds: number;
  readonly connections: number;
  readonly agents?: number;
};

/** In milliseconds. */
export type OpenWaits = {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly longest: number;
  readonly answered: number;
  readonly perSecond: number;
};

type Report = { readonly waits: OpenWaits } | { readonly problem: string };
const MARK = 'open-loop client';
type Start = { readonly mark: typeof MARK; readonly load: OpenLoad };

/** Rejects where an answer is none of an allowed check, or does not come. */
export function loadOpenly(load: OpenLoad): Promise<OpenWaits> {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { mark: MARK, load } satisfies Start });
  return new Promise((resolve, reject) => {
    worker.once('message', (report: Report) =>
      'waits' in report ? resolve(report.waits) : reject(new Error(report.problem)),
    );
    worker.once('error', reject);
  });
}

/** Numbers of one run differ from those of the last. */
const firstNumber = (): number => (Date.now() % 1_000_000_000) * 1_000;

async function loadHere({ url, body, rate, seconds, connections, agents = 1 }: OpenLoad): Promise<Report> {
  const first = firstNumber();
  const bodyOf = (nth: number): string =>
    body.replace('<id>', String(first + nth)).replaceAll('<agent>', String(nth % agents));
  const lanes = Array.from({ length: connections }, () => new HttpLane({ url: new URL(url), bodyOf }));
  const { waits, answered, perSecond, reasons } = await openLoop.loadOpenly({ lanes, rate, seconds });
  for (const lane of lanes) lane.close();
  const [refused] = reasons;
  if (refused !== undefined)
    return { problem: `${refused.count} checks were answered: ${refused.kind} ${refused.reason}` };
  const { p50, p99, p999, longest } = waits;
  return { waits: { p50, p99, p999, longest, answered, perSecond } };
}

if (!isMainThread && (workerData as Partial<Start> | null)?.mark === MARK)
  parentPort?.postMessage(await loadHere((workerData as Start).load));
