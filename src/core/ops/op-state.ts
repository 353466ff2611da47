/** The life of an operation as a table (docs/spec.md, States and transitions). */
import { assertNever } from '../base/result.ts';

export const OP_STATES = ['pending', 'running', 'paused', 'completing', 'terminated'] as const;
export const OP_TRIGGERS = ['allow', 'pause', 'resume', 'complete', 'terminate'] as const;
export type OpState = (typeof OP_STATES)[number];
export type OpTrigger = (typeof OP_TRIGGERS)[number];
/** The triggers that operators may use. */
export type ControlTrigger = Exclude<OpTrigger, 'allow'>;

/** How many operations are in each state. */
export type OpCounts = Record<OpState, number>;
export const zeroOpCounts = (): OpCounts => ({ pending: 0, running: 0, paused: 0, completing: 0, terminated: 0 });

const NEXT: Readonly<Record<OpState, Readonly<Partial<Record<OpTrigger, OpState>>>>> = {
  pending: { allow: 'running', terminate: 'terminated' },
  running: { pause: 'paused', complete: 'completing', terminate: 'terminated' },
  paused: { resume: 'running', terminate: 'terminated' },
  completing: {},
  terminated: { terminate: 'terminated' }, // Rule 2: terminating twice is no error.
};

/** The state that the trigger leads to, or undefined where the table has no such row (InvalidTransition). */
export const nextState = (from: OpState, trigger: OpTrigger): OpState | undefined => NEXT[from][trigger];

/**
 * Adds to the count of one state. A switch, because each check counts in three places, and to find a member by a name
 * that varies costs several times as much.
 */
export function addToCount(counts: OpCounts, state: OpState, added: number): void {
  switch (state) {
    case 'pending':
      counts.pending += added;
      return;
    case 'running':
      counts.running += added;
      return;
    case 'paused':
      counts.paused += added;
      return;
    case 'completing':
      counts.completing += added;
      return;
    case 'terminated':
      counts.terminated += added;
      return;
    default:
      assertNever(state);
  }
}

/** How a column keeps a state: its place in OP_STATES. */
export const CODE_OF = { pending: 0, running: 1, paused: 2, completing: 3, terminated: 4 } as const satisfies Record<
  OpState,
  number
>;

/** In these states an operation only waits to be swept away. */
export const isFinished = (state: OpState): boolean => state === 'completing' || state === 'terminated';

/**
 * How an operation ended: reported as done or failed, denied (by policy, budget or people, or cancelled), stopped by an
 * operator or by a halt, or never decided, since its approval expired.
 */
export const OP_ENDS = ['completed', 'failed', 'denied', 'terminated', 'halted', 'expired'] as const;
export type OpEnd = (typeof OP_ENDS)[number];

/** How an operation ends by a trigger, unless the caller says otherwise. */
export const END_BY = {
  allow: undefined,
  pause: undefined,
  resume: undefined,
  complete: 'completed',
  terminate: 'terminated',
} as const satisfies Record<OpTrigger, OpEnd | undefined>;
