/** Webhooks, with what the embedded store kept of them; in a cluster, those of all gateways. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import type { Closing } from '../../ports/closing.ts';
import type { Clock } from '../../ports/ports.ts';
import type { Logger } from '../../system/log.ts';
import { packageVersion } from '../../system/package-files.ts';
import type { WebhookDeps } from '../../webhooks/hooks.ts';
import { OwnWebhooks } from '../../webhooks/own.ts';
import type { WebhookSharing } from '../../webhooks/shared.ts';
import { Webhooks } from '../../webhooks/webhooks.ts';
import { WebhookLink } from './webhook-link.ts';

export type WebhookStart = Pick<WebhookDeps, 'states' | 'audit' | 'onError' | 'resetsAtMs'> & {
  readonly log: Logger;
  readonly closers: Closing;
  readonly clock: Clock;
  /** Undefined for a gateway that is alone. */
  readonly shared: WebhookSharing | undefined;
};

const SECRET_BYTES = 32;

/** No calls are made until it is opened. */
export function startWebhooks(config: Config, { closers, clock, shared, ...opened }: WebhookStart): Webhooks {
  const { log } = opened;
  const isPrivateAllowed = config.SVC_WEBHOOKS_ALLOW_PRIVATE;
  const link = new WebhookLink({ isPrivateAllowed, version: packageVersion() }, (message) =>
    log.error('calling webhooks failed', { error: message }),
  );
  const deps: WebhookDeps = {
    ...opened,
    isPrivateAllowed,
    // Gateways of a cluster go by one clock, which the main thread knows.
    send: (call) => link.send({ ...call, atMs: shared === undefined ? undefined : clock.nowMs() }),
    nowMs: () => clock.nowMs(),
    clocks: { steadyMs: () => performance.now(), wallMs: Date.now },
    after: (ms, call) => {
      const timer = setTimeout(call, ms).unref();
      return () => clearTimeout(timer);
    },
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
