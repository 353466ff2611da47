/**
 * An open-loop client: checks arrive at random, as those of many agents that know nothing of each other do (Poisson).
 * A check that finds no connection free waits in the queue of the client, and time counts from when it was due, so a
 * pause of the gateway shows in every check that came due meanwhile.
 */
import { Fifo } from './fifo.ts';
import type { Lane } from './lane.ts';
import { Measurements, type Results, type Second } from './measurements.ts';

export type OpenLoop = {
  readonly lanes: readonly Lane[];
  /** Checks a second. */
  readonly rate: number;
  readonly seconds: number;
  /** Ends the load early: nothing is due any more, and little is waited for. */
  readonly signal?: AbortSignal;
  readonly onSecond?: (second: Second, elapsedSecs: number) => void;
};

export type Measured = Results & {
  /** Numbered from 0. */
  readonly sent: number;
  /** Until the last check was due. */
  readonly durationSecs: number;
  /** Answered each second, until the last answer. */
  readonly perSecond: number;
  /** Checks that were due and not sent by the end of the load. */
  readonly unsent: number;
  readonly client: {
    /** From 0 to 1: of the time, how much its thread worked. */
    readonly busy: number;
    /** How much later than due it came to nearly every check, in milliseconds. */
    readonly lateP99Ms: number;
  };
};

/** How long the thread sleeps at most between two looks at its sockets: Node's timers are no finer than 1 ms. */
const NAP_MS = 0.1;
/** After the last check is due, answers are waited for this long. */
const LATEST_ANSWER_MS = 20_000;
const LATEST_ANSWER_AFTER_ABORT_MS = 1_000;

const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export async function loadOpenly(load: OpenLoop): Promise<Measured> {
  const { lanes, rate, seconds, signal, onSecond } = load;
  const measured = new Measurements();
  const due = new Fifo<number>();
  const idle = slotsOf(lanes);
  /** When each check that was sent and has no answer was due. */
  const sent = new Map<number, number>();
  let nth = 0;
  const send = (lane: Lane, dueMs: number): void => {
    const number = nth;
    nth += 1;
    sent.set(number, dueMs);
    lane.send(number, (answer) => {
      if (!sent.delete(number)) return; // too late
      measured.answer(answer, performance.now() - dueMs);
      idle.add(lane);
    });
  };
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const startMs = performance.now();
  let endMs = startMs + seconds * 1_000;
  let giveUpMs = endMs + LATEST_ANSWER_MS;
  let nextSecondMs = startMs + 1_000;
  let nappedMs = 0;
  let unsent: number | undefined;
  for (let nextMs = startMs; ; ) {
    const nowMs = performance.now();
    if (signal?.aborted === true && nowMs < endMs) {
      endMs = nowMs;
      giveUpMs = nowMs + LATEST_ANSWER_AFTER_ABORT_MS;
    }
    for (; nextMs <= nowMs && nextMs < endMs; nextMs += (-Math.log(1 - Math.random()) * 1_000) / rate) {
      due.add(nextMs);
      measured.due(nowMs - nextMs);
    }
    while (due.length > 0 && idle.length > 0) send(idle.take()!, due.take()!);
    for (; nextSecondMs <= nowMs; nextSecondMs += 1_000)
      onSecond?.(measured.closeSecond(), Math.round((nextSecondMs - startMs) / 1_000));
    if (nextMs >= endMs || nowMs >= endMs) {
      unsent ??= due.length;
      if ((due.length === 0 && sent.size === 0) || nowMs > giveUpMs) break;
    }
    const napMs = nextMs >= endMs ? NAP_MS : Math.min(NAP_MS, nextMs - performance.now());
    if (napMs > 0) {
      const asleepMs = performance.now();
      Atomics.wait(cell, 0, 0, napMs);
      nappedMs += performance.now() - asleepMs;
    }
    await turnOfLoop();
  }
  const stoppedMs = performance.now();
  for (const dueMs of sent.values()) measured.unanswered(stoppedMs - dueMs);
  for (let dueMs = due.take(); dueMs !== undefined; dueMs = due.take()) measured.unanswered(stoppedMs - dueMs);
  sent.clear();
  // The rest of a second, in which only the last answers came, would look like a fall of the rate.
  if (seconds < 1 || stoppedMs > nextSecondMs - 500) measured.closeSecond();
  const results = measured.results();
  return {
    ...results,
    sent: nth,
    durationSecs: (endMs - startMs) / 1_000,
    perSecond: (results.answered * 1_000) / (stoppedMs - startMs),
    unsent: unsent ?? 0,
    client: { busy: 1 - nappedMs / (stoppedMs - startMs), lateP99Ms: measured.lateP99Ms },
  };
}

/** Each lane as often as checks may wait on it, in turn, so that the first ones do not take all. */
function slotsOf(lanes: readonly Lane[]): Fifo<Lane> {
  const slots = new Fifo<Lane>();
  const most = Math.max(...lanes.map(({ capacity }) => capacity));
  for (let nth = 0; nth < most; nth += 1) for (const lane of lanes) if (nth < lane.capacity) slots.add(lane);
  return slots;
}
