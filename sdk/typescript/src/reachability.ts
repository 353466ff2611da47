/** Whether the gateway can be reached, judging by the latest calls, and for how long it could not. */
import { Events } from './events.ts';

/** `reached`: for the first time. `back`: a call got through after others did not, even if it never counted as lost. */
type ReachabilityEvent = 'reached' | 'lost' | 'back';

export class Reachability extends Events<ReachabilityEvent> {
  readonly #outageMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #state: 'up' | 'failing' | 'lost' = 'up';
  #hasSucceeded = false;

  /** The gateway counts as lost when it could not be reached for `outageMs`. */
  constructor(outageMs: number) {
    super();
    this.#outageMs = outageMs;
  }

  get isLost(): boolean {
    return this.#state === 'lost';
  }

  succeeded(): void {
    if (!this.#hasSucceeded) {
      this.#hasSucceeded = true;
      this.emit('reached');
    }
    if (this.#state === 'up') return;
    this.#state = 'up';
    clearTimeout(this.#timer);
    this.emit('back');
  }

  failed(): void {
    if (this.#state !== 'up') return;
    if (this.#outageMs === 0) return this.#giveUp();
    this.#state = 'failing';
    this.#timer = setTimeout(() => this.#giveUp(), this.#outageMs);
    // Elsewhere than in Node.js a timer is a number, and holds nothing.
    (this.#timer as { unref?(): void }).unref?.();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #giveUp(): void {
    this.#state = 'lost';
    this.emit('lost');
  }
}
