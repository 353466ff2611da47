/** The live table of `svc ops watch`: what it shows, and what keys do to it. */
import type { Key } from '../terminal/keys.ts';
import { bold, dim, green, red, yellow } from '../terminal/output.ts';
import { type Column, cellText, type Row, tableLines } from '../terminal/table.ts';
import { clipped, widthOf } from '../terminal/width.ts';
import { agentText } from './listing.ts';
import { shortIds } from './op-name.ts';
import { stateText } from './ops.ts';

export type WatchedOp = {
  /** With its org: two orgs may use the same id. */
  readonly key: string;
  readonly opId: string;
  /** As people read it. */
  readonly state: string;
  readonly action: string;
  readonly resource: string;
  readonly updatedAt: string;
  readonly agent: string;
  readonly orgId: string;
  /** The gateway of a cluster that has it. */
  readonly home: string | undefined;
  readonly seenMs: number;
};

export const isLagged = (frame: Row): boolean => frame.event_type === 'lagged';

export function opIn({ payload, agent_id, org_id }: Row, nowMs: number): WatchedOp | undefined {
  const {
    op_id: opId,
    state,
    updated_at: updatedAt,
    team_id,
    action,
    resource,
    ended,
    op_home: home,
  } = (payload ?? {}) as Row;
  if (typeof opId !== 'string' || typeof state !== 'string') return undefined;
  return {
    key: `${String(org_id ?? '')}/${opId}`,
    opId,
    state: stateText({ state, ended }),
    action: typeof action === 'string' ? action : '',
    resource: typeof resource === 'string' ? resource : '',
    updatedAt: typeof updatedAt === 'string' ? updatedAt : '',
    agent: agentText({ org_id, team_id, agent_id }) ?? '',
    orgId: String(org_id ?? ''),
    home: typeof home === 'string' ? home : undefined,
    seenMs: nowMs,
  };
}

export const lineOf = (frame: Row): string => {
  const op = opIn(frame, 0);
  if (op === undefined) return cellText(frame);
  return [op.updatedAt, op.opId, op.state, op.agent, op.action, op.resource].map(cellText).join('  ');
};

// As wide as the longest state, so that the columns do not move.
const STATE: Column = { title: 'STATE     ', cell: 'state', isWhole: true };
const UPDATED: Column = { title: 'UPDATED', cell: ({ updatedAt }) => String(updatedAt).slice(11, 19) };
/** From here on there is room for the time beside what an operation is. */
const WIDE_COLUMNS = 100;

/** `running`, and the gap before it; of longer ones enough to be told apart. */
const LEAST_STATE = 9;

/** If ids leave no room for the state, it comes first: it is what people watch. */
function columnsFor(shown: readonly WatchedOp[], columns: number, selected: string | undefined): readonly Column[] {
  const short = shortIds(shown.map(({ opId }) => opId));
  const operation: Column = { title: 'OPERATION', cell: ({ opId }) => short.get(String(opId)), isWhole: true };
  const widest = Math.max(0, ...[...short.values()].map(widthOf));
  if (widest + LEAST_STATE > columns) return [STATE, operation];
  const mark: Column = { title: ' ', cell: ({ key }) => (key === selected ? '>' : ' '), isWhole: true };
  return [
    ...(selected === undefined ? [] : [mark]),
    operation,
    STATE,
    { title: 'AGENT', cell: 'agent' },
    { title: 'ACTION', cell: 'action', isSpare: true },
    { title: 'RESOURCE', cell: 'resource', isSpare: true },
    ...(columns >= WIDE_COLUMNS ? [UPDATED] : []),
  ];
}

export type Verb = 'pause' | 'resume' | 'terminate';

type Step =
  | { readonly kind: 'watching' }
  | { readonly kind: 'filtering'; readonly before: string }
  | { readonly kind: 'confirming'; readonly op: WatchedOp }
  | { readonly kind: 'help' };

export type Watched = {
  /** The newest change first. */
  readonly ops: readonly WatchedOp[];
  /** The key of an operation: it stays selected, whatever changes around it. Undefined until somebody selects one. */
  readonly selected: string | undefined;
  readonly filter: string;
  readonly step: Step;
  readonly message: string;
};

export const nothingWatched: Watched = {
  ops: [],
  selected: undefined,
  filter: '',
  step: { kind: 'watching' },
  message: '',
};

export type Pressed = {
  readonly state: Watched;
  readonly leaves?: boolean;
  readonly orders?: { readonly verb: Verb; readonly op: WatchedOp };
};

/** Whether the filter, in small letters or capitals, is part of what the row says. */
export const isShown = ({ opId, agent, action, resource, state }: WatchedOp, filter: string): boolean =>
  `${opId} ${agent} ${action} ${resource} ${state}`.toLowerCase().includes(filter.toLowerCase());

export const withOps = (state: Watched, ops: readonly WatchedOp[]): Watched => ({
  ...state,
  ops,
  selected: ops.some(({ key }) => key === state.selected) ? state.selected : undefined,
});

