/** People, for administrators: who they are and what they may do; with the open invites below. */
import { query } from '../api.js';
import { confirm, showSecret } from '../dialogs.js';
import { button, h, select, viewHead } from '../dom.js';
import { ago, dateTime } from '../format.js';
import { saidOfMadeKeys } from '../made-keys.js';
import { attempt, notify } from '../notices.js';
import { PagedTable } from '../paged-table.js';
import { call, current, mayManage } from '../session.js';
import { invitesTable, PER_PAGE, ROLES, TOO_HIGH } from './invites.js';

/** @typedef {PagedTable<any>} List */

/** @type {Readonly<Record<string, readonly string[]>>} */
const SCOPES_OF_ROLE = {
  owner: ['read', 'write', 'admin'],
  admin: ['read', 'write', 'admin'],
  developer: ['read', 'write'],
  viewer: ['read'],
};

export function accountsView() {
  const isBound = (current()?.orgId ?? null) !== null;
  let hasOwner = false;
  let isAllRead = false;
  /**
   * An owner is bound to no org, and where there is no owner any admin of all orgs appoints the first. @param {any}
   * account @param {string} role
   */
  const mayGive = (account, role) =>
    role === account.role ||
    (role === 'owner'
      ? account.org_id === null && (mayManage('owner') || (!isBound && isAllRead && !hasOwner))
      : mayManage(role));
  /** @type {List} */
  const list = new PagedTable({
    perPage: PER_PAGE,
    label: 'Accounts',
    columns: ['E-mail', 'Role', 'Org', 'Created', 'Last sign-in', 'State', ''],
    empty: 'No accounts yet. Use Invite to add people.',
    load: async (cursor, perPage, isCurrent) => {
      const page = await call(
        'GET',
        `/api/v1/accounts${query([
          ['per_page', perPage],
          ['cursor', cursor],
        ])}`,
      );
      if (isCurrent()) {
        hasOwner =
          (cursor !== undefined && hasOwner) ||
          page.accounts.some((/** @type {any} */ { role, disabled }) => role === 'owner' && !disabled);
        isAllRead = page.next_cursor === null;
      }
      return { rows: page.accounts, next: page.next_cursor };
    },
    render: (account) => accountRow(account, list, mayGive),
  });
  const invites = invitesTable();
  const reload = () => attempt(() => Promise.all([list.reload(), invites.reload()]));
  void reload();
  const head = viewHead('Accounts', button('Refresh', reload), button('Invite', invites.openForm, { class: 'solid' }));
  return {
    element: h('section', { class: 'view' }, head, list.element, h('h2', null, 'Open invites'), invites.element),
    renew: async () => {
      await Promise.all([list.renew(), invites.renew()]);
    },
  };
}

/**
 * @param {any} account @param {List} list @param {(account: any, role: string) => boolean} mayGive whether the account
 * may be given the role
 */
function accountRow(account, list, mayGive) {
  const isWithinReach = mayManage(account.role);
  return h(
    'tr',
    { class: account.disabled ? 'finished' : '' },
    h('td', { class: 'strong' }, account.email, isOwn(account) ? h('span', { class: 'tag' }, 'you') : null),
    h(
      'td',
      null,
      isWithinReach
        ? roleSelect(
            account,
            ROLES.map(([role]) => role).filter((role) => mayGive(account, role)),
            list,
          )
        : account.role,
    ),
    h('td', { class: 'org' }, account.org_id ?? 'all'),
    h('td', { class: 'nowrap', title: dateTime(account.created_at) }, ago(account.created_at)),
    h('td', { class: 'nowrap', title: dateTime(account.last_login_at) }, ago(account.last_login_at)),
    h('td', null, stateOf(account)),
    h(
      'td',
      { class: 'row-actions' },
      isWithinReach ? accountActions(account, list) : h('span', { class: 'hint' }, TOO_HIGH),
    ),
  );
}

/** @param {any} account @param {readonly string[]} roles @param {List} list */
function roleSelect(account, roles, list) {
  const control = select(
    `Role of ${account.email}`,
    roles.map((role) => /** @type {const} */ ([role, role])),
    { class: 'small' },
  );
  control.value = account.role;
  control.addEventListener('change', () => changeRole(account, control, list));
  return control;
}

/** @param {any} account @param {List} list */
const accountActions = (account, list) => [
  account.locked_until === null
    ? null
    : button('Unlock', () => change(account, 'unlock', list), {
        class: 'small',
        'aria-label': `Unlock ${account.email}`,
      }),
  account.disabled
    ? null
    : button('Reset password', () => resetPassword(account), {
        class: 'small',
        'aria-label': `Reset the password of ${account.email}`,
      }),
  button('Sign out', () => signOutEverywhere(account), {
    class: 'small',
    'aria-label': `Sign ${account.email} out everywhere`,
  }),
  account.disabled
    ? button('Enable', () => change(account, 'enable', list), {
        class: 'small',
        'aria-label': `Enable ${account.email}`,
      })
    : button('Disable', () => disable(account, list), {
        class: 'small danger',
        'aria-label': `Disable ${account.email}`,
      }),
];

/** @param {any} account @param {'role' | 'enable' | 'disable' | 'unlock'} what @param {List} list @param {unknown} [body] */
async function change(account, what, list, body) {
  await attempt(() => call('POST', `/api/v1/accounts/${encodeURIComponent(account.id)}/${what}`, body));
  await attempt(list.refresh);
}

/**
 * Asks first, because the arrow keys alone choose another role. @param {any} account @param {HTMLSelectElement} control
 * @param {List} list
 */
async function changeRole(account, control, list) {
  const chosen = control.value;
  control.value = account.role;
  const made = await saidOfMadeKeys(`account:${account.id}`, list.element, SCOPES_OF_ROLE[chosen]);
  if (made === undefined) return;
  if (
    await confirm({
      title: 'Change this account’s role?',
      text: `From ${account.role} to ${chosen}, effective immediately.${made}${ifOwn(account, 'only someone else can give back what you give up.')}`,
      subject: account.email,
      confirm: `Change to ${chosen}`,
    })
  )
    await change(account, 'role', list, { role: chosen });
}

/** @param {any} account @param {List} list */
async function disable(account, list) {
  const made = await saidOfMadeKeys(`account:${account.id}`, list.element);
  if (made === undefined) return;
  if (
    await confirm({
      title: 'Disable this account?',
      text: `All its sessions end immediately, and it cannot sign in until it is enabled again.${made}${ifOwn(account, 'you will be signed out.')}`,
      subject: account.email,
      confirm: 'Disable',
    })
  )
    await change(account, 'disable', list);
}

/** @param {any} account */
async function resetPassword(account) {
  const isMeant = await confirm({
    title: 'Make a link for a new password?',
    text: 'Whoever opens it within an hour sets the password, which ends all sessions and lifts a lock. Links made before stop working.',
    subject: account.email,
    confirm: 'Make link',
  });
  if (!isMeant) return;
  await attempt(async () => {
    const { link } = await call('POST', `/api/v1/accounts/${encodeURIComponent(account.id)}/reset`);
    showSecret({ title: 'Link for a new password', text: `Send it to ${account.email}. It works once.`, secret: link });
  });
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

/** Added to a question that is about the own account. @param {any} account @param {string} text */
const ifOwn = (account, text) => (isOwn(account) ? ` This is your own account: ${text}` : '');
