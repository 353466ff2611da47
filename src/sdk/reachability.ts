/** Whether the gateway can be reached, as far as the latest calls tell, and for how long it could not. */
export class Reachability {
  readonly #outageMs: number;
  readonly #onBack: () => void;
  readonly #onLost = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #state: 'up' | 'failing' | 'lost' = 'up';

  /** The gateway counts as lost when it could not be reached for `outageMs`. `onBack` is called when it is reached again. */
  constructor(outageMs: number, onBack: () => void) {
    this.#outageMs = outageMs;
    this.#onBack = onBack;
  }

  get isLost(): boolean { return this.#state === 'lost'; }

  succeeded(): void {
    if (this.#state === 'up') return;
    this.#state = 'up';
    clearTimeout(this.#timer);
    this.#onBack();
  }

  failed(): void {
    if (this.#state !== 'up') return;
    if (this.#outageMs === 0) return this.#lose();
    this.#state = 'failing';
    this.#timer = setTimeout(() => this.#lose(), this.#outageMs);
    this.#timer.unref();
  }

  /** Calls back once, when the gateway is lost; immediately when it is lost already. Returns a function that cancels it. */
  whenLost(callback: () => void): () => void {
    if (this.isLost) {
      callback();
      return () => {};
    }
    this.#onLost.add(callback);
    return () => this.#onLost.delete(callback);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#onLost.clear();
  }

  #lose(): void {
    this.#state = 'lost';
    for (const callback of this.#onLost) callback();
    this.#onLost.clear();
  }
}
