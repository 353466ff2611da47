/** How messages come to those who call: over the embedded store, or over the database of a cluster. */
import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';

export type NewMessage = {
  readonly hookId: string;
  readonly body: string;
  /** The cap whose excess it reports, if any: other gateways may report the same. */
  readonly cap?: string | undefined;
};

/** Told of messages that are there to be sent, and of how many were dropped because too many wait. */
export type MessageListener = { onReady(): void; onDropped(count: number): void };

export type Messages = {
  follow(listener: MessageListener): void;
  /**
   * The message is sent after those that wait, but not before it is let go. `saved` resolves once it would survive this
   * gateway; undefined where too many wait, and it is dropped.
   */
  hold(message: NewMessage): { readonly id: string; readonly saved: Promise<void> } | undefined;
  letGo(id: string): void;
  /** Withdraws a message: its event did not happen. */
  withdraw(id: string): void;
  /** Resolves with the id of a message that is saved and let go; undefined where too many wait. */
  add(message: NewMessage): Promise<Result<string | undefined, Fault>>;
  /** Resolves when what is due was written, or could not be. */
  close(): Promise<void>;
};
