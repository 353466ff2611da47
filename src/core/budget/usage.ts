import { type BudgetChange, keyOfUsage, type UsageRow } from './rows.ts';

export type UsageMemoryLimits = { readonly ttlMs: number; readonly perOrg: number; readonly total: number };

/** An id takes some 400 bytes, 700 where all names are long, so all of them take less than a fifth of the memory. */
const IDS_PER_MIB = 256;
const MOST_IDS = 262_144;
/** A limit for each org, so that a few busy ones leave room for others. */
const ORG_SHARE = 1 / 16;
const TTL_MS = 24 * 3_600_000;

/** Returns limits that fit into a machine or container with so much memory. */
export function usageLimitsFor(memoryMib: number): UsageMemoryLimits {
  const total = Math.min(MOST_IDS, IDS_PER_MIB * memoryMib);
  return { ttlMs: TTL_MS, perOrg: Math.ceil(total * ORG_SHARE), total };
}

/**
 * The usage ids counted lately, so that a retry counts once. An id is remembered for a day, unless there are too many.
 * Then the oldest goes: of the org that needs room or, if that org has none, of the org with the most.
 */
export class UsageMemory {
  readonly #limits: UsageMemoryLimits;
  readonly #orgs = new Map<string, Map<string, UsageRow>>(); // each in the order of recording
  #size = 0;
  #changes = new Map<string, UsageRow | undefined>();

  constructor(limits: UsageMemoryLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  recall(id: Pick<UsageRow, 'orgId' | 'teamId' | 'agentId' | 'usageId'>, nowMs: number): UsageRow | undefined {
    const row = this.#orgs.get(id.orgId)?.get(keyOfUsage(id));
    return row === undefined || this.#isOver(row, nowMs) ? undefined : row;
  }

  remember(row: UsageRow): void {
    const key = keyOfUsage(row);
    this.#put(key, row);
    this.#changes.set(key, row);
  }

  /** Marks the id as not stored yet, if it is still remembered. */
  requeue(row: UsageRow): void {
    const key = keyOfUsage(row);
    if (this.#orgs.get(row.orgId)?.get(key) === row) this.#changes.set(key, row);
  }

  /** Takes back what a store has kept; expired rows are removed from the store with the next changes. */
  restore(rows: Iterable<UsageRow>, nowMs: number): void {
    const { total } = this.#limits;
    let latest: UsageRow[] = [];
    for (const row of rows) {
      if (this.#isOver(row, nowMs)) this.#changes.set(keyOfUsage(row), undefined);
      else latest.push(row);
      // A store that was filled when there was more memory may hold too many. Those left out stay in it until a start
      // finds them expired.
      if (latest.length > total * 1.25) latest = inOrder(latest).slice(-total);
    }
    for (const row of inOrder(latest).slice(-total)) this.#put(keyOfUsage(row), row);
  }

  /** Forgets expired ids, at most `most` of them. Returns how many. */
  sweep(nowMs: number, most: number): number {
    let dropped = 0;
    for (const [orgId, rows] of this.#orgs) {
      for (const row of rows.values()) {
        if (dropped === most) return dropped;
        if (!this.#isOver(row, nowMs)) break;
        this.#forget(orgId, rows, row);
        dropped += 1;
      }
    }
    return dropped;
  }

  drainChanges(): BudgetChange[] {
    const changes = [...this.#changes].map(([key, row]) => ({ key, row }));
    this.#changes = new Map();
    return changes;
  }

  #isOver(row: UsageRow, nowMs: number): boolean {
    return nowMs - row.recordedAtMs >= this.#limits.ttlMs;
  }

  #put(key: string, row: UsageRow): void {
    const known = this.#orgs.get(row.orgId);
    if (known?.delete(key)) this.#size -= 1; // sent again after its day: it moves to the end of the order
    if (known !== undefined && known.size >= this.#limits.perOrg) this.#dropOldest(row.orgId);
    else if (this.#size >= this.#limits.total)
      this.#dropOldest(known !== undefined && known.size > 0 ? row.orgId : this.#largestOrg());
    const rows = this.#orgs.get(row.orgId) ?? new Map<string, UsageRow>();
    this.#orgs.set(row.orgId, rows.set(key, row));
    this.#size += 1;
  }

  #largestOrg(): string | undefined {
    let largest: { readonly orgId: string; readonly size: number } | undefined;
    for (const [orgId, { size }] of this.#orgs)
      if (largest === undefined || size > largest.size) largest = { orgId, size };
    return largest?.orgId;
  }

  #dropOldest(orgId: string | undefined): void {
    const rows = orgId === undefined ? undefined : this.#orgs.get(orgId);
    const oldest = rows?.values().next().value;
    if (orgId !== undefined && rows !== undefined && oldest !== undefined) this.#forget(orgId, rows, oldest);
  }

  #forget(orgId: string, rows: Map<string, UsageRow>, row: UsageRow): void {
    const key = keyOfUsage(row);
    rows.delete(key);
    if (rows.size === 0) this.#orgs.delete(orgId);
    this.#size -= 1;
    this.#changes.set(key, undefined);
  }
}

const inOrder = (rows: readonly UsageRow[]): UsageRow[] => rows.toSorted((a, b) => a.recordedAtMs - b.recordedAtMs);
