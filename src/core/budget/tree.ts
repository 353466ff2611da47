import { assert } from '../base/result.ts';
import { TIERS, type Tier } from './config.ts';
import { type Caps, Envelope, type Epoch, Ledger, type LedgerRow, looseRow, NO_CAPS } from './envelope.ts';

/**
 * How many envelopes the sweep looks at for each one made. At 2, it is through the tree before the tree has doubled.
 */
const LOOKS_PER_ENVELOPE = 2;

/** Every envelope there is: the global one at the root, below it orgs, teams and agents, made when first named. */
export class EnvelopeTree {
  readonly root: Envelope;
  readonly #caps: Readonly<Record<Tier, Caps>>;
  readonly #ledger = new Ledger();
  #sequence = 0;
  #walk: Generator<Envelope> | undefined;
  #looksDue = 0;

  constructor(caps: Readonly<Record<Tier, Caps>>) {
    this.#caps = caps;
    this.root = new Envelope('global', '', undefined, this.#sequence, caps.global, this.#ledger.take());
  }

  get isEmpty(): boolean {
    return this.root.children?.size === 0;
  }

  /** The envelope at the end of the path: org, team, agent, or the beginning of it. */
  at(...names: readonly string[]): Envelope {
    return names.reduce((parent, name) => parent.children?.get(name) ?? this.#plant(parent, name), this.root);
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

  org(orgId: string): Envelope | undefined {
    return this.root.children?.get(orgId);
  }

  /**
   * Looks at up to `most` envelopes, from where it last stopped, and removes those that are idle. Returns the removed
   * ones.
   */
  sweep(most: number, epoch: Epoch): Envelope[] {
    const removed: Envelope[] = [];
    this.#walk ??= bottomUp(this.root);
    for (let looked = 0; looked < most; looked += 1) {
      this.#looksDue = Math.max(0, this.#looksDue - 1);
      const { value: envelope } = this.#walk.next();
      if (envelope === undefined) {
        this.#walk = undefined;
        return removed;
      }
      if (envelope.parent === undefined || !envelope.isIdle(epoch)) continue;
      envelope.removed = true;
      envelope.parent.children?.delete(envelope.name);
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
    return envelope;
  }

  #make(parent: Envelope, name: string, row: LedgerRow): Envelope {
    const tier = TIERS[TIERS.indexOf(parent.tier) + 1];
    assert(tier !== undefined, 'nothing stands below an agent');
    const caps = tier === 'org' && name === '' ? NO_CAPS : this.#caps[tier];
    return new Envelope(tier, name, parent, this.#sequence, caps, row);
  }
}

/** Children before their parent, so that a parent that loses its last child is looked at after that. */
function* bottomUp(envelope: Envelope): Generator<Envelope> {
  for (const child of envelope.children?.values() ?? []) yield* bottomUp(child);
  yield envelope;
}
