/** Open invites, for administrators: the table of them, and the form that makes one. */
import { query } from '../api.js';
import { confirm, formDialog, showSecret } from '../dialogs.js';
import { button, field, h, orgInput, select } from '../dom.js';
import { ago, dateTime, shortTime } from '../format.js';
import { attempt } from '../notices.js';
import { PagedTable } from '../paged-table.js';
import { call, current, mayManage } from '../session.js';

export const PER_PAGE = 100;
export const TOO_HIGH = 'Only an owner can change this.';
export const ROLES = /** @type {const} */ ([
  ['viewer', 'viewer – read'],
  ['developer', 'developer – read and write'],
  ['admin', 'admin – everything except owners'],
  ['owner', 'owner – everything'],
]);

/** @typedef {PagedTable<any>} List */

export function invitesTable() {
  /** @type {List} */
  const list = new PagedTable({
    perPage: PER_PAGE,
    label: 'Open invites',
    columns: ['E-mail', 'Role', 'Org', 'Invited', 'Expires', 'Invited by', ''],
    empty: 'No open invites. Use Invite to add people.',
    load: async (cursor, perPage) => {
      const page = await call(
        'GET',
        `/api/v1/auth/invites${query([
          ['per_page', perPage],
          ['cursor', cursor],
        ])}`,
      );
      return { rows: page.invites, next: page.next_cursor };
    },
    render: (invite) => inviteRow(invite, list),
  });
  return { element: list.element, reload: list.reload, renew: list.renew, openForm: () => openForm(list) };
}

/** @param {any} invite @param {List} list */
const inviteRow = (invite, list) =>
  h(
    'tr',
    null,
    h('td', { class: 'strong' }, invite.email),
    h('td', { class: 'nowrap' }, invite.role),
    h('td', { class: 'org' }, invite.org_id ?? 'all'),
    h('td', { class: 'nowrap', title: dateTime(invite.created_at) }, ago(invite.created_at)),
    h('td', { class: 'nowrap', title: dateTime(invite.expires_at) }, shortTime(invite.expires_at)),
    invite.invited_by === current()?.subject ? h('td', null, 'you') : h('td', { class: 'mono' }, invite.invited_by),
    h(
      'td',
      { class: 'row-actions' },
      mayManage(invite.role)
        ? button('Revoke', () => revoke(invite, list), {
            class: 'small danger',
            'aria-label': `Revoke the invite for ${invite.email}`,
          })
        : h('span', { class: 'hint' }, TOO_HIGH),
    ),
  );

/** @param {any} invite @param {List} list */
async function revoke(invite, list) {
  const isMeant = await confirm({
    title: 'Revoke this invite?',
    text: 'Its link stops working immediately.',
    subject: invite.email,
    confirm: 'Revoke',
  });
  if (!isMeant) return;
  await attempt(() => call('POST', `/api/v1/auth/invites/${encodeURIComponent(invite.id)}/revoke`));
  await attempt(list.refresh);
}

/** @param {List} list */
function openForm(list) {
  const boundTo = current()?.orgId ?? null;
  const email = h('input', { type: 'email', required: true, autocomplete: 'off' });
  const role = select(
    'Role',
    ROLES.filter(([value]) => mayManage(value) && (value !== 'owner' || boundTo === null)),
  );
  role.value = 'developer';
  const org = orgInput(boundTo);
  formDialog({
    title: 'Invite someone',
    submit: 'Create invite',
    fields: [
      field('E-mail', email),
      field('Role', role),
      field('Org', org, 'The account sees this org only. Leave empty for all orgs.'),
    ],
    onSubmit: async () => {
      const made = await call('POST', '/api/v1/auth/invite', {
        email: email.value.trim(),
        role: role.value,
        ...(org.value.trim() === '' ? {} : { org_id: org.value.trim() }),
      });
      showSecret({
        title: 'Invite link',
        text: `Send this link to ${made.email} yourself. It works once and expires ${dateTime(made.expires_at)}. It will not be shown again.`,
        secret: `${location.origin}/#/accept-invite/${made.invite_token}${query([['email', made.email]])}`,
      });
      await attempt(list.reload);
    },
  });
}
