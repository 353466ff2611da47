/** Webhooks by name, for I/O threads: they end with their maker (docs/spec.md, Webhooks). */
import { ok, type Result } from '../core/base/result.ts';
import { type Fault, unauthenticated } from '../core/fault.ts';
import type { IsStillAdmin } from '../credentials/api-key-admin.ts';
import type { ApiKeys } from '../credentials/api-keys.ts';
import { type Made, type MadeKeys, makersBehind } from '../credentials/made-keys.ts';
import type { EndMadeWebhooks } from '../webhooks/hooks.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import type { UseCases } from './use-cases.ts';

export type WebhookUseCases = Pick<
  UseCases,
  'createWebhook' | 'listWebhooks' | 'getWebhook' | 'takeOverWebhook' | 'deleteWebhook' | 'testWebhook'
>;

export type WebhookUseCasesDeps = {
  readonly webhooks: Webhooks;
  readonly apiKeys: ApiKeys;
  readonly isStillAdmin: IsStillAdmin;
};

export function createWebhookUseCases({ webhooks, apiKeys, isStillAdmin }: WebhookUseCasesDeps): WebhookUseCases {
  return {
    createWebhook: async ({ principal, webhook }) => {
      const created = await webhooks.create(principal, webhook);
      // Its maker may have ended meanwhile, and what it made been looked for already.
      if (!created.ok || (await isStillAdmin(principal))) return created;
      const removed = await webhooks.remove({ principal, id: created.value.id });
      return removed.ok ? unauthenticated('the credential has just ended') : removed;
    },
    listWebhooks: async ({ principal, madeBy, ...listing }) => {
      if (madeBy === undefined) return webhooks.list(principal, listing);
      await apiKeys.lookAround(); // what is known here must do while the store cannot be reached
      return webhooks.list(principal, { ...listing, makers: makersBehind(apiKeys, madeBy) });
    },
    getWebhook: async (asked) => webhooks.get(asked),
    takeOverWebhook: (asked) => webhooks.takeOver(asked),
    deleteWebhook: (asked) => webhooks.remove(asked),
    testWebhook: (asked) => webhooks.test(asked),
  };
}

/** Ends the webhooks of those that have ended. */
export async function withWebhooks(
  webhooks: Pick<Webhooks, 'endMade'>,
  keys: Result<MadeKeys, Fault>,
  { actor, cascade }: Pick<EndMadeWebhooks, 'actor' | 'cascade'>,
): Promise<Result<Made, Fault>> {
  if (!keys.ok) return keys;
  const ended = await webhooks.endMade({ makers: keys.value.ended, actor, cascade });
  return ended.ok ? ok({ ...keys.value, webhooks: ended.value }) : ended;
}
