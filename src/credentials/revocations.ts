import { ACCESS_TOKEN_SECS } from '../core/identity/account.ts';
import { CLOCK_SKEW_MS } from '../core/identity/token-claims.ts';
import type { Clock } from '../ports/ports.ts';

/**
 * Tokens of the subject with an epoch below `epoch` are revoked. Needed only until the last of them has expired. A
 * session is a subject, too: it ends once.
 */
export type Revocation = { readonly subject: string; readonly epoch: number; readonly untilMs: number };

export type RevocationStore = {
  all(): Iterable<Revocation>;
  put(revocation: Revocation): Promise<void>;
  remove(subject: string): Promise<void>;
};

export type RevocationListDeps = {
  readonly store: RevocationStore;
  readonly clock: Clock;
  /** Called when a revocation could not be stored. It still applies until this process ends. */
  readonly onError: (message: string, error: unknown) => void;
};

const KEPT_FOR_MS = ACCESS_TOKEN_SECS * 1000 + CLOCK_SKEW_MS;

/**
 * The accounts whose tokens were revoked, and the sessions that were ended. Keys are not among them: the tokens of a
 * key end with the key.
 */
export class RevocationList {
  readonly #deps: RevocationListDeps;
  readonly #bySubject = new Map<string, Revocation>();
  readonly #listeners: ((subject: string) => void)[] = [];

  constructor(deps: RevocationListDeps) {
    this.#deps = deps;
    for (const revocation of deps.store.all()) this.#bySubject.set(revocation.subject, revocation);
  }

  /**
   * In force when this returns. An epoch lower than the known one changes nothing. The same epoch again only keeps the
   * revocation for longer, because some of its tokens may still be in use; no listener is called.
   */
  revoke(subject: string, epoch: number): void {
    this.#put(subject, epoch, subject);
  }

  /**
   * Ends the tokens of the session. Listeners drop what they keep of its account, also of other sessions, whose tokens
   * are then verified again.
   */
  endSession(sessionId: string, account: string): void {
    this.#put(subjectOfSession(sessionId), 1, account);
  }

  isSessionEnded(sessionId: string): boolean {
    return this.#bySubject.has(subjectOfSession(sessionId));
  }

  #put(subject: string, epoch: number, heldBy: string): void {
    const known = this.#bySubject.get(subject)?.epoch ?? 0;
    if (epoch < known || epoch === 0) return;
    const revocation = { subject, epoch, untilMs: this.#deps.clock.nowMs() + KEPT_FOR_MS };
    this.#bySubject.set(subject, revocation);
    if (epoch === known) return;
    for (const listener of this.#listeners) listener(heldBy);
    this.#deps.store
      .put(revocation)
      .catch((error: unknown) => this.#deps.onError('writing a revocation to disk', error));
  }

  isRevoked(subject: string, epoch: number): boolean {
    return epoch < (this.#bySubject.get(subject)?.epoch ?? 0);
  }

  onRevoked(listener: (subject: string) => void): void {
    this.#listeners.push(listener);
  }

  /** Drops revocations whose tokens have all expired. Call it every few minutes. */
  prune(): void {
    const nowMs = this.#deps.clock.nowMs();
    for (const { subject, untilMs } of this.#bySubject.values()) {
      if (untilMs > nowMs) continue;
      this.#bySubject.delete(subject);
      this.#deps.store
        .remove(subject)
        .catch((error: unknown) => this.#deps.onError('removing an expired revocation', error));
    }
  }

  get size(): number {
    return this.#bySubject.size;
  }
}

const subjectOfSession = (sessionId: string): string => `session:${sessionId}`;
