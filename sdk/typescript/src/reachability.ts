/** Whether the gateway can be reached, judging by the latest calls, and for how long it could not. */
export type ReachabilityHooks = {
  readonly onLost: () => void;
  /** A call got through, whether or not the gateway was lost before. */
  readonly onBack: () => void;
};

export class Reachability {
  readonly #outageMs: number;
  readonly #hooks: ReachabilityHooks;
  #timer: NodeJS.Timeout | undefined;
  #state: 'up' | 'failing' | 'lost' = 'up';

  /** The gateway counts as lost when it could not be reached for `outageMs`. */
  constructor(outageMs: number, hooks: ReachabilityHooks) {
    this.#outageMs = outageMs;
    this.#hooks = hooks;
  }

  get isLost(): boolean {
    return this.#state === 'lost';
  }

  succeeded(): void {
    if (this.#state === 'up') return;
    this.#state = 'up';
    clearTimeout(this.#timer);
    this.#hooks.onBack();
  }

  failed(): void {
    if (this.#state !== 'up') return;
    if (this.#outageMs === 0) return this.#lose();
    this.#state = 'failing';
    this.#timer = setTimeout(() => this.#lose(), this.#outageMs);
    this.#timer.unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #lose(): void {
    this.#state = 'lost';
    this.#hooks.onLost();
  }
}
