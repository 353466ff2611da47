/** An operation as this page knows it, and the words for it. */
import type { OpRecord } from '../base/api-types.ts';

export type OpState = OpRecord['state'];
export type OpEnd = NonNullable<OpRecord['ended']>;
export type OpWord = 'pending' | 'running' | 'paused' | OpEnd;
export type Action = 'pause' | 'resume' | 'terminate';

export type Op = {
  /** Its own among all operations: two orgs may use the same id, and two gateways of a cluster. */
  readonly key: string;
  readonly opId: string;
  /** Which gateway of a cluster it lives at; undefined: there is only one. */
  readonly home: string | undefined;
  readonly orgId: string | null;
  readonly teamId: string;
  readonly agentId: string;
  readonly registeredAtMs: number;
  /** The name of its agent, as `acme/search/crawler/`. */
  readonly path: string;
  state: OpState;
  ended: OpEnd | null;
  /** '' where it was registered without a check. */
  action: string;
  resource: string;
  policy: string;
  ruleId: string;
  /** Why it runs or waits, or what went wrong. */
  reason: string;
  spentUsd: number;
  approvalId: string | null;
  updatedAt: string;
  /** When it came into this state. */
  sinceMs: number;
  /** The operator's request that the gateway has not confirmed yet. */
  asked: Action | undefined;
  /** The text that a search looks at. */
  text: string;
};

/** Actions that each state permits (docs/spec.md, States and transitions). */
export const ACTIONS: Readonly<Record<OpState, readonly Action[]>> = {
  pending: ['terminate'],
  running: ['pause', 'terminate'],
  paused: ['resume', 'terminate'],
  completing: [],
  terminated: [],
};

export const VERB: Readonly<Record<Action, string>> = { pause: 'Pause', resume: 'Resume', terminate: 'Terminate' };

const LEADS_TO: Readonly<Record<Action, OpWord>> = { pause: 'paused', resume: 'running', terminate: 'terminated' };

/** The words for states that people read, in the order of a life. */
export const WORDS: readonly OpWord[] = [
  'pending',
  'running',
  'paused',
  'completed',
  'failed',
  'denied',
  'terminated',
  'halted',
  'expired',
];

export const isFinished = (state: OpState): boolean => state === 'completing' || state === 'terminated';

/** How it ended, else its state. */
export const wordOf = ({ state, ended }: Pick<Op, 'state' | 'ended'>): OpWord =>
  ended ?? (state === 'completing' ? 'completed' : state);

/** The word for it, or for what was asked for. */
export const shownWord = (op: Op): OpWord => (op.asked === undefined ? wordOf(op) : LEADS_TO[op.asked]);

/** Whether it may be asked for now. */
export const mayBe = (op: Op, action: Action): boolean => op.asked === undefined && ACTIONS[op.state].includes(action);

export const agentOf = ({ orgId, teamId, agentId }: Pick<Op, 'orgId' | 'teamId' | 'agentId'>) => ({
  org_id: orgId,
  team_id: teamId,
  agent_id: agentId,
});
