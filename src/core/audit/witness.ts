/**
 * The state that a witness keeps of another gateway's log, and its verdict on the next statement (docs/audit-log.md).
 */

/** In a cluster: the last entry of another gateway's log, as this one was told. */
export type PeerHead = { readonly gateway: string; readonly id: number; readonly hash: string };

/** The log had this entry at its end, and began there. */
export type WitnessStatement = {
  readonly id: number;
  readonly hash: string;
  /** The first entry that retention has left; undefined where that could not be read. */
  readonly first_id?: number | undefined;
  readonly timestamp: string;
  /** Only in a cluster: whose log it is, and the ends of the others' logs. */
  readonly gateway?: string | undefined;
  readonly peers?: readonly PeerHead[] | undefined;
  readonly signature: string;
};

/** Statements of one credential about one log. */
export type Witnessed = {
  /** The furthest entry that does not contradict what was stated before it. */
  readonly furthest?: WitnessStatement | undefined;
  /** The last statement that was refused: a repetition gets the same answer, and nothing is recorded again. */
  readonly refused?: WitnessStatement | undefined;
};

export type Verdict =
  /** Nothing like it was stated before. */
  | { readonly kind: 'new' }
  | { readonly kind: 'known' }
  /** No log that only grows can have both; `isKnown`: it was stated, and refused, just before. */
  | { readonly kind: 'contradiction'; readonly detail: string; readonly isKnown: boolean };

/** A log only grows: what was once its last entry stays where it is, as it is. */
export function judgeStatement({ furthest, refused }: Witnessed, next: WitnessStatement): Verdict {
  if (furthest === undefined || next.id > furthest.id) return { kind: 'new' };
  const contradiction = (detail: string): Verdict => ({
    kind: 'contradiction',
    detail,
    isKnown: refused !== undefined && isSame(refused, next),
  });
  if (next.id < furthest.id)
    return contradiction(
      `the log had entry ${furthest.id} at ${furthest.timestamp}, and is now said to end at ${next.id}: it was cut or restored, or this is another log`,
    );
  if (next.hash !== furthest.hash)
    return contradiction(
      `entry ${next.id} had another hash at ${furthest.timestamp}: the log was rewritten, or this is another log`,
    );
  return isSame(furthest, next) ? { kind: 'known' } : { kind: 'new' };
}

/** Updates the witness's state with this statement. */
export const afterStatement = (witnessed: Witnessed, next: WitnessStatement): Witnessed =>
  judgeStatement(witnessed, next).kind === 'contradiction'
    ? { ...witnessed, refused: next }
    : { ...witnessed, furthest: next };

/** A checkpoint may be stated once more: where the log begins has changed since. */
const isSame = (one: WitnessStatement, other: WitnessStatement): boolean =>
  one.id === other.id && one.hash === other.hash && one.first_id === other.first_id;
