import { assert } from '../base/result.ts';
import type { CapsIndex } from './caps.ts';
import { TIERS } from './config.ts';
import { Envelope, type Epoch, Ledger, type LedgerRow, looseRow } from './envelope.ts';

/**
 * How many envelopes the sweep looks at for each one made. At 2, it is through the tree before the tree has doubled.
 */
const LOOKS_PER_ENVELOPE = 2;

/**
 * How many envelopes there may be: anybody with the write scope can make up agents to spend for, and what they have
 * spent has to be remembered until the month is over.
 */
export type TreeLimits = {
  /** Teams and agents of one org. */
  readonly ofOrg: number;
  /** Orgs, and teams and agents of all orgs together. */
  readonly ofAll: number;
  /** How many more may belong to registered agents, of which there is a limit of its own. */
  readonly forRegistered: number;
};

/** Every envelope there is: the global one at the root, below it orgs, teams and agents, made when first named. */
export class EnvelopeTree {
  readonly root: Envelope;
  readonly #caps: CapsIndex;
  readonly #ledger = new Ledger();
  #sequence = 0;
  #walk: Generator<Envelope> | undefined;
  #looksDue = 0;
  readonly #limits: TreeLimits;
  #size = 0;
  /** By its org, how many teams and agents have an envelope. */
  readonly #sizes = new Map<Envelope, number>();

  constructor(caps: CapsIndex, limits: TreeLimits) {
    this.#caps = caps;
    this.#limits = limits;
    this.root = new Envelope('global', '', undefined, this.#sequence, caps.capsOf('global', []), this.#ledger.take());
  }

  get isEmpty(): boolean {
    return this.root.children?.size === 0;
  }

  /** How many envelopes there are below the root. */
  get size(): number {
    return this.#size;
  }

  /**
   * The envelope at the end of the path: org, team, agent, or the beginning of it. Where there is no room for one that
   * is missing, the one above: money counts there, and in all above it.
   */
  at(names: readonly string[], isRegistered: boolean): Envelope {
    let envelope = this.root;
    for (const name of names) {
      const known = envelope.children?.get(name);
      if (known === undefined && !this.#hasRoom(envelope, isRegistered)) return envelope;
      envelope = known ?? this.#plant(envelope, name);
    }
    return envelope;
  }

  /** The same for reading only: an envelope that is missing is made, but not kept. */
  peekAt(...names: readonly string[]): Envelope {
    return names.reduce(
      (parent, name) => parent.children?.get(name) ?? this.#make(parent, name, looseRow()),
      this.root,
    );
  }

  /** Whether envelopes were made faster than sweeps have looked at them. */
  get isSweepDue(): boolean {
    return this.#looksDue > 0;
  }

  /** Gives everybody in these orgs the caps that hold now. */
  recap(orgIds: Iterable<string>): void {
    for (const orgId of orgIds) {
      const org = this.root.children?.get(orgId);
      if (org === undefined) continue;
      for (const envelope of bottomUp(org)) envelope.caps = this.#caps.capsOf(envelope.tier, envelope.path);
    }
  }

  all(): Iterable<Envelope> {
    return bottomUp(this.root);
  }

  /**
   * Looks at up to `most` envelopes, from where it last stopped, and removes those that are idle. Returns the removed
   * ones. While the clock is in doubt, what was spent in the period before is money, too.
   */
  sweep(most: number, epoch: Epoch, isInDoubt: boolean): Envelope[] {
    const removed: Envelope[] = [];
    this.#walk ??= bottomUp(this.root);
    for (let looked = 0; looked < most; looked += 1) {
      this.#looksDue = Math.max(0, this.#looksDue - 1);
      const { value: envelope } = this.#walk.next();
      if (envelope === undefined) {
        this.#walk = undefined;
        return removed;
      }
      if (envelope.parent === undefined || !envelope.isIdle(epoch, isInDoubt)) continue;
      envelope.removed = true;
      envelope.parent.children?.delete(envelope.name);
      this.#count(envelope, -1);
      this.#ledger.giveBack(envelope.row);
      removed.push(envelope);
    }
    return removed;
  }

  #plant(parent: Envelope, name: string): Envelope {
    this.#sequence += 1;
    this.#looksDue += LOOKS_PER_ENVELOPE;
    const envelope = this.#make(parent, name, this.#ledger.take());
    parent.children?.set(name, envelope);
    this.#count(envelope, 1);
    return envelope;
  }

  #hasRoom(parent: Envelope, isRegistered: boolean): boolean {
    const { ofOrg, ofAll, forRegistered } = this.#limits;
    const more = isRegistered ? forRegistered : 0;
    if (this.#size >= ofAll + more) return false;
    const org = orgOf(parent);
    return org === undefined || (this.#sizes.get(org) ?? 0) < ofOrg + more;
  }

  #count(envelope: Envelope, difference: 1 | -1): void {
    this.#size += difference;
    const org = orgOf(envelope);
    if (org === undefined) return;
    if (org === envelope) return void (difference === 1 ? this.#sizes.set(org, 0) : this.#sizes.delete(org));
    this.#sizes.set(org, (this.#sizes.get(org) ?? 0) + difference);
  }

  #make(parent: Envelope, name: string, row: LedgerRow): Envelope {
    const tier = TIERS[TIERS.indexOf(parent.tier) + 1];
    assert(tier !== undefined, 'nothing stands below an agent');
    const caps = this.#caps.capsOf(tier, [...parent.path, name]);
    return new Envelope(tier, name, parent, this.#sequence, caps, row);
  }
}

/** Undefined: it is the root. */
function orgOf(envelope: Envelope): Envelope | undefined {
  let at: Envelope | undefined = envelope;
  while (at !== undefined && at.tier !== 'org') at = at.parent;
  return at;
}

/** Children before their parent, so that a parent that loses its last child is looked at after that. */
function* bottomUp(envelope: Envelope): Generator<Envelope> {
  for (const child of envelope.children?.values() ?? []) yield* bottomUp(child);
  yield envelope;
}
