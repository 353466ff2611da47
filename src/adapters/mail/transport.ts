/** A way to deliver mail, as the outbox uses it. */
import type { Mail } from '../../gateway/ports.ts';

/** One attempt at a delivery. `retry` tells whether another one may succeed. */
export type Delivery =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'failed'; readonly cause: string; readonly retry: boolean };

export type MailTransport = {
  deliver(mail: Mail): Promise<Delivery>;
  /** Connects and signs in, without sending anything. */
  check(): Promise<Delivery>;
  /** Cuts off what is under way, and makes every later attempt fail. */
  close(): void;
};
