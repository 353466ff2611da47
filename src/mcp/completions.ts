/** Ends of operations, reported beside what goes on, and again until the gateway can be asked. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Gateway, OpName, Outcome } from './gateway.ts';

const REPORT_AFTER_MS = 5;
const RETRY_MS = [250, 1_000, 2_000, 5_000, 10_000, 20_000];
const PAUSED_MS = 2_000;
/** An outage must not fill the memory; what is dropped ends with the reservation of its operation. */
const MAX_PENDING = 1_000;

export class Completions {
  readonly #gateway: Gateway;
  readonly #pending = new Set<Promise<void>>();
  readonly #log: (line: string) => void;

  constructor(gateway: Gateway, log: (line: string) => void) {
    this.#gateway = gateway;
    this.#log = log;
  }

  report(op: OpName, outcome: Outcome): void {
    if (this.#pending.size >= MAX_PENDING) return this.#log(dropped(op, 'too many are waiting'));
    const reported = this.#report(op, outcome).finally(() => this.#pending.delete(reported));
    this.#pending.add(reported);
  }

  /** Waits for those that are under way, at most this long. */
  async idleWithin(ms: number): Promise<void> {
    await Promise.race([Promise.all(this.#pending), sleep(ms, undefined, { ref: false })]);
  }

  async #report(op: OpName, outcome: Outcome): Promise<void> {
    // The answer that it is about leaves first, and the next call, which often follows at once.
    await sleep(REPORT_AFTER_MS);
    for (let lost = 0; lost < RETRY_MS.length; ) {
      const completion = await this.#gateway.complete(op, outcome);
      if (completion.kind === 'done' || completion.kind === 'over') return;
      // A pause that came after the result ends when an operator ends it.
      if (completion.kind === 'lost') lost += 1;
      await sleep(completion.kind === 'paused' ? PAUSED_MS : RETRY_MS[lost - 1], undefined, { ref: false });
    }
    this.#log(dropped(op, 'the gateway did not take it'));
  }
}

const dropped = ({ traceId, spanId }: OpName, why: string): string =>
  `the end of operation ${traceId}:${spanId} is not reported: ${why}`;
