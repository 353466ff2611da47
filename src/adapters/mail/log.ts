/** The mailer of a gateway without a relay: it sends nothing. */
import type { Mailer } from '../../gateway/ports.ts';

export type MailLog = { info(fields: object, message: string): void; warn(fields: object, message: string): void };

/** Logs recipient and subject. The text is left out on purpose: it carries the reset token (spec: Authentication 13). */
export function createLogMailer(log: MailLog): Mailer {
  return {
    send: async ({ to, subject }) => log.info({ to, subject }, 'mail not sent: no relay is configured'),
  };
}
