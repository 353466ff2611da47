/** Events that webhooks can subscribe to, in the order of the gateway. */
import type { Webhook } from '../../base/api-types.ts';

export const EVENTS: readonly Webhook['events'][number][] = [
  'approval.requested',
  'approval.decided',
  'approval.expired',
  'halt.created',
  'halt.released',
  'budget.threshold',
  'budget.exceeded',
  'violation',
  'policy.reload_failed',
  'audit.unwritable',
  'webhook.disabled',
];
