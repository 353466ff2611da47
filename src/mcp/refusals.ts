/**
 * Requests that are refused here, before the gateway is asked whether they may be: it hears of them for its audit log,
 * beside what goes on and not faster than a log can use.
 */
import { setTimeout as sleep } from 'node:timers/promises';

/** As far as it is legible what was asked; '' for what is not. */
export type Refused = { readonly action: string; readonly resource: string };

const MAX_AT_ONCE = 4;
/** As many in a row, then one for each of these times. The number of those in between is recorded. */
const BURST = 20;
const REFILL_MS = 1_000;
const REPORT_AFTER_MS = 5;
/** The gateway shows less. */
const MAX_CHARACTERS = 16 * 1024;

export type RefusalOptions = {
  /** Resolves with why it is not on record, if it is not. */
  readonly record: (refused: Refused, reason: string) => Promise<string | undefined>;
  readonly log: (line: string) => void;
  readonly now?: () => number;
};

export class Refusals {
  readonly #record: RefusalOptions['record'];
  readonly #log: RefusalOptions['log'];
  readonly #now: () => number;
  readonly #pending = new Set<Promise<void>>();
  #allowance = BURST;
  #filledAtMs: number;
  /** Refusals that have not been recorded since: how many, and the last. */
  #skipped = 0;
  #last: { readonly refused: Refused; readonly reason: string } | undefined;

  constructor({ record, log, now = () => performance.now() }: RefusalOptions) {
    this.#record = record;
    this.#log = log;
    this.#now = now;
    this.#filledAtMs = now();
  }

  report(refused: Refused, reason: string): void {
    if (this.#takePermit()) return this.#send(refused, reason);
    this.#skipped += 1;
    this.#last = { refused, reason };
  }

  /** Waits for those that are under way, at most this long, after one for all that were skipped. */
  async closeWithin(ms: number): Promise<void> {
    if (this.#last !== undefined) {
      this.#skipped -= 1;
      this.#send(this.#last.refused, this.#last.reason);
    }
    await Promise.race([Promise.all(this.#pending), sleep(ms, undefined, { ref: false })]);
  }

  #takePermit(): boolean {
    const nowMs = this.#now();
    this.#allowance = Math.min(BURST, this.#allowance + (nowMs - this.#filledAtMs) / REFILL_MS);
    this.#filledAtMs = nowMs;
    if (this.#allowance < 1 || this.#pending.size >= MAX_AT_ONCE) return false;
    this.#allowance -= 1;
    return true;
  }

  #send({ action, resource }: Refused, reason: string): void {
    const others = this.#skipped === 0 ? '' : ` (and others before it that are not on record: ${this.#skipped})`;
    this.#skipped = 0;
    this.#last = undefined;
    const sent = this.#report({ action, resource: resource.slice(0, MAX_CHARACTERS) }, reason + others);
    this.#pending.add(sent);
    void sent.then(() => this.#pending.delete(sent));
  }

  async #report(refused: Refused, reason: string): Promise<void> {
    // The answer that it is about leaves first.
    await sleep(REPORT_AFTER_MS);
    const problem = await this.#record(refused, reason);
    if (problem !== undefined) this.#log(`a refused ${refused.action} is not on record at the gateway: ${problem}`);
  }
}
