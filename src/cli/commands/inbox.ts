/** `svc approvals watch` on a terminal: what waits, the arguments of one of them, and its decision by keys. */
import { messageOf } from '../../core/base/text.ts';
import { type Api, unconfirmedNote } from '../remote/api.ts';
import { type Key, readKeys } from '../terminal/keys.ts';
import { bold, dim, yellow } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { openScreen } from '../terminal/screen.ts';
import { awayAt, type Column, cellText, type Row, tableLines } from '../terminal/table.ts';
import { clipped, widthOf } from '../terminal/width.ts';
import { counted } from '../terminal/words.ts';
import { approvalLines, outcomeOf, pathOf } from './approval-lines.ts';
import { agentText } from './listing.ts';
import { shortIds } from './short-ids.ts';

export type Inbox = {
  /** Aborted when the person leaves. */
  readonly left: AbortSignal;
  show(approvals: readonly Row[]): Promise<void>;
  /** The gateway cannot be asked at the moment. */
  lost(message: string): void;
  close(): void;
};

/** The pending action on the selected approval. */
type Step =
  | { readonly kind: 'choosing' }
  | { readonly kind: 'reason'; readonly approval: Row; readonly text: string }
  | { readonly kind: 'verdict'; readonly approval: Row; readonly reason: string }
  | { readonly kind: 'sending'; readonly approval: Row };

export type InboxState = {
  /** Sorted by expiry, the next first. */
  readonly approvals: readonly Row[];
  /** The selected one stays selected, whatever comes and goes around it. */
  readonly selected: unknown;
  readonly step: Step;
  readonly message: string;
};

export const emptyInbox: InboxState = {
  approvals: [],
  selected: undefined,
  step: { kind: 'choosing' },
  message: '',
};

export type Pressed = {
  readonly state: InboxState;
  readonly leaves?: boolean;
  readonly decides?: { readonly id: string; readonly verb: 'approve' | 'deny'; readonly reason: string };
};

/** In characters, as the gateway takes. */
const MAX_REASON = 1_000;

/**
 * Updates the pending approvals. The one that is being decided stays on the screen, even if somebody else was faster.
 */
export function withApprovals(state: InboxState, rows: readonly Row[]): InboxState {
  const approvals = [...rows].sort((one, other) => (String(one.expires_at) < String(other.expires_at) ? -1 : 1));
  const at = Math.max(0, indexOf(state));
  const isThere = approvals.some(({ id }) => id === state.selected);
  const selected = isThere ? state.selected : (approvals[at] ?? approvals.at(-1))?.id;
  return { ...state, approvals, selected: state.step.kind === 'choosing' ? selected : state.selected };
}

const indexOf = ({ approvals, selected }: InboxState): number => approvals.findIndex(({ id }) => id === selected);

/** A key changes the state, and may decide or leave. A decision takes a reason, the end of its line, and one key. */
export function press(state: InboxState, key: Key): Pressed {
  if (key.name === 'interrupt') return { state, leaves: true };
  const { step } = state;
  switch (step.kind) {
    case 'choosing':
      return choose(state, key);
    case 'reason':
      return { state: editReason(state, step, key) };
    case 'verdict': {
      const verb = key.name === 'text' ? ({ a: 'approve', d: 'deny' } as const)[key.text] : undefined;
      if (verb === undefined) return { state: back(state, 'Left undecided.') };
      const { approval, reason } = step;
      return {
        state: { ...state, step: { kind: 'sending', approval }, message: '' },
        decides: { id: String(approval.id), verb, reason },
      };
    }
    case 'sending':
      return { state };
  }
}

/** The decision was taken, or refused. */
export const back = (state: InboxState, message: string): InboxState => ({
  ...state,
  step: { kind: 'choosing' },
  message,
});

function choose(state: InboxState, key: Key): Pressed {
  const { approvals } = state;
  const at = indexOf(state);
  const move = (by: 1 | -1): Pressed => ({
    state: { ...state, message: '', selected: approvals[Math.min(Math.max(at + by, 0), approvals.length - 1)]?.id },
  });
  const word = key.name === 'text' ? key.text : key.name;
  if (word === 'down' || word === 'j') return move(1);
  if (word === 'up' || word === 'k') return move(-1);
  if (word === 'q') return { state, leaves: true };
  const approval = approvals[at];
  if (word !== 'enter' || approval === undefined) return { state };
  return { state: { ...state, step: { kind: 'reason', approval, text: '' }, message: '' } };
}

function editReason(state: InboxState, step: Extract<Step, { kind: 'reason' }>, key: Key): InboxState {
  const { approval, text } = step;
  const to = (changed: string): InboxState => ({ ...state, step: { ...step, text: changed }, message: '' });
  switch (key.name) {
    case 'text':
      return text.length + key.text.length > MAX_REASON ? state : to(text + key.text);
    case 'backspace':
      return to([...text].slice(0, -1).join(''));
    case 'clear':
      return to('');
    case 'escape':
      return back(state, 'Left undecided.');
    case 'enter': {
      const reason = text.trim();
      if (reason === '') return { ...state, message: 'A decision needs a reason.' };
      return { ...state, step: { kind: 'verdict', approval, reason }, message: '' };
    }
    default:
      return state;
  }
}

