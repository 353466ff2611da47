/** Webhooks of a gateway in a cluster: those of all gateways. */
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Barrier, RunId } from '../ports/cluster.ts';
import { createPostgresWebhooks } from '../stores/postgres/cluster/webhooks.ts';
import type { Postgres } from '../stores/postgres/postgres.ts';
import type { StartWait } from '../stores/postgres/start-wait.ts';
import type { WebhookDeps } from '../webhooks/hooks.ts';
import { Outbox } from '../webhooks/outbox.ts';
import { Webhooks } from '../webhooks/webhooks.ts';

export type WebhookSharing = {
  open(deps: WebhookDeps): Webhooks;
  /** Takes over what other gateways have changed. */
  refresh(): Promise<Result<void, Fault>>;
  /** Brings what this gateway has of its own. Call it once it has joined. */
  begin(): Promise<void>;
  /** Call it before it leaves. */
  close(): Promise<void>;
};

type Sharing = {
  readonly postgres: Postgres;
  readonly run: RunId;
  readonly barrier: Barrier;
  readonly wait: StartWait;
};

export function shareWebhooks({ postgres, run, barrier, wait }: Sharing): WebhookSharing {
  const store = createPostgresWebhooks(postgres, run);
  let opened: { readonly webhooks: Webhooks; readonly outbox: Outbox } | undefined;
  return {
    open: (deps) => {
      const outbox = new Outbox({ ...deps, store });
      const known = { hooks: [], waiting: 0 };
      const webhooks = new Webhooks({ ...deps, store, messages: outbox, barrier, known });
      opened = { webhooks, outbox };
      return webhooks;
    },
    refresh: async () => (await opened?.webhooks.refresh()) ?? ok(undefined),
    begin: async () => {
      if (opened === undefined) return;
      const { webhooks, outbox } = opened;
      const trouble = (): string | undefined => postgres.trouble;
      await wait.value(() => outbox.bringHooks(), trouble);
      await outbox.bringMessages();
      await wait.value(() => webhooks.refresh(), trouble);
    },
    close: async () => opened?.webhooks.close(),
  };
}
