/** Webhooks, with what the embedded store kept of them. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Governor } from '../core/governor.ts';
import type { Clock, StateStore } from '../ports/ports.ts';
import type { AuditLink } from '../threads/audit/audit-link.ts';
import { WebhookLink } from '../threads/webhooks/webhook-link.ts';
import { WebhookKeeper } from '../webhooks/keeper.ts';
import { packageVersion } from './package-files.ts';
import type { StartContext } from './start-context.ts';

export type WebhookStart = {
  readonly states: StateStore;
  readonly governor: Governor;
  readonly audit: AuditLink;
  readonly clock: Clock;
  readonly onError: (error: unknown, doing: string) => void;
};

const SECRET_BYTES = 32;

/** No calls are made until it is opened. */
export function startWebhooks({ config, log, closers }: StartContext, start: WebhookStart): WebhookKeeper {
  const { governor, clock, ...deps } = start;
  const isPrivateAllowed = config.SVC_WEBHOOKS_ALLOW_PRIVATE;
  const link = new WebhookLink({ isPrivateAllowed, version: packageVersion() }, (message) =>
    log.error('calling webhooks failed', { error: message }),
  );
  const keeper = new WebhookKeeper({
    ...deps,
    log,
    isPrivateAllowed,
    send: (call) => link.send(call),
    nowMs: () => clock.nowMs(),
    after: (ms, call) => {
      const timer = setTimeout(call, ms).unref();
      return () => clearTimeout(timer);
    },
    resetsAtMs: (period) => governor.budgets.resetsAtMs(period),
    newId: randomUUID,
    newSecret: () => `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`,
  });
  closers.add('webhooks', () => {
    keeper.close();
    return link.close();
  });
  return keeper;
}
