/** Webhooks of a gateway in a cluster: those of all gateways. */
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Barrier } from '../ports/cluster.ts';
import type { SharedWebhooks } from '../ports/webhook-store.ts';
import type { WebhookDeps } from './hooks.ts';
import { Outbox } from './outbox.ts';
import { Webhooks } from './webhooks.ts';

export type WebhookSharing = {
  open(deps: WebhookDeps): Webhooks;
  /** Takes over what other gateways have changed. */
  refresh(): Promise<Result<void, Fault>>;
  /** Brings what this gateway has of its own. Call it once it has joined. */
  begin(): Promise<void>;
  /** Call it before it leaves. */
  close(): Promise<void>;
};

/** `wait`: asks again until the store can be reached. */
export function shareWebhooks(
  store: SharedWebhooks,
  barrier: Barrier,
  wait: <T>(ask: () => Promise<Result<T, Fault>>) => Promise<T>,
): WebhookSharing {
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
      await wait(() => outbox.bringHooks());
      await outbox.bringMessages();
      await wait(() => webhooks.refresh());
    },
    close: async () => opened?.webhooks.close(),
  };
}
