/**
 * An open-loop client: checks arrive at random, as those of many agents that know nothing of each other do (Poisson),
 * each about a new operation. A check that finds no connection free waits in the client's queue, and time counts from
 * when it was due, so a pause of the gateway shows in every check that came due meanwhile. The client runs in a thread
 * of its own.
 */
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { percentile } from './report.ts';

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

/** How long the thread sleeps at most between two looks at its sockets: Node's timers are no finer than 1 ms. */
const NAP_MS = 0.1;
/** After the last check is due, answers are waited for this long. */
const LATEST_ANSWER_MS = 20_000;
const HEAD_END = Buffer.from('\r\n\r\n');

class Connection {
  readonly socket: Socket;
  dueMs = 0;
  #received: Buffer = Buffer.alloc(0);
  readonly #onAnswer: (connection: Connection, answer: string) => void;

  constructor(socket: Socket, onAnswer: (connection: Connection, answer: string) => void) {
    this.socket = socket;
    this.#onAnswer = onAnswer;
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    const head = this.#received.indexOf(HEAD_END);
    if (head === -1) return;
    const length = Number(/content-length: *(\d+)/i.exec(this.#received.toString('latin1', 0, head))?.[1] ?? 0);
    if (this.#received.length < head + HEAD_END.length + length) return;
    const answer = this.#received.toString('utf8');
    this.#received = Buffer.alloc(0);
    this.#onAnswer(this, answer);
  }
}

const opened = (url: URL): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname, () => resolve(socket));
    socket.once('error', reject);
  });

/** Numbers of one run differ from those of the last. */
const firstNumber = (): number => (Date.now() % 1_000_000_000) * 1_000;

/** In the thread that calls it. */
export async function loadHere({
  url: text,
  body,
  rate,
  seconds,
  connections,
  agents = 1,
}: OpenLoad): Promise<OpenWaits> {
  const url = new URL(text);
  const first = firstNumber();
  const waits: number[] = [];
  const idle: Connection[] = [];
  let problem: string | undefined;
  for (let nth = 0; nth < connections; nth += 1) {
    const connection = new Connection(await opened(url), (from, answer) => {
      if (!/^HTTP\/1\.1 200 [^]*_ALLOW"/.test(answer)) problem ??= `a check was answered: ${answer.slice(0, 500)}`;
      waits.push(performance.now() - from.dueMs);
      idle.push(from);
    });
    connection.socket.on('close', () => {
      problem ??= 'the server closed a connection';
    });
    idle.push(connection);
  }
  const all = [...idle];
  let sent = 0;
  const send = (connection: Connection, dueMs: number): void => {
    connection.dueMs = dueMs;
    const content = body.replace('<id>', String(first + sent)).replaceAll('<agent>', String(sent % agents));
    sent += 1;
    connection.socket.write(
      `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`,
    );
  };
  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  const due: number[] = [];
  const cell = new Int32Array(new SharedArrayBuffer(4));
  let dueNext = 0;
  for (let nextMs = startMs; problem === undefined; ) {
    const nowMs = performance.now();
    for (; nextMs <= nowMs && nextMs < endMs; nextMs += (-Math.log(1 - Math.random()) * 1_000) / rate) due.push(nextMs);
    for (; dueNext < due.length && idle.length > 0; dueNext += 1) send(idle.pop()!, due[dueNext]!);
    if (nextMs >= endMs && waits.length === due.length) break;
    if (nowMs > endMs + LATEST_ANSWER_MS) problem = `${due.length - waits.length} checks were not answered`;
    const napMs = Math.min(NAP_MS, nextMs - performance.now());
    if (napMs > 0) Atomics.wait(cell, 0, 0, napMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const tookMs = performance.now() - startMs;
  for (const { socket } of all) socket.removeAllListeners('close').destroy();
  if (problem !== undefined) throw new Error(problem);
  const sorted = Float64Array.from(waits).sort();
  return {
    p50: percentile(sorted, 50),
    p99: percentile(sorted, 99),
    p999: percentile(sorted, 99.9),
    longest: sorted.at(-1) ?? Number.NaN,
    answered: sorted.length,
    perSecond: (sorted.length * 1_000) / tookMs,
  };
}

if (!isMainThread && (workerData as Partial<Start> | null)?.mark === MARK) {
  const { load } = workerData as Start;
  const report: Report = await loadHere(load).then(
    (waits) => ({ waits }),
    (error: Error) => ({ problem: error.message }),
  );
  parentPort?.postMessage(report);
}
