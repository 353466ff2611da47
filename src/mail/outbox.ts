/** A bounded queue of e-mails: each is tried a few times, and a shutdown waits for them a limited time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Backlog } from '../fairness/backlog.ts';
import type { Mail, Mailer } from '../ports/ports.ts';
import { within } from '../system/clock.ts';
import type { TroubleLog } from '../system/log.ts';
import type { MailTransport } from './smtp.ts';

export type OutboxOptions = {
  readonly capacity?: number;
  readonly concurrency?: number;
  /** Pauses between one attempt and the next; one more attempt than pauses is made. */
  readonly retryPausesMs?: readonly number[];
};

const DEFAULTS = { capacity: 500, concurrency: 4, retryPausesMs: [2_000, 15_000, 60_000] } as const;

export class Outbox implements Mailer {
  readonly #transport: MailTransport;
  readonly #log: TroubleLog;
  readonly #options: Required<OutboxOptions>;
  readonly #backlog: Backlog;
  /** Ends the pauses: at shutdown the attempts that are left follow each other at once. */
  readonly #closing = new AbortController();

  constructor(transport: MailTransport, log: TroubleLog, options: OutboxOptions = {}) {
    this.#transport = transport;
    this.#log = log;
    this.#options = { ...DEFAULTS, ...options };
    const { capacity, concurrency } = this.#options;
    this.#backlog = new Backlog({
      capacity,
      concurrency,
      onError: (error) => log.warn('sending an e-mail failed', { err: error }),
    });
  }

  send(mail: Mail): Promise<void> {
    return new Promise((resolve) => {
      const isTaken = !this.#closing.signal.aborted && this.#backlog.push(() => this.#deliver(mail).finally(resolve));
      if (isTaken) return;
      this.#log.warn('e-mail not sent: the outbox is full or closed', describe(mail));
      resolve();
    });
  }

  /** Lets what is on its way finish within the time, then cuts it off. */
  async close(timeoutMs: number): Promise<void> {
    this.#closing.abort();
    await within(timeoutMs, this.#backlog.idle());
    this.#transport.close();
    await this.#backlog.idle();
  }

  async #deliver(mail: Mail): Promise<void> {
    for (const pauseMs of [...this.#options.retryPausesMs, undefined]) {
      const delivery = await this.#transport.deliver(mail);
      if (delivery.kind === 'delivered') return this.#log.info('e-mail sent', describe(mail));
      const isLast = pauseMs === undefined || !delivery.retry;
      this.#log.warn(isLast ? 'e-mail not sent; giving up' : 'e-mail not sent yet; retrying', {
        ...describe(mail),
        cause: delivery.cause,
      });
      if (isLast) return;
      await sleep(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => undefined); // woken by the shutdown
    }
  }
}

/** Never the text: it carries the reset token. */
const describe = ({ to, subject }: Mail) => ({ to, subject });
