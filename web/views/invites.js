/** Open invites, for administrators: the table of them, and the form that makes one. */
import { query } from '../api.js';
import { confirm, formDialog, showSecret } from '../dialogs.js';
import { button, field, h, select } from '../dom.js';
import { ago, dateTime, shortTime } from '../format.js';
import { attempt } from '../notices.js';
import { pagedTable } from '../paged-table.js';
import { call, current, mayManage } from '../session.js';

export const PER_PAGE = 100;
export const TOO_HIGH = 'Only an owner can change this.';
export const ROLES = /** @type {const} */ ([
  ['viewer', 'viewer – read'],
  ['developer', 'developer – read and write'],
  ['admin', 'admin – everything except owners'],
  ['owner', 'owner – everything'],
]);

export function invitesTable() {
  const boundTo = current()?.orgId ?? null;
  const invites = pagedTable({
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
    render: (invite) =>
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
            ? button('Revoke', () => revoke(invite), {
                class: 'small danger',
                'aria-label': `Revoke the invite for ${invite.email}`,
              })
            : h('span', { class: 'hint' }, TOO_HIGH),
        ),
      ),
  });

  /** @param {any} invite */
  async function revoke(invite) {
    if (
      !(await confirm({
        title: 'Revoke this invite?',
        text: 'Its link stops working immediately.',
        subject: invite.email,
        confirm: 'Revoke',
      }))
    )
      return;
    await attempt(() => call('POST', `/api/v1/auth/invites/${encodeURIComponent(invite.id)}/revoke`));
    await attempt(invites.refresh);
  }

  function openForm() {
    const email = h('input', { type: 'email', required: true, autocomplete: 'off' });
    const role = select(
      'Role',
      ROLES.filter(([value]) => mayManage(value) && (value !== 'owner' || boundTo === null)),
    );
    role.value = 'developer';
    const org = h('input', {
      type: 'text',
      autocomplete: 'off',
      spellcheck: 'false',
      value: boundTo ?? '',
      readonly: boundTo !== null,
    });
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
        await attempt(invites.reload);
      },
    });
  }

  return { ...invites, openForm };
}
