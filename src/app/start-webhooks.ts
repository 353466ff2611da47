/** Webhooks, with what the embedded store kept of them; in a cluster, those of all gateways. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Governor } from '../core/governor.ts';
import type { Clock, StateStore } from '../ports/ports.ts';
import { packageVersion } from '../system/package-files.ts';
import type { AuditLink } from '../threads/audit/audit-link.ts';
import { WebhookLink } from '../threads/webhooks/webhook-link.ts';
import type { WebhookDeps } from '../webhooks/hooks.ts';
import { OwnWebhooks } from '../webhooks/own.ts';
import { Webhooks } from '../webhooks/webhooks.ts';
import type { WebhookSharing } from './start-cluster-webhooks.ts';
import type { StartContext } from './start-context.ts';

export type WebhookStart = {
  readonly states: StateStore;
  readonly governor: Governor;
  readonly audit: AuditLink;
  readonly clock: Clock;
  readonly onError: (error: unknown, doing: string) => void;
  /** Undefined for a gateway that is alone. */
  readonly shared: WebhookSharing | undefined;
};

const SECRET_BYTES = 32;

/** No calls are made until it is opened. */
export function startWebhooks({ config, log, closers }: StartContext, start: WebhookStart): Webhooks {
  const { governor, clock, shared, ...opened } = start;
  const isPrivateAllowed = config.SVC_WEBHOOKS_ALLOW_PRIVATE;
  const link = new WebhookLink({ isPrivateAllowed, version: packageVersion() }, (message) =>
    log.error('calling webhooks failed', { error: message }),
  );
  const deps: WebhookDeps = {
    ...opened,
    log,
    isPrivateAllowed,
    send: (call) => link.send(call),
    nowMs: () => clock.nowMs(),
    clocks: { steadyMs: () => performance.now(), wallMs: Date.now },
    after: (ms, call) => {
      const timer = setTimeout(call, ms).unref();
      return () => clearTimeout(timer);
    },
    resetsAtMs: (period) => governor.budgets.resetsAtMs(period),
    newId: randomUUID,
    newSecret: () => `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`,
  };
  const webhooks = shared?.open(deps) ?? openOwn(deps);
  closers.add('webhooks', async () => {
    // Webhooks of a cluster have ended before this gateway left it.
    if (shared === undefined) await webhooks.close();
    await link.close();
  });
  return webhooks;
}

function openOwn(deps: WebhookDeps): Webhooks {
  const own = new OwnWebhooks(deps);
  return new Webhooks({ ...deps, store: own, messages: own, barrier: { pass: async () => [] }, known: own.knownHooks });
}
