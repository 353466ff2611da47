/**
 * Checks without a credential that is known, of which anybody can send any number: they are denied all the same, but
 * only so many are recorded one by one. The others are counted, and their number is recorded every minute, so that
 * neither the disk nor the retention of the log is at the mercy of strangers (docs/spec.md, Audit).
 */
import { type AuditDraft, NO_LINEAGE } from '../../core/audit/audit.ts';
import { NO_EFFECTS } from '../../core/effects.ts';
import type { Outcome } from '../../core/outcome.ts';
import type { RateLimiter } from '../../limits/rate-limit.ts';

const REPORT_EVERY_MS = 60_000;
/** All strangers share a bucket: whatever they send is denied, so none can take anything from another. */
const ALL = 'strangers';

export class Strangers {
  readonly #limiter: RateLimiter;
  #suppressed = 0;
  #sinceMs = 0;

  constructor(limiter: RateLimiter) {
    this.#limiter = limiter;
  }

  /** The outcome of a check, without its entry if it is a stranger's and one too many. */
  filter(outcome: Outcome, nowMs: number): Outcome {
    const [effect] = outcome.effects;
    if (effect?.kind !== 'audit' || effect.draft.actor !== 'anonymous') return outcome;
    if (this.#limiter.take(ALL, nowMs).ok) return outcome;
    if (this.#suppressed === 0) this.#sinceMs = nowMs;
    this.#suppressed += 1;
    return { reply: outcome.reply, effects: NO_EFFECTS };
  }

  /** The entry that stands for all those left out, once a minute; undefined: none is due. Call it every second. */
  report(nowMs: number): AuditDraft | undefined {
    if (this.#suppressed === 0 || nowMs - this.#sinceMs < REPORT_EVERY_MS) return undefined;
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    return {
      eventType: 'ActionDenied',
      lineage: NO_LINEAGE,
      actor: 'anonymous',
      decision: 'deny',
      reason: 'more checks without a valid credential were denied than are recorded one by one',
      payload: { identity: 'unverified', suppressed, since: new Date(this.#sinceMs).toISOString() },
    };
  }
}
