/** The audit log, newest first, and as it grows. */
import { keepInAddress, read, whenSet } from '../address.js';
import { query } from '../api.js';
import { button, field, h, parts, replace, searchInput, select, setText, timeInput, viewHead } from '../dom.js';
import { agentName, dateTime, SLASH, shortTime, ZONE } from '../format.js';
import { holdOf } from '../hold.js';
import { attempt, messageOf } from '../notices.js';
import { labelled, PagedTable } from '../paged-table.js';
import { call, current } from '../session.js';
import { exportButton } from './audit-export.js';

/** Every kind of entry. */
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
  'CheckpointWitnessed',
  'SettingsChanged',
];
const COLUMNS = ['Time', 'Event', 'Who', 'What', 'Decision'];
const PER_PAGE = 100;
const FOLLOW_EVERY_MS = 2_000;
/** A page that follows for days must not grow for days. */
const MAX_ROWS = 2_000;

const WIDE = matchMedia('(min-width: 761px)');

/** @param {URLSearchParams} asked what the link that led here wants to see */
export function auditView(asked) {
  const filters = auditFilters(asked);
  const { applied } = filters;
  const ask = (/** @type {string | undefined} */ cursor) =>
    call('GET', `/api/v1/logs${query([...applied(), ['per_page', PER_PAGE], ['cursor', cursor]])}`);
  const list = new PagedTable({
    perPage: PER_PAGE,
    label: 'Audit log',
    columns: COLUMNS,
    render: entryRow,
    empty: () =>
      filters.isEmpty()
        ? 'No entries yet. They appear here when agents and people act.'
        : `No entries match the filters.${filters.hasName() ? ' Enter full names and IDs.' : ''}`,
    load: async (cursor, _perPage, isCurrent) => {
      const page = await ask(cursor);
      if (cursor === undefined && isCurrent()) held.hidden = true;
      return { rows: page.entries, next: page.next_cursor };
    },
  });
  const reload = () => {
    filters.apply();
    return attempt(list.reload);
  };
  const held = button(
    'Show new entries',
    async () => {
      frame().scrollTop = 0;
      await reload();
    },
    { class: 'held', hidden: true },
  );
  const follow = h('input', { type: 'checkbox', id: 'follow', checked: true });
  const missed = h('p', { class: 'form-error', role: 'status' });
  list.element.append(missed);

  filters.whenSet(reload);
  const follower = new Follower({ list, held, missed, readNewest: async () => (await ask(undefined)).entries });
  void reload().then(() => follower.run(() => follow.checked));
  const element = h(
    'section',
    { class: 'view' },
    viewHead(
      'Audit log',
      held,
      h('label', { class: 'check', for: 'follow' }, follow, 'Follow'),
      button('Refresh', reload),
      exportButton(applied),
    ),
    h(
      'details',
      { class: 'folded', open: WIDE.matches || asked.size > 0 },
      h('summary', null, 'Filters'),
      filters.element,
    ),
    list.element,
  );
  return { element, renew: list.renew, dispose: () => follower.stop() };
}

/**
 * The controls that choose entries. What is being typed does not count until it is applied.
 *
 * @param {URLSearchParams} asked
 */
function auditFilters(asked) {
  const event = select('Event', [['', 'All events'], ...EVENTS.map((word) => /** @type {const} */ ([word, word]))]);
  const decision = select('Decision', [
    ['', 'All decisions'],
    ['allow', 'allow'],
    ['deny', 'deny'],
  ]);
  const org = searchInput('All orgs');
  const names = {
    team_id: searchInput('All teams'),
    agent_id: searchInput('All agents'),
    op_id: searchInput('All operations'),
  };
  const since = timeInput({ step: '1' });
  const until = timeInput({ step: '1' });
  // A user who is bound to an org sees no other.
  const orgIfAny = (current()?.orgId ?? null) === null ? { org_id: org } : {};
  const controls = { event_type: event, decision, ...orgIfAny, ...names, since, until };
  keepInAddress('#/audit', asked, controls);
  const chosen = () => Object.entries(controls).map(([name, control]) => /** @type {const} */ ([name, read(control)]));
  let applied = chosen();
  return {
    element: h(
      'div',
      { class: 'filters many' },
      field('Event', event),
      field('Decision', decision),
      'org_id' in orgIfAny ? field('Org', org) : null,
      field('Team', names.team_id),
      field('Agent', names.agent_id),
      field('Operation', names.op_id),
      field(`From (${ZONE})`, since),
      field(`To (${ZONE})`, until),
    ),
    applied: () => applied,
    apply: () => {
      applied = chosen();
    },
    isEmpty: () => applied.every(([, value]) => value === ''),
    hasName: () => applied.some(([name, value]) => (name === 'org_id' || name in names) && value !== ''),
    whenSet: (/** @type {() => unknown} */ listener) => whenSet(Object.values(controls), listener),
  };
}

/** Puts new entries on top of the list as the log grows. */
class Follower {
  #parts;
  #isHeld;
  #isStopped = false;

  /**
   * @param {{ list: PagedTable<any>, held: HTMLElement, missed: HTMLElement, readNewest: () => Promise<readonly any[]>
   * }} parts
   */
  constructor(parts) {
    this.#parts = parts;
    this.#isHeld = holdOf(frame, parts.list.body);
  }

  /** @param {() => boolean} isOn */
  async run(isOn) {
    while (!this.#isStopped) {
      await new Promise((resolve) => setTimeout(resolve, FOLLOW_EVERY_MS));
      if (this.#isStopped || !isOn() || document.hidden) continue;
      setText(
        this.#parts.missed,
        await this.#addNew().then(
          () => '',
          (problem) => `Could not load new entries. Retrying… ${messageOf(problem)}`,
        ),
      );
    }
  }

  stop() {
    this.#isStopped = true;
  }

  /**
   * Not while somebody is about to press there or reads on below. Begins anew when more came than a page holds, and when
   * there are too many rows: with the last of them taken away, `Load more` would go on further down.
   */
  async #addNew() {
    const { list, held, readNewest } = this.#parts;
    const newest = list.body.rows[0];
    const entries = await readNewest();
    if (list.isEarlier() || list.body.rows[0] !== newest) return; // the filter was changed meanwhile
    const known = new Set(Array.from(list.body.rows, (row) => row.dataset.key));
    const fresh = entries.filter((entry) => !known.has(keyOf(entry)));
    held.hidden = fresh.length === 0 || !this.#isHeld();
    if (fresh.length === 0 || !held.hidden) return;
    if (fresh.length === PER_PAGE || newest === undefined || list.body.childElementCount + fresh.length > MAX_ROWS)
      return list.begin();
    list.body.prepend(...fresh.map((entry) => labelled(entryRow(entry), COLUMNS)));
  }
}

/** What the view scrolls in. */
const frame = () => /** @type {HTMLElement} */ (document.getElementById('app'));

/** Each gateway of a cluster numbers its entries by itself. @param {any} entry */
const keyOf = ({ gateway = '', id }) => `${gateway} ${id}`;

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
    { 'data-id': entry.id, 'data-key': keyOf(entry) },
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
  const { action, resource, dry_run: isDryRun } = payload;
  const call = action === undefined ? wordsOf(payload) : `${action} ${resource ?? ''}`.trim();
  const said = isDryRun === true ? `${call} (dry run)` : call;
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
