/** People, for administrators: who they are and what they may do; with the open invites below. */
import type { Account, Invite } from '../../base/api-types.ts';
import { dateTime, shortTime } from '../../base/format.ts';
import { ROLES, type Role, SCOPES_OF_ROLE } from '../../session/rights.ts';
import { boundOrg, call, can, mayManage, session } from '../../session/session.ts';
import { offer } from '../../shell/boot.ts';
import { PagedTable } from '../../ui/data-table.tsx';
import { ask, showSecret } from '../../ui/dialog.tsx';
import { Select } from '../../ui/fields.tsx';
import { Ago, Empty, PageHead, State } from '../../ui/names.tsx';
import { attempt, notify } from '../../ui/notices.tsx';
import { pageReader } from '../../ui/read.ts';
import { type Pages, useEvents, usePages } from '../../ui/resource.ts';
import { saidOfMade } from '../keys/made-keys.ts';
import { askInvite } from './invite.tsx';

const TOO_HIGH = 'Only an owner can change this.';

export function PeoplePage() {
  const hasAccounts = offer.value.methods.includes('password');
  const isOff = !can('admin') || !hasAccounts;
  const accounts = usePages<Account>('accounts', pageReader('/api/v1/accounts', 'accounts'), { isOff });
  const invites = usePages<Invite>('invites', pageReader('/api/v1/auth/invites', 'invites'), { isOff });
  useEvents('account', () => {
    if (!isOff) void Promise.all([accounts.reload(), invites.reload()]);
  });
  if (isOff)
    return (
      <div class="page">
        <PageHead title="People" />
        <Empty>
          {hasAccounts
            ? 'Only administrators see accounts.'
            : 'This gateway has no account store: everybody signs in with an API key. Set SVC_DATABASE_URL to have accounts.'}
        </Empty>
      </div>
    );
  return (
    <div class="page">
      <PageHead title="People" note="Who signs in with e-mail and password, and what they may do.">
        <button type="button" class="solid" onClick={() => askInvite(invites.reload)}>
          Invite
        </button>
      </PageHead>
      <AccountsTable pages={accounts} />
      <h2>Open invites</h2>
      <InvitesTable pages={invites} />
    </div>
  );
}

/**
 * An owner is bound to no org, and where there is no owner any admin of all orgs appoints the first: what is known of
 * that is in the whole list.
 */
function mayGive(account: Account, role: Role, pages: Pages<Account>): boolean {
  if (role === account.role) return true;
  if (role !== 'owner') return mayManage(role);
  const hasOwner = pages.rows.some((each) => each.role === 'owner' && !each.disabled);
  return account.org_id === null && (mayManage('owner') || (boundOrg() === null && !pages.hasMore && !hasOwner));
}

function AccountsTable({ pages }: { readonly pages: Pages<Account> }) {
  return (
    <PagedTable
      label="Accounts"
      pages={pages}
      empty="No accounts yet. Use “Invite” to add people."
      keyOf={({ id }) => id}
      classOf={({ disabled }) => (disabled ? 'finished' : '')}
      columns={[
        { title: 'E-mail', isName: true, cell: ({ email }) => <strong>{email}</strong> },
        { title: 'Role', cell: (account) => <RoleOf account={account} pages={pages} /> },
        { title: 'Org', cell: ({ org_id: org }) => org ?? 'all' },
        { title: 'Created', class: 'nowrap', cell: (account) => <Ago at={account.created_at} /> },
        { title: 'Last sign-in', class: 'nowrap', cell: (account) => <Ago at={account.last_login_at} /> },
        { title: 'State', cell: (account) => <AccountState account={account} /> },
        {
          title: 'Control',
          class: 'row-actions',
          cell: (account) =>
            mayManage(account.role) ? (
              <AccountActions account={account} onDone={pages.reload} />
            ) : (
              <span class="hint">{TOO_HIGH}</span>
            ),
        },
      ]}
    />
  );
}

function AccountState({ account: { disabled, locked_until: locked } }: { readonly account: Account }) {
  if (disabled) return <State word="disabled" />;
  return locked === null ? (
    <State word="active" />
  ) : (
    <span class="state locked" title="After too many failed sign-ins">
      locked until {dateTime(locked)}
    </span>
  );
}

function RoleOf({ account, pages }: { readonly account: Account; readonly pages: Pages<Account> }) {
  const roles = ROLES.filter((role) => mayGive(account, role, pages));
  if (!mayManage(account.role) || roles.length < 2) return <>{account.role}</>;
  return (
    <Select
      value={account.role}
      options={roles.map((role) => [role, role] as const)}
      attributes={{ 'aria-label': `Role of ${account.email}`, class: 'small' }}
      onValue={(role) => {
        void askRole(account, role as Role, pages.reload);
        void pages.reload(); // shows the role that it has until the question is answered
      }}
    />
  );
}

const isOwn = ({ id }: Account): boolean => session.value?.subject === `account:${id}`;

/** Added to a question that is about the own account. */
const ifOwn = (account: Account, text: string): string => (isOwn(account) ? ` This is your own account: ${text}` : '');

