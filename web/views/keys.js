/** API keys, for administrators. */
import { query } from '../api.js';
import { nowMs } from '../clock.js';
import { confirm, formDialog, showSecret } from '../dialogs.js';
import { button, field, h, orgInput, timeInput, viewHead } from '../dom.js';
import { ago, dateTime, shortTime, ZONE } from '../format.js';
import { saidOfMadeKeys } from '../made-keys.js';
import { attempt, notify } from '../notices.js';
import { PagedTable } from '../paged-table.js';
import { call, current } from '../session.js';

const PER_PAGE = 100;
const SCOPES = /** @type {const} */ (['read', 'write', 'admin']);

/** @typedef {PagedTable<any>} List */

export function keysView() {
  /** @type {List} */
  const list = new PagedTable({
    perPage: PER_PAGE,
    label: 'API keys',
    columns: ['Name', 'Key', 'Scopes', 'Org', 'Created', 'Last used', 'State', ''],
    empty: 'No API keys yet. Use Create key to add one.',
    load: async (cursor, perPage) => {
      const page = await call(
        'GET',
        `/api/v1/iam/api-keys${query([
          ['per_page', perPage],
          ['cursor', cursor],
        ])}`,
      );
      return { rows: page.api_keys, next: page.next_cursor };
    },
    render: (key) => keyRow(key, list),
  });
  const reload = () => attempt(list.reload);
  void reload();
  return {
    element: h(
      'section',
      { class: 'view' },
      viewHead(
        'API keys',
        button('Refresh', reload),
        button('Create key', () => openForm(list), { class: 'solid' }),
      ),
      list.element,
    ),
    renew: list.renew,
  };
}

/** @param {any} key @param {List} list */
function keyRow(key, list) {
  const state = stateOf(key);
  const scopes = key.scopes.map((/** @type {string} */ scope) => h('span', { class: 'tag' }, scope));
  // The audit log names a key by its id, which is a part of every key but the one in SVC_BOOTSTRAP_API_KEY.
  const id = key.hint.includes(key.id) ? null : h('span', { class: 'reason' }, `key:${key.id}`);
  const end =
    key.expires_at === null || key.revoked_at !== null
      ? null
      : h('span', { class: 'reason' }, `${state === 'expired' ? 'since' : 'until'} ${shortTime(key.expires_at)}`);
  return h(
    'tr',
    { class: state === 'active' ? '' : 'finished' },
    h('td', { class: 'strong' }, key.name, isOwn(key) ? h('span', { class: 'tag' }, 'yours') : null),
    h('td', { class: 'mono key' }, key.hint, id),
    h('td', null, h('span', null, scopes)),
    h('td', { class: 'org' }, key.org_id ?? 'all'),
    h('td', { class: 'nowrap', title: dateTime(key.created_at) }, ago(key.created_at)),
    h('td', { class: 'nowrap', title: dateTime(key.last_used_at) }, ago(key.last_used_at)),
    h(
      'td',
      { title: key.expires_at === null ? '' : `expires ${dateTime(key.expires_at)}` },
      h('span', { class: `state ${state}` }, state),
      end,
    ),
    h(
      'td',
      { class: 'row-actions' },
      key.revoked_at === null
        ? button('Revoke', () => revoke(key, list), { class: 'small danger', 'aria-label': `Revoke ${key.name}` })
        : null,
    ),
  );
}

/** @param {List} list */
function openForm(list) {
  const name = h('input', { type: 'text', required: true, autocomplete: 'off', maxlength: 100 });
  const org = orgInput(current()?.orgId ?? null);
  const expires = timeInput();
  const scopes = SCOPES.map((scope) => h('input', { type: 'checkbox', value: scope, checked: scope === 'read' }));
  const checks = scopes.map((box) => h('label', { class: 'check' }, box, box.value));
  formDialog({
    title: 'Create an API key',
    submit: 'Create key',
    fields: [
      field('Name', name, 'What the key is for. Shown in lists and in the audit log.'),
      h('fieldset', { class: 'field' }, h('legend', null, 'Scopes'), h('div', { class: 'checks' }, checks)),
      field('Org', org, 'The key works for this org only. Leave empty for all orgs.'),
      field('Expires', expires, `Leave empty for no expiry. Time zone: ${ZONE}.`),
    ],
    onSubmit: async () => {
      const created = await call('POST', '/api/v1/iam/api-keys', {
        name: name.value.trim(),
        scopes: scopes.filter((box) => box.checked).map((box) => box.value),
        ...(org.value.trim() === '' ? {} : { org_id: org.value.trim() }),
        ...(expires.value === '' ? {} : { expires_at: new Date(expires.value).toISOString() }),
      });
      showSecret({
        title: 'New API key',
        text: `Copy “${created.name}” now: it will not be shown again.`,
        secret: created.key,
      });
      await attempt(list.reload);
    },
  });
}

/** @param {any} key @param {List} list */
async function revoke(key, list) {
  const made = await saidOfMadeKeys(`key:${key.id}`, list.element);
  if (made === undefined) return;
  const isMeant = await confirm({
    title: 'Revoke this key?',
    text: `${
      isOwn(key)
        ? 'This is the key you are signed in with: you will be signed out.'
        : 'The key and all tokens created from it stop working immediately.'
    }${made} This cannot be undone.`,
    subject: `${key.name}  ${key.hint}`,
    confirm: 'Revoke',
  });
  if (!isMeant) return;
  if (await attempt(() => call('POST', `/api/v1/iam/api-keys/${encodeURIComponent(key.id)}/revoke`)))
    notify(`“${key.name}” was revoked.`);
  await attempt(list.refresh);
}

/** @param {any} key */
const isOwn = ({ id }) => current()?.subject === `key:${id}`;

/** @param {any} key */
function stateOf({ revoked_at: revokedAt, expires_at: expiresAt }) {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs() ? 'expired' : 'active';
}
