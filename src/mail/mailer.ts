/** The mailer that a configuration calls for, and the one to fall back to (docs/spec.md, Mail). */
import type { Mail, Mailer } from '../ports/ports.ts';
import { within } from '../system/clock.ts';
import type { TroubleLog } from '../system/log.ts';
import { Outbox, type OutboxOptions } from './outbox.ts';
import { createSmtpTransport, problemWith, type SmtpOptions } from './smtp.ts';

// The mailer of a gateway without a relay that works: it sends nothing.

/**
 * Logs recipient and subject, and `why` nothing is sent. The text is left out on purpose: it carries the reset token
 * (docs/spec.md, Mail).
 */
function createLogMailer(log: TroubleLog, why: string): Mailer {
  return {
    send: async ({ to, subject }) => log.info(`e-mail not sent: ${why}`, { to, subject }),
  };
}

export type ClosableMailer = Mailer & {
  close(timeoutMs: number): Promise<void>;
  /** Whether mails are sent at all, as far as is known. */
  readonly canSend: boolean;
};

/**
 * Never fails: without a relay, with settings that cannot work, or when the relay knows neither host nor user, the
 * mailer logs instead of sending. A relay that is merely away at the start is not given up. The check runs beside the
 * start of the gateway; mail waits for its outcome.
 */
export function createMailer(
  smtp: SmtpOptions | undefined,
  log: TroubleLog,
  options: OutboxOptions = {},
): ClosableMailer {
  const logging = (why: string): ClosableMailer => ({
    ...createLogMailer(log, why),
    canSend: false,
    close: async () => undefined,
  });
  if (smtp === undefined) return logging('no relay is configured');
  const fallback = logging('the relay settings do not work');
  const problem = problemWith(smtp);
  if (problem !== undefined) {
    log.warn('no e-mail will be sent', { cause: problem });
    return fallback;
  }
  const transport = createSmtpTransport(smtp);
  const outbox = new Outbox(transport, log, options);
  let isCutOff = false;
  let canSend = true;
  const chosen = transport.check().then((check): Mailer => {
    if (check.kind === 'delivered' || isCutOff) return outbox; // which says of each mail that it was not sent
    log.warn(
      check.retry
        ? 'the mail relay does not respond yet'
        : 'no e-mail will be sent; fix the relay settings and restart',
      { cause: check.cause, host: smtp.host },
    );
    canSend = check.retry;
    return check.retry ? outbox : fallback;
  });
  return {
    get canSend() {
      return canSend;
    },
    send: async (mail: Mail) => (await chosen).send(mail),
    close: async (timeoutMs) => {
      const endMs = performance.now() + timeoutMs;
      // Mail sent before this call is queued first, to wait for the outcome of the check.
      await within(timeoutMs, chosen);
      isCutOff = true;
      await outbox.close(Math.max(0, endMs - performance.now()));
    },
  };
}
