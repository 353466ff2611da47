/** `svc ops watch`: operations as they change; a live table on a terminal, plain lines elsewhere. */
import { setTimeout as pause } from 'node:timers/promises';
import { dropFirst } from '../../core/base/lists.ts';
import { OP_ENDS } from '../../core/ops/op-state.ts';
import { EXIT, type ExitStatus, mayPass } from '../errors.ts';
import type { Invocation, OutputFormat } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { type LiveStream, openLiveStream } from '../remote/live-stream.ts';
import { bold, dim, green, note, red, showNext, yellow } from '../terminal/output.ts';
import { openScreen, type Screen } from '../terminal/screen.ts';
import { type Column, cellText, type Row, tableLines, valueAt } from '../terminal/table.ts';
import { clipped, widthOf } from '../terminal/width.ts';
import { type AgentFilter, agentFilter, agentText } from './listing.ts';
import { shortIds } from './op-name.ts';
import { stateText } from './ops.ts';

const REDRAW_MS = 100;
const RETRY_MS = [500, 1000, 2000, 5000, 10_000] as const;
/** Above this, the operations that changed longest ago are dropped, and the heading says so. */
const MAX_OPS = 50_000;
/** How long an operation that has ended stays in the table. */
const ENDED_MS = 10_000;

/** Receives the events of the stream; one implementation per way of showing them. */
type Viewer = {
  /** Shows all there is, so that after a gap it needs a stream, and with it a snapshot, anew. */
  readonly isWhole: boolean;
  /** The stream begins, or begins again: a snapshot follows. */
  connected(): void;
  disconnected(ending: string): void;
  frame(frame: Row): Promise<void> | void;
  /** The last call, however the watch ends. May come twice. */
  close(): void;
};

type WatchQuery = Readonly<Record<'types' | 'snapshot' | 'lineage', string>> & { readonly org_id: string | undefined };

export async function watch(invocation: Invocation): Promise<ExitStatus> {
  const { options, globals, env } = invocation;
  const api = await Api.of(invocation);
  const filter = agentFilter(options);
  const query: WatchQuery = {
    types: 'ops_change',
    snapshot: 'true',
    lineage: 'true',
    org_id: filter.org_id || undefined,
  };
  const isLive = globals.output === 'table' && process.stdout.isTTY === true && env.TERM !== 'dumb';
  const ended = new AbortController();
  const first = await openLiveStream(api, query, ended.signal); // a refusal is printed before the screen is used
  const viewer = only(
    filter,
    isLive ? liveTable(api.target.label, openScreen(process.stdout)) : plainLines(globals.output),
  );
  const stop = (): void => {
    ended.abort();
    viewer.close();
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    let stream: LiveStream | undefined = first;
    while (stream !== undefined) {
      await view(stream, viewer, ended.signal);
      stream = await reconnected(api, query, ended.signal);
    }
  } finally {
    viewer.close(); // an error is printed on the restored terminal, not on a screen that disappears
  }
  return EXIT.done;
}

/** The stream is filtered by org alone. */
function only({ org_id, team_id, agent_id }: AgentFilter, viewer: Viewer): Viewer {
  const isWanted = (frame: Row): boolean =>
    isLagged(frame) ||
    ((org_id ?? frame.org_id ?? '') === (frame.org_id ?? '') &&
      (team_id ?? valueAt(frame, 'payload.team_id')) === valueAt(frame, 'payload.team_id') &&
      (agent_id ?? frame.agent_id) === frame.agent_id);
  return { ...viewer, frame: (frame) => (isWanted(frame) ? viewer.frame(frame) : undefined) };
}

/** Shows one stream to its end. */
async function view(stream: LiveStream, viewer: Viewer, signal: AbortSignal): Promise<void> {
  try {
    viewer.connected();
    let gap = '';
    for await (const frame of stream.frames) {
      await viewer.frame(frame);
      if (!viewer.isWhole || !isLagged(frame)) continue;
      gap = 'changes came too fast to show';
      stream.close();
    }
    if (!signal.aborted) viewer.disconnected(gap || stream.ending());
  } finally {
    stream.close();
  }
}

/**
 * Tries until the gateway is there again; undefined when the person has left. A refusal that will stay is not tried
 * again.
 */
async function reconnected(api: Api, query: WatchQuery, signal: AbortSignal): Promise<LiveStream | undefined> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    await pause(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)], undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return undefined;
    try {
      return await openLiveStream(api, query, signal);
    } catch (error) {
      if (!mayPass(error)) throw error; // it answered, and meant it
    }
  }
  return undefined;
}

const lostText = (ending: string): string => `Connection lost${ending === '' ? '' : ` (${ending})`}; retrying.`;

function plainLines(format: OutputFormat): Viewer {
  return {
    isWhole: false,
    connected: () => {},
    disconnected: (ending) => note(lostText(ending)),
    close: () => {},
    frame: async (frame) =>
      format === 'table' && isLagged(frame)
        ? note('Some changes came too fast and were skipped.')
        : showNext(format, frame, () => lineOf(frame)),
  };
}

