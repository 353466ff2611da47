/** Webhooks: HTTP calls that report what people must know (docs/spec.md, Webhooks). */

export const WEBHOOK_EVENTS = [
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
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

/** Sent on request only; webhooks cannot subscribe to it. */
export const TEST_EVENT = 'webhook.test';

/** Plain data, as it is stored. */
export type Webhook = {
  readonly id: string;
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  /** The org whose events it gets; null: those of every org, and those of none. */
  readonly orgId: string | null;
  /** `whsec_` and the base64 of the key that signs its calls. Kept as it is, as it is needed for each call. */
  readonly secret: string;
  readonly createdBy: string;
  readonly createdAtMs: number;
  /** Since when the calls fail; undefined: the last one succeeded. */
  readonly failingSinceMs: number | undefined;
  /** How many calls have failed in a row. */
  readonly failures: number;
  readonly lastError: string | undefined;
  readonly disabledAtMs: number | undefined;
  /** Messages that it missed, since too many waited or it was disabled. */
  readonly dropped: number;
};

/** `waiting`: messages that have not arrived yet. */
export type WebhookStatus = { readonly hook: Omit<Webhook, 'secret'>; readonly waiting: number };

/** Webhooks that a credential made, once it has ended: deleted with it, or kept on request. */
export type MadeWebhooks = { readonly deleted: readonly NamedWebhook[]; readonly kept: readonly NamedWebhook[] };
export type NamedWebhook = Pick<Webhook, 'id' | 'url'>;

/** An event before its webhooks are chosen. */
export type Notice = {
  readonly type: WebhookEvent;
  /** Whose event it is; null: only hooks that are bound to no org get it; `every`: all hooks may. */
  readonly org: { readonly id: string | null } | 'every';
  readonly data: Readonly<Record<string, unknown>>;
};

/** Whether the hook gets it. */
export const wants = (
  { events, orgId, disabledAtMs }: Pick<Webhook, 'events' | 'orgId' | 'disabledAtMs'>,
  { type, org }: Notice,
): boolean =>
  disabledAtMs === undefined &&
  events.includes(type) &&
  (orgId === null || org === 'every' || (org.id !== null && org.id === orgId));

/** A hook whose calls have failed for so long is disabled. */
export const GIVE_UP_AFTER_MS = 24 * 3_600_000;
