/** The audit log, newest first, and as it grows. */
import { keepInAddress, read, whenSet } from '../address.js';
import { query } from '../api.js';
import { button, field, h, parts, replace, select, setText, timeInput, viewHead } from '../dom.js';
import { agentName, dateTime, SLASH, shortTime, ZONE } from '../format.js';
import { holdOf } from '../hold.js';
import { attempt, messageOf } from '../notices.js';
import { labelled, pagedTable } from '../paged-table.js';
import { call, current } from '../session.js';
import { exportButton } from './audit-export.js';

/** Every kind of entry (`core/audit.ts`). */
const EVENTS = [
  'ActionAllowed',
  'ActionDenied',
  'A2ACallIntercepted',
  'A2AImpersonationAttempted',
  'BudgetLimitExceeded',
  'OpRegistered',
  'OpPaused',
  'OpResumed',
  'OpTerminated',
  'OpCompleted',
  'AgentRegistered',
  'AgentDeregistered',
  'ApiKeyCreated',
  'ApiKeyRevoked',
  'TokenIssued',
  'AccountRegistered',
  'LoginSucceeded',
  'LoginFailed',
  'AccountLocked',
  'InviteCreated',
  'InviteAccepted',
  'InviteRevoked',
  'PasswordResetRequested',
  'PasswordResetCompleted',
  'SessionRevoked',
  'AccountRoleChanged',
  'AccountDisabled',
  'AccountEnabled',
  'AccountUnlocked',
  'PolicyReloaded',
  'HaltCreated',
  'HaltReleased',
  'GatewayForgotten',
  'ApprovalRequested',
  'ApprovalApproved',
  'ApprovalDenied',
  'ApprovalExpired',
  'ApprovalCancelled',
  'ApprovalUsed',
  'WebhookCreated',
  'WebhookDeleted',
];
const COLUMNS = ['Time', 'Event', 'Who', 'What', 'Decision'];
const PER_PAGE = 100;
const FOLLOW_EVERY_MS = 2_000;
/** A page that follows for days must not grow for days. */
const MAX_ROWS = 2_000;

const WIDE = matchMedia('(min-width: 761px)');

/** @param {URLSearchParams} asked what the link that led here wants to see */
export function auditView(asked) {
  const boundTo = current()?.orgId ?? null;
  const event = select('Event', [['', 'All events'], ...EVENTS.map((word) => /** @type {const} */ ([word, word]))]);
  const decision = select('Decision', [
    ['', 'All decisions'],
    ['allow', 'allow'],
    ['deny', 'deny'],
  ]);
  const inputs = {
    org_id: search('All orgs'),
    team_id: search('All teams'),
    agent_id: search('All agents'),
    op_id: search('All operations'),
  };
  const since = timeInput({ step: '1' });
  const until = timeInput({ step: '1' });
  const follow = h('input', { type: 'checkbox', id: 'follow', checked: true });
  const { org_id: org, ...others } = inputs;
  const filters = {
    event_type: event,
    decision,
    ...(boundTo === null ? { org_id: org } : {}),
    ...others,
    since,
    until,
  };
  keepInAddress('#/audit', asked, filters);

  const chosen = () => Object.entries(filters).map(([name, control]) => /** @type {const} */ ([name, read(control)]));
  /** What the entries are chosen by: what is being typed does not count until it is. */
  let shown = chosen();
  const ask = (/** @type {string | undefined} */ cursor) =>
    call('GET', `/api/v1/logs${query([...shown, ['per_page', PER_PAGE], ['cursor', cursor]])}`);
  const list = pagedTable({
    perPage: PER_PAGE,
    label: 'Audit log',
    columns: COLUMNS,
    render: entryRow,
    empty: () =>
      shown.every(([, value]) => value === '')
        ? 'No entries yet. They appear here when agents and people act.'
        : `No entries match the filters.${shown.some(([name, value]) => name in inputs && value !== '') ? ' Enter full names and IDs.' : ''}`,
    load: async (cursor) => {
      const page = await ask(cursor);
      if (cursor === undefined) held.hidden = true;
      return { rows: page.entries, next: page.next_cursor };
    },
  });
  const reload = () => {
    shown = chosen();
    return attempt(list.reload);
  };
  const isHeld = holdOf(frame, list.body);
  const held = button(
    'Show new entries',
    async () => {
      frame().scrollTop = 0;
      await reload();
    },
    { class: 'held', hidden: true },
  );

  /**
   * Puts what is new on top, unless somebody is about to press there or reads on below. Begins anew when more came than
   * a page holds, and when there are too many rows: with the last of them taken away, `Load more` would go on further
   * down.
   */
  async function look() {
    const newest = list.body.rows[0];
    const { entries } = await ask(undefined);
    if (list.isEarlier() || list.body.rows[0] !== newest) return; // the filter was changed meanwhile
    const newestId = Number(newest?.dataset.id ?? 0);
    const fresh = entries.filter((/** @type {any} */ entry) => entry.id > newestId);
    held.hidden = fresh.length === 0 || !isHeld();
    if (fresh.length === 0 || !held.hidden) return;
    if (fresh.length === PER_PAGE || newestId === 0 || list.body.childElementCount + fresh.length > MAX_ROWS)
      return list.begin();
    list.body.prepend(...fresh.map((/** @type {any} */ entry) => labelled(entryRow(entry), COLUMNS)));
  }

  const missed = h('p', { class: 'form-error', role: 'status' });
  list.element.append(missed);
  let isDisposed = false;
  async function keepLooking() {
    while (!isDisposed) {
      await new Promise((resolve) => setTimeout(resolve, FOLLOW_EVERY_MS));
      if (isDisposed || !follow.checked || document.hidden) continue;
      setText(
        missed,
        await look().then(
          () => '',
          (problem) => `Could not load new entries. Retrying… ${messageOf(problem)}`,
        ),
      );
    }
  }

  whenSet(Object.values(filters), reload);
  void reload().then(keepLooking);
  const element = h(
    'section',
    { class: 'view' },
    viewHead(
      'Audit log',
      held,
      h('label', { class: 'check', for: 'follow' }, follow, 'Follow'),
      button('Refresh', reload),
      exportButton(() => shown),
    ),
    h(
      'details',
      { class: 'folded', open: WIDE.matches || asked.size > 0 },
      h('summary', null, 'Filters'),
      h(
        'div',
        { class: 'filters many' },
        field('Event', event),
        field('Decision', decision),
        boundTo === null ? field('Org', inputs.org_id) : null,
        field('Team', inputs.team_id),
        field('Agent', inputs.agent_id),
        field('Operation', inputs.op_id),
        field(`From (${ZONE})`, since),
        field(`To (${ZONE})`, until),
      ),
    ),
    list.element,
  );
  return {
    element,
    renew: list.renew,
    dispose: () => {
      isDisposed = true;
    },
  };
}

