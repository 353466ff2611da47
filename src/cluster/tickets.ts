import type { SecretDigest } from '../core/base/ids.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Answer, Membership, Peers } from '../ports/cluster.ts';
import type { Authenticated } from '../ports/use-case.ts';
import { PerSecond } from './per-second.ts';
import { homeOf } from './run.ts';

type Issued = { readonly ticket: string; readonly expiresInSecs: number };
export type TakenTicket = { readonly authenticated: Authenticated; readonly ageMs: number };

/** The tickets that this gateway has given out. */
export type OwnTickets = {
  issue(bearer: string): Promise<Result<Issued, Fault>>;
  /** Works once. Fault: `unauthenticated`. */
  take(digest: SecretDigest | undefined): Result<TakenTicket, Fault>;
};

export type SharedTicketsOptions = {
  readonly own: OwnTickets;
  readonly membership: Membership;
  readonly peers: Peers;
  /** Undefined for a text that was never issued. */
  readonly digestOf: (secret: string) => SecretDigest | undefined;
  readonly onRevoked: (listener: (subject: string) => void) => void;
  /** A clock that nobody sets. */
  readonly steadyMs: () => number;
};

/** Anybody can make up tickets, and each is a message that wakes all gateways. */
const ASKED_PER_SECOND = 200;
/** A gateway that does not act by a revocation after this time does not answer either. */
const REVOKED_LATE_MS = 5_000;
/** Longer than a ticket is valid. */
const REVOKED_KEPT_MS = 60_000;

const TOO_MANY: Result<never, Fault> = fail({
  kind: 'overloaded',
  retryAfterSecs: 1,
  what: 'the number of tickets of other gateways',
});
const NO_TICKET: Result<never, Fault> = fail({
  kind: 'unauthenticated',
  detail: 'the ticket is invalid, expired or already used; request a new one',
});

/**
 * Tickets of all gateways. One names the gateway that has given it out, which alone decides, once, whether it is good:
 * wherever else it is presented, that gateway is asked.
 */
export class SharedTickets {
  readonly #options: SharedTicketsOptions;
  readonly #home: string;
  /** When the credentials of a subject ended here, the oldest first. */
  readonly #revokedAtMs = new Map<string, number>();
  readonly #allowance = new PerSecond(ASKED_PER_SECOND);

  constructor(options: SharedTicketsOptions) {
    this.#options = options;
    this.#home = homeOf(options.membership.self);
    options.onRevoked((subject) => this.#noteRevoked(subject));
    options.peers.serve('ticket', async ({ digest }) => this.#answer(digest));
  }

  async issue(bearer: string): Promise<Result<Issued, Fault>> {
    const issued = await this.#options.own.issue(bearer);
    return issued.ok ? ok({ ...issued.value, ticket: `${this.#home}.${issued.value.ticket}` }) : issued;
  }

  /** Faults: `unauthenticated`; `unreachable_gateway`, `overloaded`. */
  async redeem(ticket: string): Promise<Result<Authenticated, Fault>> {
    const { own, digestOf, membership, peers, steadyMs } = this.#options;
    const dot = ticket.indexOf('.');
    const home = ticket.slice(0, Math.max(dot, 0));
    const digest = digestOf(ticket.slice(dot + 1));
    if (home === this.#home) {
      const taken = own.take(digest);
      return taken.ok ? ok(taken.value.authenticated) : taken;
    }
    const issuer = membership.others().find(({ run }) => homeOf(run) === home);
    if (digest === undefined || issuer === undefined) return NO_TICKET;
    const nowMs = steadyMs();
    if (!this.#allowance.take(nowMs)) return TOO_MANY;
    const asked = await peers.ask(issuer.run, 'ticket', { digest });
    return asked.ok ? this.#authenticatedBy(asked.value, nowMs) : asked;
  }

  /** A ticket may have been given out by a gateway that did not know yet what is revoked here. */
  #authenticatedBy({ taken }: Answer<'ticket'>, askedMs: number): Result<Authenticated, Fault> {
    if (taken === undefined) return NO_TICKET;
    const { principal, expiresAtMs = Infinity, ageMs } = taken;
    const revokedAtMs = this.#revokedAtMs.get(principal.subject) ?? Number.NEGATIVE_INFINITY;
    return revokedAtMs >= askedMs - ageMs - REVOKED_LATE_MS ? NO_TICKET : ok({ principal, expiresAtMs });
  }

  #answer(digest: SecretDigest): Answer<'ticket'> {
    const { own, membership } = this.#options;
    // Revocations from elsewhere meanwhile are not known here.
    if (!membership.isLeased) return {};
    const taken = own.take(digest);
    if (!taken.ok) return {};
    const {
      ageMs,
      authenticated: { principal, expiresAtMs },
    } = taken.value;
    return { taken: { principal, ageMs, ...(expiresAtMs !== Infinity && { expiresAtMs }) } };
  }

  #noteRevoked(subject: string): void {
    const nowMs = this.#options.steadyMs();
    for (const [known, atMs] of this.#revokedAtMs) {
      if (nowMs - atMs < REVOKED_KEPT_MS) break;
      this.#revokedAtMs.delete(known);
    }
    this.#revokedAtMs.delete(subject);
    this.#revokedAtMs.set(subject, nowMs);
  }
}
