/** Tracks outages of the database: logs once when one begins, why it continues, and when it is over. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TroubleLog } from '../../system/log.ts';

const LOOK_PAUSE_MS = 1000;
/**
 * An outage is over once nothing has failed for this long: before that it may affect only some connections, or only
 * writes.
 */
const SETTLED_MS = 5000;
const SHUT_OUT = 'the database refuses to let the gateway in';

type OutageOptions = {
  readonly log: TroubleLog;
  /** Whether the database answers now; `lost` is called with the reason why not. */
  readonly probe: () => Promise<boolean>;
  /** Once true, nothing more is logged. */
  readonly isClosing: () => boolean;
};

export class Outage {
  readonly #options: OutageOptions;
  /** Whether an outage was logged and has not been logged as over. */
  #isOn = false;
  #failedAtMs = 0;
  #trouble: string | undefined;
  #isShut = false;

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** The message of the last failure. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Call it with every failure caused by the database. `isShut`: it answers but accepts no logins. */
  lost({ message }: Error, isShut = false): void {
    this.#trouble = message;
    this.#isShut = isShut;
    this.#failedAtMs = performance.now();
    const { log, isClosing } = this.#options;
    if (this.#isOn || isClosing()) return;
    this.#isOn = true;
    log.warn(isShut ? SHUT_OUT : 'the database does not respond', { cause: message });
    void this.#watch();
  }

  async #watch(): Promise<void> {
    const { log, probe, isClosing } = this.#options;
    const beganMs = performance.now();
    const reported = new Set([this.#trouble]);
    for (let answers = false; !answers || performance.now() - this.#failedAtMs < SETTLED_MS; ) {
      await sleep(LOOK_PAUSE_MS, undefined, { ref: false });
      if (isClosing()) return;
      answers = await probe();
      // The cause that ends connections often differs from the one that prevents new ones: a changed password, or a
      // standby that took over.
      if (answers || reported.has(this.#trouble) || performance.now() - beganMs < SETTLED_MS) continue;
      reported.add(this.#trouble);
      log.warn(this.#isShut ? SHUT_OUT : 'the database still does not respond', { cause: this.#trouble });
    }
    this.#isOn = false;
    log.info('the database responds again');
  }
}
