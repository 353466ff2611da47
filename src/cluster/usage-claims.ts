import type { UsageKey } from '../core/outcome.ts';
import type { UsageClaim, UsageIds } from '../ports/cluster.ts';
import { within } from '../system/clock.ts';

export type UsageClaimsOptions = {
  readonly store: UsageIds;
  /** Whether the database has not been reached for longer than a lease lasts. */
  readonly isCutOff: () => boolean;
  /** A clock that nobody sets. */
  readonly steadyMs: () => number;
  readonly onError: (error: unknown, doing: string) => void;
};

/** A statement takes 9 ms for this many. */
const MOST_AT_ONCE = 1_000;
/** How long a record waits for the database, or for another gateway that counts the same id at this moment. */
const WAIT_MS = 3_000;
const RETRY_MS = 20;
/** How often the database is told again what it has not taken. */
const SETTLE_AGAIN_MS = 1_000;
/** Beyond it the oldest are let go: they may be counted once more elsewhere. */
const MOST_UNSETTLED = 100_000;

type Claim = { readonly key: UsageKey; readonly deadlineMs: number; readonly done: (verdict: UsageClaim) => void };

const nameOf = ({ agent, usageId }: UsageKey): string => `${agent} ${usageId}`;

/**
 * Has each usage id counted by one gateway of the cluster: claimed first, counted here, and then settled, all before
 * the answer. A claim that was never settled falls to whoever claims the id once the run that had made it has ended.
 */
export class UsageClaims {
  readonly #options: UsageClaimsOptions;
  #claims: Claim[] = [];
  #isClaiming = false;
  readonly #unsettled = new Map<string, UsageKey>();
  #settling: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: UsageClaimsOptions) {
    this.#options = options;
  }

  /**
   * Whether this gateway is to count the record. Cut off from the database it is: money that was spent is counted, even
   * if a retry that arrives elsewhere counts once more. While the database is only slow, a retry finds out.
   */
  claim(key: UsageKey): Promise<UsageClaim> {
    const { isCutOff, steadyMs } = this.#options;
    const nowMs = steadyMs();
    if (isCutOff()) return Promise.resolve('mine');
    return new Promise((done) => {
      this.#claims.push({ key, deadlineMs: nowMs + WAIT_MS, done });
      if (!this.#isClaiming) void this.#claimAll();
    });
  }

  /** Call it when the record is saved. Resolves when all gateways know that it is counted, or the database is away. */
  async settle(key: UsageKey): Promise<void> {
    const oldest = this.#unsettled.size < MOST_UNSETTLED ? undefined : this.#unsettled.keys().next().value;
    if (oldest !== undefined) this.#unsettled.delete(oldest);
    this.#unsettled.set(nameOf(key), key);
    if (this.#options.isCutOff()) return this.#settleLater();
    await within(WAIT_MS, this.#settleSoon());
  }

  stop(): void {
    clearTimeout(this.#retry);
  }

  async #claimAll(): Promise<void> {
    this.#isClaiming = true;
    // Claims of one turn of the event loop are made together.
    await Promise.resolve();
    while (this.#claims.length > 0) {
      const claims = this.#claims.splice(0, MOST_AT_ONCE);
      const verdicts = await this.#verdictsOn(claims.map(({ key }) => key));
      const nowMs = this.#options.steadyMs();
      let isWaiting = false;
      for (const [at, claim] of claims.entries()) {
        const verdict = verdicts[at] ?? 'busy';
        isWaiting ||= verdict === 'busy' && nowMs < claim.deadlineMs;
        if (verdict === 'busy' && nowMs < claim.deadlineMs) this.#claims.push(claim);
        else claim.done(verdict);
      }
      if (isWaiting) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    this.#isClaiming = false;
  }

  async #verdictsOn(keys: readonly UsageKey[]): Promise<readonly UsageClaim[]> {
    const { isCutOff, onError, store } = this.#options;
    try {
      const claimed = await within(WAIT_MS, store.claim(keys));
      if (claimed?.ok === true) return claimed.value;
      if (claimed?.fault.kind === 'replaced') return keys.map(() => 'busy'); // this run may count nothing any more
    } catch (error) {
      onError(error, 'claiming usage ids');
    }
    const verdict = isCutOff() ? 'mine' : 'busy';
    return keys.map(() => verdict);
  }

  /** Settles claims of the same moment together, one statement after the other. */
  #settleSoon(): Promise<void> {
    this.#settling ??= Promise.resolve()
      .then(() => {
        this.#settling = undefined;
        return this.#settleAll();
      })
      .catch((error: unknown) => this.#options.onError(error, 'settling usage ids'));
    return this.#settling;
  }

  async #settleAll(): Promise<void> {
    while (this.#unsettled.size > 0) {
      const keys = [...this.#unsettled.values()].slice(0, MOST_AT_ONCE);
      for (const key of keys) this.#unsettled.delete(nameOf(key));
      const settled = await this.#options.store.settle(keys);
      if (settled.ok) continue;
      if (settled.fault.kind === 'replaced') return;
      for (const key of keys) this.#unsettled.set(nameOf(key), key);
      return this.#settleLater();
    }
  }

  #settleLater(): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#settleSoon(), SETTLE_AGAIN_MS).unref();
  }
}