/** Nothing happens to an operation that nobody has selected: the rows move while somebody reads them. */
export function press(state: Watched, key: Key): Pressed {
  if (key.name === 'interrupt') return { state, leaves: true };
  const { step } = state;
  switch (step.kind) {
    case 'watching':
      return watching({ ...state, message: '' }, key);
    case 'filtering':
      return { state: filtering(state, step.before, key) };
    case 'confirming': {
      const isMeant = key.name === 'text' && key.text === 'y';
      const left: Watched = { ...state, step: { kind: 'watching' }, message: isMeant ? '' : 'Left running.' };
      return isMeant ? { state: left, orders: { verb: 'terminate', op: step.op } } : { state: left };
    }
    case 'help':
      return { state: { ...state, step: { kind: 'watching' } } };
  }
}

const VERBS: Readonly<Record<string, Verb>> = { p: 'pause', r: 'resume', t: 'terminate' };

function watching(state: Watched, key: Key): Pressed {
  const word = key.name === 'text' ? key.text : key.name;
  switch (word) {
    case 'down':
    case 'j':
      return { state: moved(state, 1) };
    case 'up':
    case 'k':
      return { state: moved(state, -1) };
    case 'q':
      return { state, leaves: true };
    case '?':
      return { state: { ...state, step: { kind: 'help' } } };
    case '/':
      return { state: { ...state, step: { kind: 'filtering', before: state.filter } } };
    case 'escape':
      return { state: { ...state, selected: undefined, filter: '' } };
  }
  const verb = VERBS[word];
  if (verb === undefined) return { state };
  const op = state.ops.find((each) => each.key === state.selected);
  if (op === undefined) return { state: { ...state, message: 'Choose an operation first, with the arrow keys.' } };
  return verb === 'terminate'
    ? { state: { ...state, step: { kind: 'confirming', op } } }
    : { state, orders: { verb, op } };
}

/** The first key marks the first row. */
function moved(state: Watched, by: 1 | -1): Watched {
  const at = state.ops.findIndex(({ key }) => key === state.selected);
  const to = at === -1 ? 0 : Math.min(Math.max(at + by, 0), state.ops.length - 1);
  return { ...state, selected: state.ops[to]?.key };
}

function filtering(state: Watched, before: string, key: Key): Watched {
  switch (key.name) {
    case 'text':
      return { ...state, filter: state.filter + key.text };
    case 'backspace':
      return { ...state, filter: [...state.filter].slice(0, -1).join('') };
    case 'clear':
      return { ...state, filter: '' };
    case 'enter':
      return { ...state, step: { kind: 'watching' } };
    case 'escape':
      return { ...state, filter: before, step: { kind: 'watching' } };
    default:
      return state;
  }
}

const HELP = [
  'Up, Down, k, j   select an operation',
  'p, r             pause it, resume it',
  't                terminate it, after a question',
  '/                show only rows with this text; Esc shows all again',
  'q, Ctrl-C        leave',
];

const PAINT: Readonly<Record<string, (line: string) => string>> = {
  running: green,
  paused: yellow,
  pending: bold,
  completed: dim,
  failed: red,
  denied: red,
  terminated: red,
  halted: red,
  expired: red,
};

export type View = {
  readonly label: string;
  readonly lost: string | undefined;
  readonly hasLetGo: boolean;
  /** Standard input is a keyboard. */
  readonly hasKeys: boolean;
};
type ScreenSize = { readonly rows: number; readonly columns: number };

/** At most as many lines as there are rows; the selected operation is always among them. */
export function pictureOf(state: Watched, view: View, { rows, columns }: ScreenSize): readonly string[] {
  const { ops, selected, step } = state;
  const counts = Object.keys(PAINT).flatMap((each) => {
    const count = ops.filter((op) => op.state === each).length;
    return count === 0 ? [] : [`${count} ${each}`];
  });
  const room = Math.max(0, rows - 3);
  const from = Math.max(0, ops.findIndex(({ key }) => key === selected) - room + 1);
  const shown = ops.slice(from, from + room);
  const [heading = '', ...lines] = tableLines(columnsFor(shown, columns, selected), shown, columns);
  return [
    bold(
      clipped(
        `${cellText(view.label)}: ${counts.length === 0 ? 'no operations in flight' : counts.join(', ')}${view.hasLetGo ? ' (older ones not counted)' : ''}`,
        columns,
      ),
    ),
    ...(step.kind === 'help'
      ? HELP.slice(0, room + 1).map((line) => clipped(line, columns))
      : [
          dim(clipped(heading, columns)),
          ...lines.map((line, at) => (PAINT[shown[at]?.state ?? ''] ?? dim)(clipped(line, columns))),
        ]),
    (step.kind === 'confirming' ? bold : dim)(clipped(footerOf(state, view, ops.length - shown.length), columns)),
  ].slice(0, rows);
}

function footerOf({ step, filter, message }: Watched, { lost, hasKeys }: View, hidden: number): string {
  if (step.kind === 'confirming')
    return `Terminate ${cellText(step.op.opId)} of ${cellText(step.op.agent)}? Press y; any other key leaves it running.`;
  if (step.kind === 'filtering') return `/${cellText(filter)}`;
  if (step.kind === 'help') return 'Press any key to go back.';
  const rest = `${hidden > 0 ? `${hidden} more. ` : ''}${filter === '' ? '' : `Only with "${cellText(filter)}". `}`;
  return message || (lost ?? `${rest}${hasKeys ? 'Press ? for the keys, q to quit.' : 'Press Ctrl-C to quit.'}`);
}
