/** The mailer of a gateway without a relay that works: it sends nothing. */
import type { Mailer } from '../../gateway/ports.ts';
import type { TroubleLog } from '../log.ts';

/**
 * Logs recipient and subject, and `why` nothing is sent. The text is left out on purpose: it carries the reset token
 * (spec: Authentication 13).
 */
export function createLogMailer(log: TroubleLog, why: string): Mailer {
  return {
    send: async ({ to, subject }) => log.info(`e-mail not sent: ${why}`, { to, subject }),
  };
}
