/** An operation while its body runs: the operators' signals, and the points at which the body obeys them. */
import { OpTerminatedError } from './errors.ts';
import type { CheckAnswer, JsonObject, OpState, OwnUsage, Signal, UsageAnswer } from './types.ts';

/** The operation whose body is running: the argument of the body of `run`. */
export type Op = {
  /** `<trace_id>:<span_id>`. */
  readonly opId: string;
  /** The first half of `opId`: that of the surrounding operation, where there is one. */
  readonly traceId: string;
  /** The second half of `opId`. */
  readonly spanId: string;
  /** The gateway's answer that let it run. */
  readonly answer: CheckAnswer;
  /**
   * The attributes of the action as the obligations of the answer change them: act on these. Undefined where the action
   * has none.
   */
  readonly attributes: JsonObject | undefined;
  /** The state according to the signals that have arrived so far. */
  readonly state: OpState;
  /**
   * Aborted with an OpTerminatedError when this operation or an outer one is terminated, with the reason of the signal
   * given to `run` when that is aborted, and with a ClientClosedError when the client is closed and stops waiting.
   */
  readonly signal: AbortSignal;
  /**
   * Yields to operators: resolves at once while the operation is running, waits while it or an outer one is paused, and
   * rejects with the reason of `signal` when that is aborted. Call it wherever the body can stop.
   */
  checkpoint(): Promise<void>;
  /**
   * Records what the operation has spent, 0 to 1,000,000 US dollars or the tokens of a model; every call adds to it.
   * Rejects as `recordUsage` of the client.
   *
   *     const { status } = await op.recordUsage(0.002); // 'limit_exceeded': spending is over a budget
   *     await op.recordUsage({ model: 'gpt-5', inputTokens: 1200, outputTokens: 80 });
   */
  recordUsage(spent: number | OwnUsage): Promise<UsageAnswer>;
};

type RecordUsage = (spent: number | OwnUsage, opId: string) => Promise<UsageAnswer>;

export class RunningOp implements Op {
  readonly opId: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: RunningOp | undefined;
  readonly #recordUsage: RecordUsage;
  readonly #abort = new AbortController();
  readonly #children = new Set<RunningOp>();
  /** Checkpoints, of this operation and of inner ones, that wait until the state changes. */
  readonly #waiting = new Set<() => void>();
  #state: OpState = 'pending';
  #answer: CheckAnswer | undefined;
  #attributes: JsonObject | undefined;
  /** Acknowledges the pause; undefined when it is acknowledged, or there is none. */
  #onYield: (() => void) | undefined;

  constructor(traceId: string, spanId: string, parent: RunningOp | undefined, recordUsage: RecordUsage) {
    this.opId = `${traceId}:${spanId}`;
    this.traceId = traceId;
    this.spanId = spanId;
    this.parent = parent;
    this.#recordUsage = recordUsage;
  }

  get state(): OpState {
    return this.#state;
  }
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get answer(): CheckAnswer {
    if (this.#answer === undefined) throw new Error('broken invariant: the body of an operation runs after its answer');
    return this.#answer;
  }

  get attributes(): JsonObject | undefined {
    return this.#attributes;
  }

  /** The check has allowed it. An earlier signal remains in force. */
  begin(answer: CheckAnswer, attributes: JsonObject | undefined): void {
    this.#answer = answer;
    this.#attributes = attributes;
    if (this.#state === 'pending') this.#state = 'running';
    if (this.parent === undefined) return;
    this.parent.#children.add(this);
    if (this.parent.signal.aborted) this.abort(this.parent.signal.reason);
  }

  /** Call it when the body has returned or thrown. */
  end(): void {
    if (this.parent !== undefined) this.parent.#children.delete(this);
  }

  /**
   * Applies a signal; idempotent. `onObeyed` is called once the signal has taken effect: for a pause, when the body
   * waits at a checkpoint.
   */
  obey(signal: Signal, onObeyed: () => void): void {
    if (this.#state === 'terminated' || this.#state === 'completing') return onObeyed();
    this.#onYield = undefined;
    switch (signal) {
      case 'pause':
        this.#state = 'paused';
        if (this.#waiting.size > 0) onObeyed();
        else this.#onYield = onObeyed;
        return;
      case 'resume':
        this.#state = 'running';
        this.#wake();
        return onObeyed();
      case 'terminate':
        this.terminate(`operation ${this.opId} was terminated by an operator`);
        return onObeyed();
    }
  }

  terminate(because: string): void {
    this.#state = 'terminated';
    this.abort(new OpTerminatedError(this.opId, because));
  }

  /**
   * Ends the wait at every checkpoint with the reason, which also becomes that of the AbortSignal; likewise for
   * operations within.
   */
  abort(reason: unknown): void {
    this.#abort.abort(reason);
    this.#wake();
    for (const child of this.#children) child.abort(reason);
  }

  complete(): void {
    this.#state = 'completing';
  }

  async checkpoint(): Promise<void> {
    for (;;) {
      this.signal.throwIfAborted();
      const paused = this.#pausedAround();
      if (paused === undefined) return;
      await paused.#change(this);
    }
  }

  /**
   * Resolves when the paused operation is resumed or aborted. As at a checkpoint, the body is not running meanwhile.
   */
  pauseOver(): Promise<void> {
    return this.#change(this);
  }

  recordUsage(spent: number | OwnUsage): Promise<UsageAnswer> {
    return this.#recordUsage(spent, this.opId);
  }

  #pausedAround(): RunningOp | undefined {
    if (this.#state === 'paused') return this;
    return this.parent === undefined ? undefined : this.parent.#pausedAround();
  }

  /** The pause is over, or the one that waits for it is aborted. */
  async #change(waiter: RunningOp): Promise<void> {
    const change = new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        waiter.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      waiter.#waiting.add(wake);
    });
    this.#onYield?.();
    this.#onYield = undefined;
    await change;
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
