/** Webhooks and what waits for them: those of this gateway, or of all gateways that act as one. */
import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Webhook, WebhookStatus } from '../core/webhooks/webhook.ts';

/** The part of each webhook that every gateway knows. */
export type KnownHook = Pick<Webhook, 'id' | 'events' | 'orgId' | 'disabledAtMs'>;

/** `waiting`: messages of all hooks. */
export type KnownHooks = { readonly hooks: readonly KnownHook[]; readonly waiting: number };

/** A message to be sent, within the time that its hook was taken for. */
export type TakenCall = {
  readonly hookId: string;
  readonly url: string;
  readonly secret: string;
  readonly id: string;
  readonly body: string;
  /** How many calls have failed in a row. */
  readonly failures: number;
};

export type CallNote = {
  readonly hookId: string;
  readonly id: string;
  /** Undefined: it has arrived. */
  readonly failure: { readonly reason: string; readonly retryMs: number } | undefined;
};

/** The state of a webhook after a failed call. `lost`: the messages that waited, if the webhook is disabled now. */
export type FailedHook = Pick<Webhook, 'failures' | 'failingSinceMs' | 'disabledAtMs'> & { readonly lost: number };

/** Faults of the database: `store_unreachable`; also where this run may not write any more. */
export type WebhookStore = {
  known(): Promise<Result<KnownHooks, Fault>>;
  /** Newest first. */
  list(): Promise<Result<readonly WebhookStatus[], Fault>>;
  /** False where there are as many already. */
  create(hook: Webhook, most: { readonly inAll: number; readonly ofOrg: number }): Promise<Result<boolean, Fault>>;
  /** Makes the subject its maker. False where there is no such webhook any more. */
  give(id: string, to: string): Promise<Result<boolean, Fault>>;
  /** With all that waits for it. */
  remove(id: string): Promise<Result<void, Fault>>;
  /** Hooks that are due, each with its oldest message. For so long nobody else calls them. */
  take(forMs: number, most: number): Promise<Result<readonly TakenCall[], Fault>>;
  /** Records the result of a call. Undefined if it arrived, or the webhook is another run's by now. */
  note(note: CallNote): Promise<Result<FailedHook | undefined, Fault>>;
};

export type SharedMessage = {
  readonly id: string;
  readonly hookId: string;
  readonly body: string;
  /** Several gateways may report it, under the same id: the first counts. */
  readonly isOnce: boolean;
};

export type MessageWrites = {
  /** `isHeld`: not to be sent while this run is there, until it is let go. */
  readonly added: readonly (SharedMessage & { readonly isHeld: boolean })[];
  readonly letGo: readonly string[];
  readonly withdrawn: readonly string[];
  /** How many of a hook were dropped before they got here. */
  readonly dropped: ReadonlyMap<string, number>;
};

export type SharedWebhooks = WebhookStore & {
  /** Enters what is not there yet, in this order. Answers how many it has entered. */
  adopt(hooks: readonly Webhook[]): Promise<Result<number, Fault>>;
  /** May be repeated. Answers how many messages were dropped because too many wait. */
  write(
    writes: MessageWrites,
    most: { readonly number: number; readonly bytes: number },
  ): Promise<Result<number, Fault>>;
};