type Size = { readonly rows: number; readonly columns: number };

/** At most as many lines as there are rows, the one to type on last. */
export function pictureOf(label: string, state: InboxState, { rows, columns }: Size): readonly string[] {
  const { approvals, step } = state;
  const selected = step.kind === 'choosing' ? approvals[indexOf(state)] : step.approval;
  const heading =
    approvals.length === 0 ? 'nothing waits for an approval' : `${counted(approvals.length, 'request')} to decide`;
  const listed = listLines(state, Math.max(3, Math.floor(rows / 3)), columns);
  const room = rows - listed.length - 4;
  const details = selected === undefined ? [] : fittedDetails(selected, room, columns);
  return [
    bold(clipped(`${printable(label)}: ${heading}`, columns)),
    ...listed,
    '',
    ...details,
    ...Array.from({ length: Math.max(0, room - details.length) }, () => ''),
    dim(clipped(state.message === '' ? KEYS[step.kind] : state.message, columns)),
    promptOf(step, columns),
  ].slice(0, rows);
}

const KEYS = {
  choosing: 'Enter decides the marked one; arrow keys or j and k move the mark; q leaves.',
  reason: 'Enter ends the reason; Esc leaves the request undecided.',
  verdict: 'Any other key leaves the request undecided.',
  sending: 'Sending …',
} as const satisfies Record<Step['kind'], string>;

function promptOf(step: Step, columns: number): string {
  switch (step.kind) {
    case 'reason': {
      const line = `Reason: ${printable(step.text)}`;
      // A long reason shows its end, where the person types.
      return widthOf(line) < columns ? line : `Reason: …${printable(step.text).slice(12 - columns)}`;
    }
    case 'verdict':
      return bold(clipped('Press a to approve, d to deny:', columns));
    default:
      return '';
  }
}

/** The marked one is always among them. */
function listLines(state: InboxState, most: number, columns: number): readonly string[] {
  const { approvals, selected } = state;
  if (approvals.length === 0) return [];
  const ids = shortIds(approvals);
  const from = Math.max(0, Math.min(indexOf(state) - most + 2, approvals.length - most + 1));
  const shown = approvals.slice(from, from + most - 1);
  const cells: readonly Column[] = [
    { title: ' ', cell: ({ id }) => (id === selected ? '>' : ' '), isWhole: true },
    { title: 'ID', cell: ({ id }) => ids.get(String(id)), isWhole: true },
    { title: 'AGENT', cell: ({ agent }) => agentText(agent) },
    { title: 'ACTION', cell: 'action' },
    { title: 'RESOURCE', cell: 'resource' },
    { title: 'EXPIRES', cell: awayAt('expires_at') },
  ];
  const [heading = '', ...lines] = tableLines(cells, shown, columns);
  return [
    dim(clipped(heading, columns)),
    ...lines.map((line, at) => (shown[at]?.id === selected ? yellow : String)(clipped(line, columns))),
  ];
}

/** Long lines are broken and not cut: nobody is to approve what is not on the screen. */
function fittedDetails(approval: Row, room: number, columns: number): readonly string[] {
  const lines = approvalLines(approval).flatMap((line) => brokenAt(line, columns));
  if (lines.length <= room) return lines;
  const rest = `There is more: see svc approvals show ${cellText(approval.id)}`;
  return [...lines.slice(0, Math.max(0, room - 1)), yellow(clipped(rest, columns))];
}

function brokenAt(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const character of text) {
    if (widthOf(line + character) > columns) {
      lines.push(line);
      line = '';
    }
    line += character;
  }
  return [...lines, line];
}

/** Takes the screen and the keyboard until `close`. `look` asks for what waits. */
export function openInbox(api: Api, look: () => Promise<readonly Row[]>): Inbox {
  const left = new AbortController();
  const screen = openScreen(process.stdout);
  let state = emptyInbox;
  const draw = (): void => screen.draw(pictureOf(api.target.label, state, screen.size()));
  const change = (next: InboxState): void => {
    state = next;
    draw();
  };
  const decide = async ({ id, verb, reason }: NonNullable<Pressed['decides']>): Promise<void> => {
    try {
      const answer = await api.post(`${pathOf(id)}/${verb}`, 'approval', { reason });
      const { unconfirmed } = answer;
      const doubt = Array.isArray(unconfirmed) ? ` ${unconfirmedNote(unconfirmed.map(String))}` : '';
      change(back(state, `${outcomeOf(answer.approval as Row)}${doubt}`));
      change(withApprovals(state, await look()));
    } catch (error) {
      // Such as that somebody else was faster, or that it is one's own request: the others still wait.
      change(back(state, printable(messageOf(error))));
    }
  };
  const stopReading = readKeys((key) => {
    if (key.name === 'suspend') return screen.suspend();
    const pressed = press(state, key);
    change(pressed.state);
    if (pressed.leaves === true) left.abort();
    if (pressed.decides !== undefined) void decide(pressed.decides);
  });
  process.stdout.on('resize', draw);
  return {
    left: left.signal,
    show: async (approvals) => change(withApprovals(state, approvals)),
    lost: (message) => change({ ...state, message: printable(message) }),
    close: () => {
      process.stdout.off('resize', draw);
      stopReading();
      screen.leave();
    },
  };
}