const change = (account: Account, what: 'role' | 'enable' | 'disable' | 'unlock', body?: unknown): Promise<unknown> =>
  call('POST', `/api/v1/accounts/${encodeURIComponent(account.id)}/${what}`, body);

/** Asks first, because the arrow keys alone choose another role. */
const askRole = (account: Account, role: Role, onDone: () => Promise<void>): Promise<boolean> =>
  attempt(async () => {
    const made = await saidOfMade(`account:${account.id}`, SCOPES_OF_ROLE[role]);
    ask({
      title: 'Change this account’s role?',
      text: `From ${account.role} to ${role}, effective immediately.${made}${ifOwn(account, 'only someone else can give back what you give up.')}`,
      subject: account.email,
      confirm: `Change to ${role}`,
      onConfirm: async () => {
        await change(account, 'role', { role });
        await onDone();
      },
    });
  });

const askDisabling = (account: Account, onDone: () => Promise<void>): Promise<boolean> =>
  attempt(async () => {
    const made = await saidOfMade(`account:${account.id}`);
    ask({
      title: 'Disable this account?',
      text: `All its sessions end immediately, and it cannot sign in until it is enabled again.${made}${ifOwn(account, 'you will be signed out.')}`,
      subject: account.email,
      confirm: 'Disable',
      onConfirm: async () => {
        await change(account, 'disable');
        await onDone();
      },
    });
  });

const askReset = (account: Account): void =>
  ask({
    title: 'Make a link for a new password?',
    text: 'Whoever opens it within an hour sets the password, which ends all sessions and lifts a lock. Links made before stop working.',
    subject: account.email,
    confirm: 'Make link',
    onConfirm: async () => {
      const { link } = await call('POST', `/api/v1/accounts/${encodeURIComponent(account.id)}/reset`);
      showSecret('Link for a new password', `Send it to ${account.email}. It works once.`, link);
    },
  });

const askSignOut = (account: Account): void =>
  ask({
    title: 'Sign this account out everywhere?',
    text: `All its sessions end immediately.${ifOwn(account, 'you will be signed out here, too.')}`,
    subject: account.email,
    confirm: 'Sign out',
    onConfirm: async () => {
      await call('POST', `/api/v1/accounts/${encodeURIComponent(account.id)}/sessions/revoke`);
      notify(`${account.email} was signed out everywhere.`);
    },
  });

function AccountActions({ account, onDone }: { readonly account: Account; readonly onDone: () => Promise<void> }) {
  const { email, disabled, locked_until: locked } = account;
  const button = (text: string, name: string, run: () => unknown, kind = 'ghost') => (
    <button type="button" class={kind} aria-label={name} onClick={() => void run()}>
      {text}
    </button>
  );
  const now = (what: 'enable' | 'unlock') => async () => {
    await attempt(() => change(account, what));
    await onDone();
  };
  return (
    <>
      {locked !== null && button('Unlock', `Unlock ${email}`, now('unlock'))}
      {!disabled && button('Reset password', `Reset the password of ${email}`, () => askReset(account))}
      {button('Sign out', `Sign ${email} out everywhere`, () => askSignOut(account))}
      {disabled
        ? button('Enable', `Enable ${email}`, now('enable'))
        : button('Disable', `Disable ${email}`, () => askDisabling(account, onDone), 'ghost danger')}
    </>
  );
}

function InvitesTable({ pages }: { readonly pages: Pages<Invite> }) {
  const askRevocation = (invite: Invite): void =>
    ask({
      title: 'Revoke this invite?',
      text: 'Its link stops working immediately.',
      subject: invite.email,
      confirm: 'Revoke',
      onConfirm: async () => {
        await call('POST', `/api/v1/auth/invites/${encodeURIComponent(invite.id)}/revoke`);
        await pages.reload();
      },
    });
  return (
    <PagedTable
      label="Open invites"
      pages={pages}
      empty="No open invites."
      keyOf={({ id }) => id}
      columns={[
        { title: 'E-mail', isName: true, cell: ({ email }) => <strong>{email}</strong> },
        { title: 'Role', cell: ({ role }) => role },
        { title: 'Org', cell: ({ org_id: org }) => org ?? 'all' },
        { title: 'Invited', class: 'nowrap', cell: (invite) => <Ago at={invite.created_at} /> },
        { title: 'Expires', class: 'nowrap', cell: (invite) => shortTime(invite.expires_at) },
        {
          title: 'Invited by',
          cell: ({ invited_by: by }) => (by === session.value?.subject ? 'you' : <code>{by}</code>),
        },
        {
          title: 'Control',
          class: 'row-actions',
          cell: (invite) =>
            mayManage(invite.role) ? (
              <button
                type="button"
                class="ghost danger"
                aria-label={`Revoke the invite for ${invite.email}`}
                onClick={() => askRevocation(invite)}
              >
                Revoke
              </button>
            ) : (
              <span class="hint">{TOO_HIGH}</span>
            ),
        },
      ]}
    />
  );
}
