/** Webhooks of a gateway in a cluster: those of all gateways. */
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Barrier, RunId } from '../ports/cluster.ts';
import { createPostgresWebhooks } from '../stores/postgres/cluster/webhooks.ts';
import type { Postgres } from '../stores/postgres/postgres.ts';
import type { StartWait } from '../stores/postgres/start-wait.ts';
import type { WebhookDeps, Webhooks } from '../webhooks/hooks.ts';
import { ClusterWebhooks } from '../webhooks/shared.ts';

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
  const clocks = { steadyMs: () => performance.now(), wallMs: Date.now };
  let webhooks: ClusterWebhooks | undefined;
  return {
    open: (deps) => {
      webhooks = new ClusterWebhooks({ ...deps, store, barrier, clocks });
      return webhooks;
    },
    refresh: async () => (await webhooks?.refresh()) ?? ok(undefined),
    begin: async () => {
      if (webhooks === undefined) return;
      const begun = webhooks;
      const trouble = (): string | undefined => postgres.trouble;
      await wait.value(() => begun.bringHooks(), trouble);
      await begun.bringMessages();
      await wait.value(() => begun.refresh(), trouble);
    },
    close: async () => webhooks?.close(),
  };
}
