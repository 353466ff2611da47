/** `svc approvals ls|show|approve|deny|watch`: what agents ask people for. */
import { setTimeout as sleep } from 'node:timers/promises';
import { mayPass } from '../errors.ts';
import type { Invocation, OutputFormat, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { note, show, showNext, showTable } from '../terminal/output.ts';
import { interruptible } from '../terminal/prompt.ts';
import { awayAt, type Column, cellText, type Row } from '../terminal/table.ts';
import { APPROVALS, approvalLines, outcomeOf, pathOf } from './approval-lines.ts';
import { type Inbox, openInbox } from './inbox.ts';
import { agentText, limitOf, moreNote } from './listing.ts';
import { shortIds, wholeId } from './short-ids.ts';

const columnsFor = (ids: ReadonlyMap<string, string>): readonly Column[] => [
  { title: 'ID', cell: ({ id }) => ids.get(String(id)) ?? id, isWhole: true },
  { title: 'STATE', cell: 'state', isSpare: true },
  { title: 'AGENT', cell: ({ agent }) => agentText(agent), isKept: true, isWrapped: true },
  { title: 'ACTION', cell: 'action', isKept: true, isWrapped: true },
  { title: 'RESOURCE', cell: 'resource', isKept: true, isWrapped: true },
  { title: 'EXPIRES', cell: awayAt('expires_at') },
];

export async function ls(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const state = options.isSet('all') ? undefined : (options.text('state') ?? 'pending');
  const api = await Api.of(invocation);
  const query = { state, org_id: options.text('org') };
  const { rows, nextCursor } = await api.list(APPROVALS, 'approvals', { query, limit: limitOf(options) });
  await showTable(globals, {
    value: { approvals: rows, next_cursor: nextCursor },
    columns: columnsFor(shortIds(rows)),
    rows,
    none: state === 'pending' ? 'Nothing waits for an approval.' : 'No approvals match.',
  });
  if (nextCursor !== null) note(moreNote(rows.length));
}

export async function showOne(invocation: Invocation): Promise<void> {
  const api = await Api.of(invocation);
  const answer = await api.get(pathOf(await approvalId(api, invocation.args[0] ?? '')), 'approval');
  await show(invocation.globals.output, answer, () => approvalLines(answer.approval as Row));
}

export const decide =
  (verb: 'approve' | 'deny'): Run =>
  async (invocation) => {
    const { args, options, globals } = invocation;
    const api = await Api.of(invocation);
    const path = `${pathOf(await approvalId(api, args[0] ?? '', 'pending'))}/${verb}`;
    const answer = await api.post(path, 'approval', { reason: options.text('reason') });
    await show(globals.output, answer, () => [outcomeOf(answer.approval as Row)]);
  };

/**
 * First of those that wait, if they are to be decided: what is over is nobody's mistake for them. Then of all, so that
 * the gateway says what has become of it.
 */
async function approvalId(api: Api, id: string, state?: 'pending'): Promise<string> {
  const waiting = await wholeId(api, id, { path: APPROVALS, key: 'approvals', query: { state } });
  return waiting !== id || state === undefined ? waiting : approvalId(api, id);
}

/** How often the gateway is asked for what is new. */
const LOOK_EVERY_MS = 2_000;

/** An inbox on a terminal, where they can be decided; elsewhere a line for each request. */
export async function watch(invocation: Invocation): Promise<void> {
  const { options, globals, env } = invocation;
  // An order is only given from the inbox, which shows what became of it.
  const api = await Api.of(invocation, { isPatient: true, warn: () => undefined });
  const org = options.text('org');
  const waiting = async (): Promise<readonly Row[]> =>
    (await api.list(APPROVALS, 'approvals', { query: { state: 'pending', org_id: org } })).rows;
  const isLive =
    globals.output === 'table' && process.stdin.isTTY === true && process.stdout.isTTY === true && env.TERM !== 'dumb';
  // A refusal is printed before the screen is used.
  const { first, look } = isLive ? { first: await waiting(), look: waiting } : await newestOf(api, org, waiting);
  const inbox = isLive ? openInbox(api, waiting) : newLines(globals.output);
  await interruptible(async (interrupted) => {
    const signal = AbortSignal.any([interrupted, inbox.left]);
    try {
      await inbox.show(first);
      while (!signal.aborted) {
        await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
        if (!signal.aborted) await refresh(inbox, look);
      }
    } finally {
      inbox.close();
    }
  });
}

async function refresh(inbox: Inbox, look: () => Promise<readonly Row[]>): Promise<void> {
  try {
    await inbox.show(await look());
  } catch (error) {
    if (!mayPass(error)) throw error;
    inbox.lost(`${error.message}; retrying`);
  }
}

/** How many of the newest are looked at, as long as one of them is known. */
const NEWEST = 50;
/** Longer than any list of them: a watch goes on for weeks. */
const MAX_REMEMBERED = 20_000;

/** Looks for requests that came since the last look, whatever has become of them meanwhile. */
async function newestOf(api: Api, org: string | undefined, waiting: () => Promise<readonly Row[]>) {
  const query = { org_id: org };
  const known = new Set<unknown>();
  const remember = (rows: readonly Row[]): void => {
    for (const { id } of rows) known.add(id);
    for (const id of known) {
      if (known.size <= MAX_REMEMBERED) return;
      known.delete(id);
    }
  };
  const page = async (): Promise<readonly Row[]> => {
    const newest = await api.list(APPROVALS, 'approvals', { query, limit: NEWEST });
    const isWhole = newest.nextCursor === null || newest.rows.some(({ id }) => known.has(id));
    if (isWhole) return newest.rows;
    return (await api.list(APPROVALS, 'approvals', { query, isEnough: ({ id }) => known.has(id) })).rows;
  };
  // Approvals that were over before the watch began are not shown.
  const before = (await api.list(APPROVALS, 'approvals', { query, limit: NEWEST })).rows;
  const since = String(before[0]?.requested_at ?? '');
  const ending = new Set(before.filter(({ state }) => state === 'pending').map(({ id }) => id));
  remember(before.filter(({ id }) => !ending.has(id)));
  const first = await waiting();
  remember(first);
  const look = async (): Promise<readonly Row[]> => {
    const rows = (await page()).filter(
      ({ id, state, requested_at: at }) =>
        !known.has(id) && (state === 'pending' || String(at) >= since || ending.has(id)),
    );
    remember(rows);
    return rows;
  };
  return { first, look };
}

function newLines(format: OutputFormat): Inbox {
  let isLost = false;
  return {
    left: new AbortController().signal,
    close: () => {},
    lost: (message) => {
      if (!isLost) note(message);
      isLost = true;
    },
    show: async (approvals) => {
      isLost = false;
      for (const approval of approvals.toReversed()) {
        const { id, agent, action, resource, state } = approval;
        const shown = [id, agentText(agent), action, resource, ...(state === 'pending' ? [] : [state])];
        await showNext(format, approval, () => shown.map(cellText).join('  '));
      }
    },
  };
}
