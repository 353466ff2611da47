/** Rows of the embedded store: webhooks and their messages, in one table. */
import type { Webhook } from '../core/webhooks/webhook.ts';
import type { StateStore } from '../ports/ports.ts';

/** `number` counts up over all hooks, for their order after a restart. `isOnce`: of a cluster only. */
export type MessageRow = {
  readonly kind: 'message';
  readonly hookId: string;
  readonly id: string;
  readonly number: number;
  readonly body: string;
  readonly isOnce?: boolean;
};
type WebhookRow = { readonly kind: 'hook'; readonly hook: Webhook } | MessageRow;

export const TABLE = 'webhooks';
export const hookRowOf = (id: string): string => `hook:${id}`;
export const messageRowOf = (id: string): string => `message:${id}`;

/** The rows of earlier runs: hooks as they were made, messages in their order. */
export function rowsOf(states: Pick<StateStore, 'load'>): {
  readonly hooks: readonly Webhook[];
  readonly messages: readonly MessageRow[];
} {
  const rows = [...states.load(TABLE)].map(({ row }) => row as WebhookRow);
  return {
    hooks: rows
      .flatMap((row) => (row.kind === 'hook' ? [row.hook] : []))
      .sort((one, other) => one.createdAtMs - other.createdAtMs),
    messages: rows
      .flatMap((row) => (row.kind === 'message' ? [row] : []))
      .sort((one, other) => one.number - other.number),
  };
}
