import { orgOfKey } from './keys.ts';

/** This part of all room is left to the orgs that do not have the most. */
const OTHERS_PART = 10;
/** With fewer keys than this in all, one org may have all of them. */
const SHARED_FROM = 1_000;

/** How many keys are counted for, in all and by org, and whether there is room for more. */
export class KeyRoom {
  readonly #most: number;
  readonly #ofOrg = new Map<string, number>();
  size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether so many more have room, the last of them this one. An org leaves some room to the others. */
  has(key: string, more: number): boolean {
    const most = this.#most;
    if (this.size + more > most) return false;
    if (most < SHARED_FROM || this.size + more <= most / 2) return true;
    return (this.#ofOrg.get(orgOfKey(key)) ?? 0) + more <= most - most / OTHERS_PART;
  }

  resize(key: string, by: 1 | -1): void {
    const org = orgOfKey(key);
    const size = (this.#ofOrg.get(org) ?? 0) + by;
    if (size === 0) this.#ofOrg.delete(org);
    else this.#ofOrg.set(org, size);
    this.size += by;
  }
}