/** @param {string} placeholder */
const search = (placeholder) => h('input', { type: 'search', placeholder, autocomplete: 'off', spellcheck: 'false' });

/** What the view scrolls in. */
const frame = () => /** @type {HTMLElement} */ (document.getElementById('app'));

/** @param {any} entry */
function entryRow(entry) {
  const details = h('dialog', { class: 'wide', 'aria-label': `Entry ${entry.id}` });
  const open = () => {
    replace(
      details,
      h('h2', null, `Entry ${entry.id}`),
      h('pre', { class: 'mono', tabindex: '0' }, JSON.stringify(entry, null, 2)),
      h(
        'div',
        { class: 'dialog-actions' },
        button('Close', () => details.close(), { class: 'solid' }),
      ),
    );
    document.body.append(details);
    details.addEventListener('close', () => details.remove(), { once: true });
    details.showModal();
  };
  const { lineage } = entry;
  const isByAgent = lineage.agent_id !== null && entry.actor.startsWith('agent:');
  const who =
    lineage.agent_id === null
      ? entry.actor
      : [parts(agentName(lineage), SLASH), isByAgent ? null : h('span', { class: 'reason' }, `by ${entry.actor}`)];
  const what = whatOf(entry);
  return h(
    'tr',
    { 'data-id': entry.id },
    h('td', { class: 'nowrap', title: dateTime(entry.timestamp) }, shortTime(entry.timestamp)),
    h(
      'td',
      null,
      button(entry.event_type, open, { class: 'link', 'aria-label': `${entry.event_type}, entry ${entry.id}` }),
    ),
    h('td', null, who),
    h(
      'td',
      { class: 'what' },
      what.length === 0
        ? null
        : h(
            'span',
            { class: 'mono' },
            what.flatMap((part, index) => (index === 0 ? [part] : [' ', part])),
          ),
      entry.reason === null ? null : h('span', { class: 'reason' }, entry.reason),
    ),
    h('td', null, entry.decision === null ? '' : h('span', { class: `state ${entry.decision}` }, entry.decision)),
  );
}

/**
 * The action that was asked about and its operation; of other events, what their payload says in a word each. @param
 * {any} entry @returns {readonly Node[]}
 */
function whatOf({ payload, op_id: opId }) {
  const { action, resource } = payload;
  const said = action === undefined ? wordsOf(payload) : `${action} ${resource ?? ''}`.trim();
  return [
    ...(said === '' ? [] : [h('bdi', null, said)]),
    ...(opId === null ? [] : [h('span', { class: 'id' }, parts(opId, ':'))]),
  ];
}

const MAX_WORDS = 4;
/** Ids that say nothing at a glance; the entry itself shows them. */
const NOT_AT_A_GLANCE = ['account_id', 'session_id', 'token_id'];

/** @param {Record<string, unknown>} payload */
const wordsOf = (payload) =>
  Object.entries(payload)
    .filter(([name]) => !NOT_AT_A_GLANCE.includes(name))
    .filter(
      ([, value]) =>
        ['string', 'number', 'boolean'].includes(typeof value) ||
        (Array.isArray(value) && value.every((item) => typeof item === 'string')),
    )
    .slice(0, MAX_WORDS)
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(' ') : value}`)
    .join(', ');
