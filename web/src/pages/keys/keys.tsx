/** API keys, for administrators. */
import { useState } from 'preact/hooks';
import type { ApiKey, Scope } from '../../base/api-types.ts';
import { nowMs } from '../../base/clock.ts';
import { shortTime, ZONE } from '../../base/format.ts';
import { SCOPES } from '../../session/rights.ts';
import { boundOrg, call, can, session } from '../../session/session.ts';
import { PagedTable } from '../../ui/data-table.tsx';
import { ask, FormDialog, openDialog, showSecret } from '../../ui/dialog.tsx';
import { Checks, TextField, TimeField } from '../../ui/fields.tsx';
import { Ago, Empty, PageHead, State, Tag } from '../../ui/names.tsx';
import { attempt, notify } from '../../ui/notices.tsx';
import { pageReader } from '../../ui/read.ts';
import { usePages } from '../../ui/resource.ts';
import { saidOfMade } from './made-keys.ts';

export function KeysPage() {
  const pages = usePages<ApiKey>('keys', pageReader('/api/v1/iam/api-keys', 'api_keys'), { isOff: !can('admin') });
  if (!can('admin'))
    return (
      <div class="page">
        <PageHead title="Keys" />
        <Empty>Only administrators see API keys.</Empty>
      </div>
    );
  return (
    <div class="page">
      <PageHead title="Keys" note="What programs sign in with: agents’ hosts, the command line, scripts.">
        <button type="button" class="solid" onClick={() => askKey(pages.reload)}>
          Create key
        </button>
      </PageHead>
      <PagedTable
        label="API keys"
        pages={pages}
        empty="No API keys yet. Use “Create key” to add one."
        keyOf={({ id }) => id}
        classOf={(key) => (stateOf(key) === 'active' ? '' : 'finished')}
        columns={[
          { title: 'Name', isName: true, cell: (key) => <Name apiKey={key} /> },
          { title: 'Key', class: 'mono', cell: ({ hint }) => hint },
          { title: 'Scopes', cell: ({ scopes }) => scopes.map((scope) => <Tag key={scope}>{scope}</Tag>) },
          { title: 'Org', cell: ({ org_id: org }) => org ?? 'all' },
          { title: 'Created', class: 'nowrap', cell: (key) => <Ago at={key.created_at} /> },
          { title: 'Last used', class: 'nowrap', cell: (key) => <Ago at={key.last_used_at} /> },
          { title: 'State', cell: (key) => <KeyState apiKey={key} /> },
          { title: 'Control', class: 'row-actions', cell: (key) => <Revoke apiKey={key} onDone={pages.reload} /> },
        ]}
      />
    </div>
  );
}

const isOwn = ({ id }: ApiKey): boolean => session.value?.subject === `key:${id}`;

function stateOf({ revoked_at: revokedAt, expires_at: expiresAt }: ApiKey): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs() ? 'expired' : 'active';
}

type KeyProps = { readonly apiKey: ApiKey };

const Name = ({ apiKey }: KeyProps) => (
  <>
    <strong>{apiKey.name}</strong> {isOwn(apiKey) && <Tag>yours</Tag>}
    {/* The audit log names a key by its id, which is a part of every key but the one in SVC_BOOTSTRAP_API_KEY. */}
    {!apiKey.hint.includes(apiKey.id) && <span class="reason">key:{apiKey.id}</span>}
  </>
);

const KeyState = ({ apiKey }: KeyProps) => (
  <>
    <State word={stateOf(apiKey)} />
    {apiKey.expires_at !== null && apiKey.revoked_at === null && (
      <span class="reason">
        {stateOf(apiKey) === 'expired' ? 'since' : 'until'} {shortTime(apiKey.expires_at)}
      </span>
    )}
  </>
);

const Revoke = ({ apiKey, onDone }: KeyProps & { readonly onDone: () => Promise<void> }) =>
  apiKey.revoked_at === null ? (
    <button
      type="button"
      class="ghost danger"
      aria-label={`Revoke ${apiKey.name}`}
      onClick={() => void askRevocation(apiKey, onDone)}
    >
      Revoke
    </button>
  ) : null;

async function askRevocation(key: ApiKey, onDone: () => Promise<void>): Promise<void> {
  await attempt(async () => {
    const made = await saidOfMade(`key:${key.id}`);
    ask({
      title: 'Revoke this key?',
      text: `${
        isOwn(key)
          ? 'This is the key you are signed in with: you will be signed out.'
          : 'The key and all tokens created from it stop working immediately.'
      }${made} This cannot be undone.`,
      subject: `${key.name}  ${key.hint}`,
      confirm: 'Revoke',
      onConfirm: async () => {
        await call('POST', `/api/v1/iam/api-keys/${encodeURIComponent(key.id)}/revoke`);
        notify(`“${key.name}” was revoked.`);
        await onDone();
      },
    });
  });
}

const askKey = (onDone: () => Promise<void>): void =>
  openDialog((onClose) => <KeyDialog onClose={onClose} onDone={onDone} />);

function KeyDialog({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => Promise<void> }) {
  const [name, setName] = useState('');
  const [org, setOrg] = useState(boundOrg() ?? '');
  const [expires, setExpires] = useState('');
  const [scopes, setScopes] = useState<readonly Scope[]>(['read']);
  const create = async (): Promise<void> => {
    const created = await call('POST', '/api/v1/iam/api-keys', {
      name: name.trim(),
      scopes,
      ...(org.trim() === '' ? {} : { org_id: org.trim() }),
      ...(expires === '' ? {} : { expires_at: expires }),
    });
    showSecret('New API key', `Copy “${created.name}” now: it will not be shown again.`, created.key);
    onClose();
    await onDone();
  };
  return (
    <FormDialog title="Create an API key" submit="Create key" onSubmit={create} onClose={onClose}>
      <TextField
        label="Name"
        value={name}
        onValue={setName}
        required
        maxLength={100}
        hint="What the key is for. Shown in lists and in the audit log."
      />
      <Checks legend="Scopes" layout="row" all={SCOPES} chosen={scopes} onChosen={setScopes} />
      <TextField
        label="Org"
        value={org}
        onValue={setOrg}
        readOnly={boundOrg() !== null}
        hint="The key works for this org only. Leave empty for all orgs."
      />
      <TimeField
        label="Expires"
        value={expires}
        onValue={setExpires}
        hint={`Leave empty for no expiry. Time zone: ${ZONE}.`}
      />
    </FormDialog>
  );
}
