/** Inviting somebody: the link is shown once. */
import { useState } from 'preact/hooks';
import { dateTime } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { ROLES, type Role } from '../../session/rights.ts';
import { boundOrg, call, mayManage } from '../../session/session.ts';
import { FormDialog, openDialog, showSecret } from '../../ui/dialog.tsx';
import { SelectField, TextField } from '../../ui/fields.tsx';

const WORDS: Readonly<Record<Role, string>> = {
  viewer: 'viewer – read',
  developer: 'developer – read and write',
  admin: 'admin – everything except owners',
  owner: 'owner – everything',
};

export const askInvite = (onDone: () => Promise<void>): void =>
  openDialog((onClose) => <InviteDialog onClose={onClose} onDone={onDone} />);

function InviteDialog({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => Promise<void> }) {
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<string>('developer');
  const [org, setOrg] = useState(boundOrg() ?? '');
  const roles = [...ROLES].reverse().filter((each) => mayManage(each) && (each !== 'owner' || boundOrg() === null));
  const invite = async (): Promise<void> => {
    const made = await call('POST', '/api/v1/auth/invite', {
      email: email.trim(),
      role,
      ...(org.trim() === '' ? {} : { org_id: org.trim() }),
    });
    showSecret(
      'Invite link',
      `Send this link to ${made.email} yourself. It works once and expires ${dateTime(made.expires_at)}. It will not be shown again.`,
      `${location.origin}/#/accept-invite/${made.invite_token}${queryOf({ email: made.email })}`,
    );
    onClose();
    await onDone();
  };
  return (
    <FormDialog title="Invite someone" submit="Create invite" onSubmit={invite} onClose={onClose}>
      <TextField label="E-mail" type="email" value={email} onValue={setEmail} required />
      <SelectField
        label="Role"
        value={role}
        onValue={setRole}
        options={roles.map((each) => [each, WORDS[each]] as const)}
      />
      <TextField
        label="Org"
        value={org}
        onValue={setOrg}
        readOnly={boundOrg() !== null}
        hint="The account sees this org only. Leave empty for all orgs."
      />
    </FormDialog>
  );
}
