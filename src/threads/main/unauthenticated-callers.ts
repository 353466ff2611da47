/**
 * Checks without a credential that is known, of which anybody can send any number: they are denied all the same, but
 * only so many of a network are recorded one by one, and so many in all. The others are counted, and their numbers are
 * recorded every minute, so that neither the disk nor the retention of the log is at the mercy of unauthenticated
 * callers (docs/spec.md, Audit).
 */
import { type AuditDraft, NO_LINEAGE } from '../../core/audit/audit.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { CheckCommand } from '../../core/commands.ts';
import { NO_EFFECTS } from '../../core/effects.ts';
import type { Outcome } from '../../core/outcome.ts';
import { RateLimiter } from '../../fairness/rate-limit.ts';
import type { IoId } from '../protocol.ts';

export type UnauthenticatedOptions = {
  /** Checks of one network that are recorded one by one, a minute; 0: all. */
  readonly perMinute: number;
  /** Checks a minute and network that are answered at all (docs/spec.md, Rate limits); 0: all. */
  readonly checksPerMinute: number;
  /** The share of the log that is theirs is used up: all are counted, and all networks together. */
  readonly isShareFull: () => boolean;
};

/** Held until the doors say where it comes from. */
type Held = { readonly command: CheckCommand; readonly outcome: Outcome };

const REPORT_EVERY_MS = 60_000;
/** In all, this many networks' worth is recorded one by one: there are more networks than anybody can count. */
const NETWORKS_WORTH = 10;
/** Counted by themselves, and reported by themselves; all others together. */
const MAX_COUNTED = 1_000;
const MAX_REPORTED = 50;
const ALL = 'all';

export class UnauthenticatedCallers {
  readonly #options: UnauthenticatedOptions;
  readonly #ofNetwork: RateLimiter;
  readonly #ofAll: RateLimiter;
  readonly #checks: RateLimiter;
  readonly #held = new Map<IoId, Map<number, Held>>();
  /** By network, the checks that were not recorded since the last report. */
  #counts = new Map<string, number>();
  /** Counts networks that are not counted individually. */
  #others = 0;
  #sinceMs: number | undefined;

  constructor(options: UnauthenticatedOptions) {
    this.#options = options;
    this.#ofNetwork = new RateLimiter(options.perMinute);
    this.#ofAll = new RateLimiter(NETWORKS_WORTH * options.perMinute);
    this.#checks = new RateLimiter(options.checksPerMinute);
  }

  /** Keeps what was decided until `release`. The doors bound how many wait. */
  hold(io: IoId, id: number, held: Held): void {
    let ofThread = this.#held.get(io);
    if (ofThread === undefined) {
      ofThread = new Map();
      this.#held.set(io, ofThread);
    }
    ofThread.set(id, held);
  }

  /**
   * Returns the check to answer, now that its network is known: with its entry, or without if the limit is reached.
   * Undefined if no such check is held.
   */
  release(io: IoId, id: number, network: string, nowMs: number): Held | undefined {
    const ofThread = this.#held.get(io);
    const held = ofThread?.get(id);
    if (held === undefined) return undefined;
    ofThread!.delete(id);
    return { command: held.command, outcome: this.admit(held.outcome, network, nowMs) };
  }

  /** Call it when the thread is gone. */
  dropThread(io: IoId): void {
    this.#held.delete(io);
  }

  admit({ reply, effects }: Outcome, network: string, nowMs: number): Outcome {
    const permit = this.#checks.take(network, nowMs);
    if (!permit.ok) return { reply: permit, effects: NO_EFFECTS };
    // The network's own limit comes first: what exceeds it takes nothing from others.
    const isRecorded =
      !this.#options.isShareFull() && this.#ofNetwork.take(network, nowMs).ok && this.#ofAll.take(ALL, nowMs).ok;
    if (!isRecorded) {
      this.#count(network, nowMs);
      return { reply, effects: NO_EFFECTS };
    }
    const [first] = effects;
    if (first?.kind !== 'audit') return { reply, effects };
    const { draft } = first;
    return { reply, effects: [{ kind: 'audit', draft: { ...draft, payload: { ...draft.payload, network } } }] };
  }

  /** The entries that stand for all those left out, once a minute. Call it every second. */
  report(nowMs: number): readonly AuditDraft[] {
    if (this.#sinceMs === undefined) return [];
    if (nowMs >= this.#sinceMs && nowMs - this.#sinceMs < REPORT_EVERY_MS) return []; // else the clock was set back
    const since = rfc3339(this.#sinceMs);
    const most = this.#options.isShareFull() ? 0 : MAX_REPORTED;
    const networks = [...this.#counts].sort(([, one], [, other]) => other - one);
    const others = networks.slice(most).reduce((sum, [, count]) => sum + count, this.#others);
    this.#counts = new Map();
    this.#others = 0;
    this.#sinceMs = undefined;
    const drafts = networks.slice(0, most).map(([network, suppressed]) => draftOf({ network, suppressed, since }));
    return others === 0 ? drafts : [...drafts, draftOf({ suppressed: others, since })];
  }

  #count(network: string, nowMs: number): void {
    this.#sinceMs ??= nowMs;
    const count = this.#counts.get(network);
    if (count === undefined && this.#counts.size >= MAX_COUNTED) this.#others += 1;
    else this.#counts.set(network, (count ?? 0) + 1);
  }
}

/** Whether it is the answer to a caller that is not known. */
export function isUnauthenticated({ effects }: Outcome): boolean {
  const [effect] = effects;
  return effect?.kind === 'audit' && effect.draft.actor === 'anonymous';
}

const draftOf = (counted: {
  readonly network?: string;
  readonly suppressed: number;
  readonly since: string;
}): AuditDraft => ({
  eventType: 'ActionDenied',
  lineage: NO_LINEAGE,
  actor: 'anonymous',
  decision: 'deny',
  reason: 'more checks without a valid credential were denied than are recorded one by one',
  cause: 'credential',
  payload: { identity: 'unverified', ...counted },
});
