/** A connection to a gateway, and the answers to the checks that are sent over it. */

/** An error is whatever is no decision: a refusal, a cut connection, a log that cannot be written. */
export type Answer = { readonly kind: 'allow' | 'deny' | 'pending' | 'error'; readonly reason: string };

export type Lane = {
  /** How many checks may wait for their answers on it at a time. */
  readonly capacity: number;
  /** Opens the connection, again where it was cut. Each check is answered exactly once, at least with an error. */
  send(nth: number, settle: (answer: Answer) => void): void;
  close(): void;
};

const MAX_REASON = 200;

export const failed = (reason: string): Answer => ({ kind: 'error', reason: reason.slice(0, MAX_REASON) });

/** A gateway that cannot record denies all, which no measurement should take for decisions. */
export const decided = (kind: Exclude<Answer['kind'], 'error'>, reason: string, cause: string): Answer =>
  cause === 'unrecorded' ? failed(reason) : { kind, reason: kind === 'allow' ? '' : reason.slice(0, MAX_REASON) };
