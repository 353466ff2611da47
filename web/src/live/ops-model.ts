/** The operations that the gateway keeps. Pure: time is an argument, and nothing here touches the page. */
import type { Frame, Snapshot } from './frame.ts';
import { type Action, isFinished, type Op, type OpEnd, type OpWord, WORDS, wordOf } from './op.ts';
import { type OpFilter, opTest } from './op-filter.ts';

const MAX_OPS = 50_000;
/** A snapshot that is quiet for so long has nothing more to tell: its remaining operations have gone meanwhile. */
const QUIET_MS = 3_000;

const keyOf = ({ org_id, payload: { op_id: opId, op_home: home } }: Pick<Frame, 'org_id' | 'payload'>): string =>
  `${org_id ?? ''}/${opId}${home === undefined ? '' : ` ${home}`}`;

/** Reads the fields that change with the state, and the text that a search looks at. */
function aboutOf({ org_id, agent_id, payload }: Frame) {
  const { op_id, team_id, action, resource, reason, error, ended, policy, rule_id, spent_usd } = payload;
  return {
    ended: (ended ?? null) as OpEnd | null,
    action: String(action ?? ''),
    resource: String(resource ?? ''),
    policy: String(policy ?? ''),
    ruleId: String(rule_id ?? ''),
    reason: String(error ?? reason ?? ''),
    spentUsd: Number(spent_usd ?? 0),
    approvalId: (payload.approval_id ?? null) as string | null,
    text: [op_id, org_id, team_id, agent_id, action, resource]
      .map((word) => word ?? '')
      .join(' ')
      .toLowerCase(),
  };
}

/** How many of these each word stands for, and for how many the gateway has yet to confirm what was asked. */
export function countsOf(ops: readonly Op[]): { counts: Record<OpWord, number>; asked: number } {
  const counts = Object.fromEntries(WORDS.map((word) => [word, 0])) as Record<OpWord, number>;
  let asked = 0;
  for (const op of ops) {
    counts[wordOf(op)] += 1;
    if (op.asked !== undefined) asked += 1;
  }
  return { counts, asked };
}

export class OpsModel {
  #ops = new Map<string, Op>();
  /** Whether they are sorted by registration: live ones come in that order, but a snapshot's come in any. */
  #isInOrder = true;
  #newestAtMs = 0;
  /** Operations that were left out because there are too many. */
  dropped = 0;
  /** Operations of the snapshot that are still to come; at most, because some may end before they do. */
  #awaited = 0;
  #heardAtMs = 0;
  #finishedTtlMs = Infinity;

  get size(): number {
    return this.#ops.size;
  }

  get(key: string): Op | undefined {
    return this.#ops.get(key);
  }

  /** All with this id: of several orgs, or of several gateways of a cluster. */
  withId(opId: string): readonly Op[] {
    return [...this.#ops.values()].filter((op) => op.opId === opId);
  }

  /** Begins anew: a snapshot follows. */
  begin({ opCount, finishedTtlMs }: Snapshot, nowMs: number): void {
    this.clear();
    this.#awaited = opCount;
    this.#heardAtMs = nowMs;
    this.#finishedTtlMs = finishedTtlMs;
  }

  clear(): void {
    this.#ops.clear();
    this.#isInOrder = true;
    this.#newestAtMs = 0;
    this.dropped = 0;
    this.#awaited = 0;
  }

  /** Whether the snapshot is still on its way: what is not here may yet come. */
  isFilling(nowMs: number): boolean {
    return this.#awaited > 0 && nowMs - this.#heardAtMs < QUIET_MS;
  }

  /** A change of state, or a line of a snapshot. It confirms, or overrules, whatever was asked for. */
  apply(frame: Frame, nowMs: number): void {
    const key = keyOf(frame);
    const known = this.#ops.get(key);
    this.#heardAtMs = nowMs;
    if (known !== undefined) return this.#update(known, frame, nowMs);
    this.#awaited -= 1;
    const { op_id: opId, op_home: home, state, team_id: teamId, updated_at: updatedAt } = frame.payload;
    const agentId = frame.agent_id ?? '';
    const registeredAtMs = Date.parse(frame.payload.registered_at);
    this.#ops.set(key, {
      ...{ key, opId, home, state, teamId, agentId, updatedAt, registeredAtMs },
      orgId: frame.org_id,
      // The clocks may be some seconds apart, but nothing has happened in the future.
      sinceMs: Math.min(nowMs, Date.parse(updatedAt)),
      asked: undefined,
      path: `${frame.org_id ?? ''}/${teamId}/${agentId}/`.toLowerCase(),
      ...aboutOf(frame),
    });
    if (registeredAtMs < this.#newestAtMs) this.#isInOrder = false;
    else this.#newestAtMs = registeredAtMs;
    if (this.#ops.size > MAX_OPS) this.#makeRoom();
  }

  #update(known: Op, frame: Frame, nowMs: number): void {
    const { state, updated_at: updatedAt } = frame.payload;
    if (Date.parse(updatedAt) < Date.parse(known.updatedAt)) return;
    known.sinceMs = known.state === state ? known.sinceMs : nowMs;
    known.state = state;
    known.updatedAt = updatedAt;
    known.asked = undefined;
    Object.assign(known, aboutOf(frame));
  }

  /** Shows the outcome before it is confirmed. */
  ask(key: string, action: Action): void {
    const op = this.#ops.get(key);
    if (op !== undefined) op.asked = action;
  }

  /** The gateway has refused. */
  takeBack(key: string, action: Action): void {
    const op = this.#ops.get(key);
    if (op !== undefined && op.asked === action) op.asked = undefined;
  }

  /** Forgets what has been finished for as long as the gateway keeps it. */
  expire(nowMs: number): void {
    for (const [key, op] of this.#ops)
      if (isFinished(op.state) && nowMs - op.sinceMs >= this.#finishedTtlMs) this.#ops.delete(key);
  }

  /** The newest first. */
  list(filter: OpFilter): Op[] {
    this.#sort();
    const test = opTest(filter);
    const found: Op[] = [];
    for (const op of this.#ops.values()) if (test(op)) found.push(op);
    return found.reverse();
  }

  /** Every org that has an operation here, in order. */
  orgs(): readonly string[] {
    const orgs = new Set<string>();
    for (const { orgId } of this.#ops.values()) if (orgId !== null) orgs.add(orgId);
    return [...orgs].sort();
  }

  #sort(): void {
    if (this.#isInOrder) return;
    this.#ops = new Map([...this.#ops].sort(([, one], [, other]) => one.registeredAtMs - other.registeredAtMs));
    this.#isInOrder = true;
  }

  /** The finished go first, then the oldest. A tenth at a time, so that this is rare. */
  #makeRoom(): void {
    this.#sort();
    const least = MAX_OPS * 0.9;
    for (const [key, op] of this.#ops) {
      if (this.#ops.size <= least) return;
      if (isFinished(op.state)) this.#ops.delete(key);
    }
    for (const key of this.#ops.keys()) {
      if (this.#ops.size <= least) return;
      this.#ops.delete(key);
      this.dropped += 1;
    }
  }
}
