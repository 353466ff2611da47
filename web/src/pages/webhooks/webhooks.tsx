/** Webhooks: what other programs are told, and whether it arrives. */
import { useState } from 'preact/hooks';
import type { Webhook } from '../../base/api-types.ts';
import { count, plural } from '../../base/format.ts';
import { boundOrg, call, can, session } from '../../session/session.ts';
import { PagedTable } from '../../ui/data-table.tsx';
import { ask, FormDialog, openDialog, showSecret } from '../../ui/dialog.tsx';
import { Checks, TextField } from '../../ui/fields.tsx';
import { Ago, Empty, PageHead, State, Tag } from '../../ui/names.tsx';
import { attempt, notify } from '../../ui/notices.tsx';
import { pageReader } from '../../ui/read.ts';
import { usePages } from '../../ui/resource.ts';
import { EVENTS } from './events.ts';

const RENEW_MS = 10_000;

export function WebhooksPage() {
  const pages = usePages<Webhook>('webhooks', pageReader('/api/v1/webhooks', 'webhooks'), {
    isOff: !can('admin'),
    everyMs: RENEW_MS,
  });
  if (!can('admin'))
    return (
      <div class="page">
        <PageHead title="Webhooks" />
        <Empty>Only administrators see webhooks.</Empty>
      </div>
    );
  return (
    <div class="page">
      <PageHead
        title="Webhooks"
        note="Signed calls to your own programs when something happens: at least once, in order, tried again for a day."
      >
        <button type="button" class="solid" onClick={() => askWebhook(pages.reload)}>
          Create webhook
        </button>
      </PageHead>
      <PagedTable
        label="Webhooks"
        pages={pages}
        empty="No webhooks yet. Use “Create webhook” to have a program told of approvals, halts, violations and budgets."
        keyOf={({ id }) => id}
        columns={[
          { title: 'URL', isName: true, class: 'mono', cell: ({ url }) => url },
          { title: 'Events', cell: ({ events }) => events.map((event) => <Tag key={event}>{event}</Tag>) },
          { title: 'Org', cell: ({ org_id: org }) => org ?? 'all' },
          { title: 'State', cell: (hook) => <HookState hook={hook} /> },
          {
            title: 'Waiting',
            class: 'number',
            cell: ({ waiting, dropped }) => `${count(waiting)}${dropped > 0 ? ` (${count(dropped)} missed)` : ''}`,
          },
          { title: 'Created', class: 'nowrap', cell: (hook) => <Ago at={hook.created_at} /> },
          { title: 'Made by', class: 'mono', cell: ({ created_by: maker }) => maker },
          { title: 'Control', class: 'row-actions', cell: (hook) => <Actions hook={hook} onDone={pages.reload} /> },
        ]}
      />
    </div>
  );
}

function HookState({
  hook: { disabled_at: disabled, failing_since: failing, last_error: error },
}: {
  readonly hook: Webhook;
}) {
  if (disabled === null && failing === null) return <State word="active" />;
  return (
    <>
      <State word={disabled === null ? 'failed' : 'disabled'} />
      <span class="reason">
        {error} <Ago at={disabled ?? failing} />
      </span>
    </>
  );
}

function Actions({ hook, onDone }: { readonly hook: Webhook; readonly onDone: () => Promise<void> }) {
  const path = `/api/v1/webhooks/${encodeURIComponent(hook.id)}`;
  const test = () =>
    attempt(async () => {
      await call('POST', `${path}/test`);
      notify('A test message is on its way.');
      await onDone();
    });
  const remove = (): void =>
    ask({
      title: 'Delete this webhook?',
      text: `It is told nothing more${hook.waiting > 0 ? `, and ${plural(hook.waiting, 'message')} that wait are dropped` : ''}.`,
      subject: hook.url,
      confirm: 'Delete',
      onConfirm: async () => {
        await call('DELETE', path);
        await onDone();
      },
    });
  const takeOver = (): void =>
    ask({
      title: 'Take over this webhook?',
      text: `It was made by ${hook.created_by} and would end with that credential. Once it is yours, it ends with yours.`,
      subject: hook.url,
      confirm: 'Take over',
      isHarmless: true,
      onConfirm: async () => {
        await call('POST', `${path}/take-over`);
        await onDone();
      },
    });
  return (
    <>
      <button type="button" class="ghost" aria-label={`Test ${hook.url}`} onClick={test}>
        Test
      </button>
      {session.value?.subject !== hook.created_by && (
        <button type="button" class="ghost" aria-label={`Take over ${hook.url}`} onClick={takeOver}>
          Take over
        </button>
      )}
      <button type="button" class="ghost danger" aria-label={`Delete ${hook.url}`} onClick={remove}>
        Delete
      </button>
    </>
  );
}

const askWebhook = (onDone: () => Promise<void>): void =>
  openDialog((onClose) => <WebhookDialog onClose={onClose} onDone={onDone} />);

function WebhookDialog({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => Promise<void> }) {
  const [url, setUrl] = useState('');
  const [org, setOrg] = useState(boundOrg() ?? '');
  const [events, setEvents] = useState<readonly string[]>(['approval.requested', 'halt.created', 'violation']);
  const create = async (): Promise<void> => {
    const created = await call('POST', '/api/v1/webhooks', {
      url: url.trim(),
      events,
      ...(org.trim() === '' ? {} : { org_id: org.trim() }),
    });
    showSecret(
      'Signing secret',
      `What ${created.url} checks the signatures with. It will not be shown again.`,
      created.secret,
    );
    onClose();
    await onDone();
  };
  return (
    <FormDialog title="Create a webhook" submit="Create webhook" onSubmit={create} onClose={onClose}>
      <TextField label="URL" type="url" value={url} onValue={setUrl} required placeholder="https://" />
      <Checks legend="Events" layout="grid" all={EVENTS} chosen={events} onChosen={setEvents} />
      <TextField
        label="Org"
        value={org}
        onValue={setOrg}
        readOnly={boundOrg() !== null}
        hint="Events of this org only. Leave empty for all orgs."
      />
    </FormDialog>
  );
}
