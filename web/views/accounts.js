/** People, for administrators: who they are and what they may do; with the open invites below. */
import { query } from '../api.js';
import { confirm } from '../dialogs.js';
import { button, h, select, viewHead } from '../dom.js';
import { ago, dateTime } from '../format.js';
import { attempt, notify } from '../notices.js';
import { pagedTable } from '../paged-table.js';
import { call, current, mayManage } from '../session.js';
import { invitesTable, PER_PAGE, ROLES, TOO_HIGH } from './invites.js';

export function accountsView() {
  const boundTo = current()?.orgId ?? null;
  let hasOwner = false;
  /** Whether all accounts have been read. */
  let isWhole = false;
  const list = pagedTable({
    perPage: PER_PAGE,
    label: 'Accounts',
    columns: ['E-mail', 'Role', 'Org', 'Created', 'Last sign-in', 'State', ''],
    empty: 'No accounts yet. Use Invite to add people.',
    load: async (cursor, perPage) => {
      const page = await call(
        'GET',
        `/api/v1/accounts${query([
          ['per_page', perPage],
          ['cursor', cursor],
        ])}`,
      );
      hasOwner =
        (cursor !== undefined && hasOwner) ||
        page.accounts.some((/** @type {any} */ { role, disabled }) => role === 'owner' && !disabled);
      isWhole = page.next_cursor === null;
      return { rows: page.accounts, next: page.next_cursor };
    },
    render: accountRow,
  });
  const invites = invitesTable();
  const reload = () => attempt(() => Promise.all([list.reload(), invites.reload()]));

  /**
   * Whether the account may be given the role: an owner is bound to no org, and where there is no owner any admin of
   * all orgs appoints the first. @param {any} account @param {string} role
   */
  const mayGive = (account, role) =>
    role === account.role ||
    (role === 'owner'
      ? account.org_id === null && (mayManage('owner') || (boundTo === null && isWhole && !hasOwner))
      : mayManage(role));

  /** @param {any} account */
  function roleSelect(account) {
    const role = select(
      `Role of ${account.email}`,
      ROLES.filter(([value]) => mayGive(account, value)).map(([value]) => /** @type {const} */ ([value, value])),
      { class: 'small' },
    );
    role.value = account.role;
    role.addEventListener('change', () => changeRole(account, role));
    return role;
  }

  /** @param {any} account */
  function accountRow(account) {
    const isWithinReach = mayManage(account.role);
    return h(
      'tr',
      { class: account.disabled ? 'finished' : '' },
      h('td', { class: 'strong' }, account.email, isOwn(account) ? h('span', { class: 'tag' }, 'you') : null),
      h('td', null, isWithinReach ? roleSelect(account) : account.role),
      h('td', { class: 'org' }, account.org_id ?? 'all'),
      h('td', { class: 'nowrap', title: dateTime(account.created_at) }, ago(account.created_at)),
      h('td', { class: 'nowrap', title: dateTime(account.last_login_at) }, ago(account.last_login_at)),
      h('td', null, stateOf(account)),
      h(
        'td',
        { class: 'row-actions' },
        isWithinReach
          ? [
              account.locked_until === null
                ? null
                : button('Unlock', () => change(account, 'unlock'), {
                    class: 'small',
                    'aria-label': `Unlock ${account.email}`,
                  }),
              button('Sign out', () => signOutEverywhere(account), {
                class: 'small',
                'aria-label': `Sign ${account.email} out everywhere`,
              }),
              account.disabled
                ? button('Enable', () => change(account, 'enable'), {
                    class: 'small',
                    'aria-label': `Enable ${account.email}`,
                  })
                : button('Disable', () => disable(account), {
                    class: 'small danger',
                    'aria-label': `Disable ${account.email}`,
                  }),
            ]
          : h('span', { class: 'hint' }, TOO_HIGH),
      ),
    );
  }

  /** @param {any} account @param {'role' | 'enable' | 'disable' | 'unlock'} what @param {unknown} [body] */
  async function change(account, what, body) {
    await attempt(() => call('POST', `/api/v1/accounts/${encodeURIComponent(account.id)}/${what}`, body));
    await attempt(list.refresh);
  }

  /** Asked about, because the arrow keys alone choose another. @param {any} account @param {HTMLSelectElement} role */
  async function changeRole(account, role) {
    const chosen = role.value;
    role.value = account.role;
    if (
      await confirm({
        title: 'Change this account’s role?',
        text: `From ${account.role} to ${chosen}, effective immediately.${ifOwn(account, 'only someone else can give back what you give up.')}`,
        subject: account.email,
        confirm: `Change to ${chosen}`,
      })
    )
      await change(account, 'role', { role: chosen });
  }

  /** @param {any} account */
  async function disable(account) {
    if (
      await confirm({
        title: 'Disable this account?',
        text: `All its sessions end immediately, and it cannot sign in until it is enabled again.${ifOwn(account, 'you will be signed out.')}`,
        subject: account.email,
        confirm: 'Disable',
      })
    )
      await change(account, 'disable');
  }

  /** @param {any} account */
  async function signOutEverywhere(account) {
    const isMeant = await confirm({
      title: 'Sign this account out everywhere?',
      text: `All its sessions end immediately.${ifOwn(account, 'you will be signed out here, too.')}`,
      subject: account.email,
      confirm: 'Sign out',
    });
    if (
      isMeant &&
      (await attempt(() => call('POST', `/api/v1/accounts/${encodeURIComponent(account.id)}/sessions/revoke`)))
    )
      notify(`${account.email} was signed out everywhere.`);
  }

  void reload();
  const head = viewHead('Accounts', button('Refresh', reload), button('Invite', invites.openForm, { class: 'solid' }));
  return {
    element: h('section', { class: 'view' }, head, list.element, h('h2', null, 'Open invites'), invites.element),
    renew: async () => {
      await Promise.all([list.renew(), invites.renew()]);
    },
  };
}

/** @param {any} account */
function stateOf({ disabled, locked_until: lockedUntil }) {
  if (disabled) return h('span', { class: 'state revoked' }, 'disabled');
  return lockedUntil === null
    ? h('span', { class: 'state active' }, 'active')
    : h(
        'span',
        { class: 'state paused', title: `After too many failed sign-ins, until ${dateTime(lockedUntil)}` },
        `locked until ${dateTime(lockedUntil)}`,
      );
}

/** @param {any} account */
const isOwn = ({ id }) => current()?.subject === `account:${id}`;

/** What is said besides before somebody does it to himself. @param {any} account @param {string} text */
const ifOwn = (account, text) => (isOwn(account) ? ` This is your own account: ${text}` : '');
