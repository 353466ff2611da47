/** `svc ops watch`: operations as they change; a live table on a terminal, plain lines elsewhere. */
import { setTimeout as pause } from 'node:timers/promises';
import { dropFirst } from '../../core/base/lists.ts';
import { messageOf } from '../../core/base/text.ts';
import { OP_ENDS } from '../../core/ops/op-state.ts';
import { EXIT, type ExitStatus, mayPass } from '../errors.ts';
import type { Invocation, OutputFormat } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { type LiveStream, openLiveStream } from '../remote/live-stream.ts';
import { type Key, readKeys } from '../terminal/keys.ts';
import { note, showNext } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { openScreen } from '../terminal/screen.ts';
import { type Row, valueAt } from '../terminal/table.ts';
import { type AgentFilter, agentFilter } from './listing.ts';
import {
  isLagged,
  isShown,
  lineOf,
  nothingWatched,
  opIn,
  type Pressed,
  pictureOf,
  press,
  type WatchedOp,
  withOps,
} from './live-ops.ts';
import { outcomeLine, verbPath } from './ops-control.ts';

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
  const stop = (): void => {
    ended.abort();
    viewer.close();
  };
  const state = options.text('state');
  const viewer = only(
    filter,
    isLive ? liveTable({ api, state, leave: () => stop() }) : plainLines(globals.output, state),
  );
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

function plainLines(format: OutputFormat, state: string | undefined): Viewer {
  return {
    isWhole: false,
    connected: () => {},
    disconnected: (ending) => note(lostText(ending)),
    close: () => {},
    frame: async (frame) => {
      if (format === 'table' && isLagged(frame)) return note('Some changes came too fast and were skipped.');
      if (isLagged(frame) || (state ?? opIn(frame, 0)?.state) === opIn(frame, 0)?.state)
        await showNext(format, frame, () => lineOf(frame));
    },
  };
}

const ENDED: ReadonlySet<string> = new Set(OP_ENDS);
const hasEnded = ({ state }: WatchedOp): boolean => ENDED.has(state);

type Live = { readonly api: Api; readonly state: string | undefined; readonly leave: () => void };

function liveTable({ api, state: onlyState, leave }: Live): Viewer {
  const ops = new Map<string, WatchedOp>();
  const screen = openScreen(process.stdout);
  const view = { label: api.target.label, hasKeys: process.stdin.isTTY === true };
  let state = nothingWatched;
  let lost: string | undefined;
  let hasLetGo = false;
  let isChanged = true;
  const redraw = (): void => {
    isChanged = true;
  };
  const draw = (): void => {
    for (const op of ops.values())
      if (hasEnded(op) && Date.now() - op.seenMs > ENDED_MS) isChanged = ops.delete(op.key);
    if (!isChanged) return;
    isChanged = false;
    const isWanted = (op: WatchedOp): boolean => (onlyState ?? op.state) === op.state && isShown(op, state.filter);
    state = withOps(state, [...ops.values()].reverse().filter(isWanted));
    screen.draw(pictureOf(state, { ...view, lost, hasLetGo }, screen.size()));
  };
  const timer = setInterval(draw, REDRAW_MS);
  const order = async ({ verb, op }: NonNullable<Pressed['orders']>): Promise<void> => {
    const path = verbPath(op.opId, verb, { org_id: op.orgId, op_home: op.home });
    const message = await api.post(path, 'state').then(outcomeLine, (error: unknown) => printable(messageOf(error)));
    state = { ...state, message };
    redraw();
  };
  const onKey = (key: Key): void => {
    if (key.name === 'suspend') return screen.suspend();
    const pressed = press(state, key);
    state = pressed.state;
    redraw();
    if (pressed.orders !== undefined) void order(pressed.orders);
    if (pressed.leaves === true) leave();
  };
  const stopReading = view.hasKeys ? readKeys(onKey) : () => {};
  process.stdout.on('resize', redraw);
  return {
    isWhole: true,
    close: () => {
      clearInterval(timer);
      process.stdout.off('resize', redraw);
      stopReading();
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