type WatchedOp = {
  /** With its org: two orgs may use the same id. */
  readonly key: string;
  readonly opId: string;
  /** As people read it. */
  readonly state: string;
  readonly action: string;
  readonly resource: string;
  readonly updatedAt: string;
  readonly agent: string;
  readonly seenMs: number;
};

const isLagged = (frame: Row): boolean => frame.event_type === 'lagged';

function opIn({ payload, agent_id, org_id }: Row, nowMs: number): WatchedOp | undefined {
  const { op_id: opId, state, updated_at: updatedAt, team_id, action, resource, ended } = (payload ?? {}) as Row;
  if (typeof opId !== 'string' || typeof state !== 'string') return undefined;
  return {
    key: `${String(org_id ?? '')}/${opId}`,
    opId,
    state: stateText({ state, ended }),
    action: typeof action === 'string' ? action : '',
    resource: typeof resource === 'string' ? resource : '',
    updatedAt: typeof updatedAt === 'string' ? updatedAt : '',
    agent: agentText({ org_id, team_id, agent_id }) ?? '',
    seenMs: nowMs,
  };
}

const lineOf = (frame: Row): string => {
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
function columnsFor(shown: readonly WatchedOp[], columns: number): readonly Column[] {
  const short = shortIds(shown.map(({ opId }) => opId));
  const operation: Column = { title: 'OPERATION', cell: ({ opId }) => short.get(String(opId)), isWhole: true };
  const widest = Math.max(0, ...[...short.values()].map(widthOf));
  if (widest + LEAST_STATE > columns) return [STATE, operation];
  return [
    operation,
    STATE,
    { title: 'AGENT', cell: 'agent' },
    { title: 'ACTION', cell: 'action', isSpare: true },
    { title: 'RESOURCE', cell: 'resource', isSpare: true },
    ...(columns >= WIDE_COLUMNS ? [UPDATED] : []),
  ];
}

const ENDED: ReadonlySet<string> = new Set(OP_ENDS);
const hasEnded = ({ state }: WatchedOp): boolean => ENDED.has(state);

function liveTable(label: string, screen: Screen): Viewer {
  const ops = new Map<string, WatchedOp>();
  let lost: string | undefined;
  let hasLetGo = false;
  let isChanged = true;
  const timer = setInterval(() => {
    for (const op of ops.values())
      if (hasEnded(op) && Date.now() - op.seenMs > ENDED_MS) isChanged = ops.delete(op.key);
    if (isChanged) screen.draw(pictureOf(label, [...ops.values()].reverse(), { lost, hasLetGo }, screen.size()));
    isChanged = false;
  }, REDRAW_MS);
  const redraw = (): void => {
    isChanged = true;
  };
  process.stdout.on('resize', redraw);
  return {
    isWhole: true,
    close: () => {
      clearInterval(timer);
      process.stdout.off('resize', redraw);
      screen.leave();
    },
    connected: () => {
      ops.clear();
      lost = undefined;
      hasLetGo = false;
      redraw();
    },
    disconnected: (ending) => {
      lost = lostText(ending);
      redraw();
    },
    frame: (frame) => {
      const op = opIn(frame, Date.now());
      if (op === undefined) return;
      ops.delete(op.key); // the map stays in the order of the changes
      ops.set(op.key, op);
      if (ops.size > MAX_OPS) hasLetGo = dropFirst(ops);
      redraw();
    },
  };
}

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

type Watching = { readonly lost: string | undefined; readonly hasLetGo: boolean };
type ScreenSize = { readonly rows: number; readonly columns: number };

function pictureOf(
  label: string,
  ops: readonly WatchedOp[],
  { lost, hasLetGo }: Watching,
  { rows, columns }: ScreenSize,
): readonly string[] {
  const counts = Object.keys(PAINT).flatMap((state) => {
    const count = ops.filter((op) => op.state === state).length;
    return count === 0 ? [] : [`${count} ${state}`];
  });
  const shown = ops.slice(0, Math.max(0, rows - 3));
  const [heading = '', ...lines] = tableLines(columnsFor(shown, columns), shown, columns);
  return [
    bold(
      clipped(
        `${cellText(label)}: ${counts.length === 0 ? 'no operations in flight' : counts.join(', ')}${hasLetGo ? ' (older ones not counted)' : ''}`,
        columns,
      ),
    ),
    dim(clipped(heading, columns)),
    ...lines.map((line, at) => (PAINT[shown[at]?.state ?? ''] ?? dim)(clipped(line, columns))),
    dim(
      clipped(
        lost ?? `${ops.length > shown.length ? `${ops.length - shown.length} more. ` : ''}Press Ctrl-C to quit.`,
        columns,
      ),
    ),
  ].slice(0, rows);
}
