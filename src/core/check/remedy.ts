/** Alternatives to a denied action. Rules bring their own; the gateway adds the rest. */
import { rfc3339 } from '../base/time.ts';
import type { Exceeded } from '../budget/envelope.ts';
import type { Halt } from '../halts/halt.ts';

export const remedyOfBudget = ({ tier, period, doubt }: Exceeded, resetsAtMs: number): string | undefined =>
  doubt === undefined
    ? `wait until ${rfc3339(resetsAtMs)}, when the ${period} budget of the ${tier} tier resets, or ask a person to raise it`
    : undefined;

export const remedyOfHalt = ({ id, expiresAtMs }: Halt): string =>
  expiresAtMs === undefined
    ? `stop, and ask a person to release halt ${id}; no rule overrides it`
    : `stop until ${rfc3339(expiresAtMs)}, when halt ${id} expires, or ask a person to release it before`;

/** For doors whose only room is a text. */
export const reasonWithRemedy = (reason: string, remedy: string | undefined): string =>
  remedy === undefined ? reason : `${reason}. Instead: ${remedy}`;
