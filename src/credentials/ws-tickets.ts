/**
 * Tickets that stand for a bearer where a browser cannot send one: in the URL of a WebSocket (docs/spec.md, Live
 * stream).
 */

import type { SecretDigest } from '../core/base/ids.ts';
import { Multimap } from '../core/base/lists.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { refuseWithout } from '../core/identity/access.ts';
import { CallerQuota } from '../fairness/fair-queue.ts';
import type { Clock } from '../ports/ports.ts';
import type { Authenticated } from '../ports/use-case.ts';
import type { Authenticator } from './authenticate.ts';
import { digestIfIssued, mintSecret } from './secret-token.ts';

const TICKET_SECS = 30;
const TICKET_MS = TICKET_SECS * 1000;
/** Valid tickets at once. An org may have half of them, and a subject far fewer, so that nobody can use up all. */
const MAX_TICKETS = 10_000;
const MAX_TICKETS_OF_SUBJECT = 100;

export type WsTicketsDeps = { readonly authenticator: Authenticator; readonly clock: Clock };

type Ticket = { readonly authenticated: Authenticated; readonly untilMs: number };

/** Each ticket works once, in any thread, because all are kept here: only as hashes. */
export class WsTickets {
  readonly #deps: WsTicketsDeps;
  /** In the order of issue, which is that of expiry. */
  readonly #tickets = new Map<SecretDigest, Ticket>();
  readonly #bySubject = new Multimap<string, SecretDigest>();
  readonly #quota = new CallerQuota(MAX_TICKETS);
  #revocations = 0;

  constructor(deps: WsTicketsDeps) {
    this.#deps = deps;
    deps.authenticator.onRevoked((subject) => this.#drop(subject));
  }

  /** Faults: `unauthenticated`, `insufficient_scope`, `overloaded`. */
  async issue(bearer: string): Promise<Result<{ readonly ticket: string; readonly expiresInSecs: number }, Fault>> {
    const known = await this.#authenticate(bearer);
    if (!known.ok) return known;
    const { principal } = known.value;
    const refused = refuseWithout('read', principal);
    if (refused !== undefined) return refused;
    this.#dropExpired();
    const siblings = this.#bySubject.of(principal.subject);
    if (siblings.size >= MAX_TICKETS_OF_SUBJECT) this.#remove(siblings.values().next().value!);
    if (this.#tickets.size >= MAX_TICKETS || !this.#quota.tryAcquire(principal.orgId))
      return fail({ kind: 'overloaded', retryAfterSecs: 5, what: 'the number of unused tickets' });
    const { secret, digest } = mintSecret();
    this.#tickets.set(digest, { authenticated: known.value, untilMs: this.#deps.clock.nowMs() + TICKET_MS });
    this.#bySubject.add(principal.subject, digest);
    return ok({ ticket: secret, expiresInSecs: TICKET_SECS });
  }

  /**
   * Who asked for the ticket. `unauthenticated` when it was used before, has expired, or its owner's credential has
   * ended.
   */
  redeem(ticket: string): Result<Authenticated, Fault> {
    const taken = this.take(digestIfIssued(ticket));
    return taken.ok ? ok(taken.value.authenticated) : taken;
  }

  /** The same, by its digest, and how long ago the ticket was issued. */
  take(
    digest: SecretDigest | undefined,
  ): Result<{ readonly authenticated: Authenticated; readonly ageMs: number }, Fault> {
    const found = digest === undefined ? undefined : this.#tickets.get(digest);
    if (digest === undefined || found === undefined) return NO_TICKET;
    this.#remove(digest);
    const { authenticated, untilMs } = found;
    const nowMs = this.#deps.clock.nowMs();
    if (!isFresh(untilMs, nowMs) || nowMs >= authenticated.expiresAtMs) return NO_TICKET;
    return ok({ authenticated, ageMs: nowMs - untilMs + TICKET_MS });
  }

  get size(): number {
    return this.#tickets.size;
  }

  /** Verifies again if any credential was revoked meanwhile: it may be this one. */
  async #authenticate(bearer: string): Promise<Result<Authenticated, Fault>> {
    for (;;) {
      const before = this.#revocations;
      const known = await this.#deps.authenticator.authenticate(bearer);
      if (!known.ok || before === this.#revocations) return known;
    }
  }

  #drop(subject: string): void {
    this.#revocations += 1;
    for (const digest of [...this.#bySubject.of(subject)]) this.#remove(digest);
  }

  #dropExpired(): void {
    const nowMs = this.#deps.clock.nowMs();
    for (const [digest, { untilMs }] of this.#tickets) {
      if (isFresh(untilMs, nowMs)) return;
      this.#remove(digest);
    }
  }

  #remove(digest: SecretDigest): void {
    const owner = this.#tickets.get(digest)?.authenticated.principal;
    if (owner === undefined) return;
    const { subject, orgId } = owner;
    this.#tickets.delete(digest);
    this.#quota.release(orgId);
    this.#bySubject.delete(subject, digest);
  }
}

/** Further ahead, the clock was set back. */
const isFresh = (untilMs: number, nowMs: number): boolean => nowMs < untilMs && untilMs - nowMs <= TICKET_MS;

const NO_TICKET = fail({
  kind: 'unauthenticated',
  detail: 'the ticket is invalid, expired or already used; request a new one',
} as const);
