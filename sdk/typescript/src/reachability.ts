/** Whether the gateway can be reached, judging by the latest calls, and for how long it could not. */
import { EventEmitter } from 'node:events';

type ReachabilityEvents = {
  lost: [];
  /** A call got through, whether or not the gateway was lost before. */
  back: [];
};

export class Reachability extends EventEmitter<ReachabilityEvents> {
  readonly #outageMs: number;
  #timer: NodeJS.Timeout | undefined;
  #state: 'up' | 'failing' | 'lost' = 'up';

  /** The gateway counts as lost when it could not be reached for `outageMs`. */
  constructor(outageMs: number) {
    super();
    this.#outageMs = outageMs;
  }

  get isLost(): boolean {
    return this.#state === 'lost';
  }

  succeeded(): void {
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
    this.#timer.unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #giveUp(): void {
    this.#state = 'lost';
    this.emit('lost');
  }
}
