/** The mailer of a gateway without a relay: it sends nothing. */
import type { Mailer } from '../../gateway/ports.ts';

export type MailLog = { info(message: string, fields?: object): void; warn(message: string, fields?: object): void };

/** Logs recipient and subject. The text is left out on purpose: it carries the reset token (spec: Authentication 13). */
export function createLogMailer(log: MailLog): Mailer {
  return {
    send: async ({ to, subject }) => log.info('mail not sent: no relay is configured', { to, subject }),
  };
}
