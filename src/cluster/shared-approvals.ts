import type { Approval } from '../core/approvals/approval.ts';
import { isDue } from '../core/approvals/approval.ts';
import { changing, coveredBy } from '../core/approvals/commands.ts';
import type { OpId } from '../core/base/ids.ts';
import { ok, type Result } from '../core/base/result.ts';
import type { CommandOf, CommandType, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import type { Governor } from '../core/governor.ts';
import type { Halt } from '../core/halts/halt.ts';
import type { ApprovalTurn } from '../core/outcome.ts';
import type { Membership, StateRow } from '../ports/cluster.ts';
import type { StateFeed } from './state-feed.ts';

export type SharedApprovalsOptions = {
  readonly feed: StateFeed;
  readonly governor: Governor;
  readonly membership: Pick<Membership, 'self' | 'others'>;
  readonly commands: { ask<T extends CommandType>(command: CommandOf<T> & { readonly type: T }): Promise<Replies[T]> };
  /** Wakes those who wait for the approval. */
  readonly onChanged: (approval: Approval) => void;
  readonly nowMs: () => number;
  readonly onError: (error: unknown, doing: string) => void;
};

/** What one gateway leaves undone, others do after this time. */
const LATE_MS = 5_000;
const CHANGES_A_TICK = 100;
/** Of ids that are not known here: anybody with a credential can make them up. */
const LOOKUPS_AT_ONCE = 64;

/** Approvals that all gateways of a cluster share: each changes in a turn of its digest, by its newest state. */
export class SharedApprovals {
  readonly #options: SharedApprovalsOptions;
  /** Those that are being changed by time or by a halt. */
  readonly #changing = new Set<string>();
  /** Decided by others, while the operations that wait for them here have not followed yet. */
  readonly #decided = new Set<string>();
  readonly #following = new Set<string>();
  /** What operations that were terminated here still wait for, by both. */
  readonly #leaving = new Map<string, CommandOf<'leave-approval'>>();
  #lookups = 0;

  constructor(options: SharedApprovalsOptions) {
    this.#options = options;
    const { feed, governor } = options;
    const turns = {
      current: undefined as string | undefined,
      isBusy: (digest: string) => feed.isBusy(digest),
      leave: ({ id }: Approval, opId: OpId, actor: string) => {
        this.#leaving.set(`${id} ${opId}`, { type: 'leave-approval', id, opId, actor });
        void this.#leave(`${id} ${opId}`);
      },
    };
    governor.approvalTurns = turns;
    feed.follow({
      adopt: (rows) => {
        for (const row of rows) this.#adopt(row);
      },
      within: (digest, work) => {
        turns.current = digest;
        try {
          work();
        } finally {
          turns.current = undefined;
        }
      },
    });
  }

  /** Calls `decide` in the turn, or once what is unknown was looked for. */
  take(turn: ApprovalTurn, decide: () => void, refuse: (fault: Fault) => void): void {
    const done = 'digest' in turn ? this.#inTurn(turn.digest, decide) : this.#find(turn.unknownId, decide);
    done.then(
      (taken) => {
        if (!taken.ok) refuse(taken.fault);
      },
      (error: unknown) => {
        this.#options.onError(error, 'deciding about an approval');
        refuse({ kind: 'internal' });
      },
    );
  }

  #inTurn(digest: string, decide: () => void): Promise<Result<void, Fault>> {
    return this.#options.feed.inTurn(digest, async () => ok(decide()));
  }

  async #find(id: string, decide: () => void): Promise<Result<void, Fault>> {
    if (this.#lookups >= LOOKUPS_AT_ONCE)
      return { ok: false, fault: { kind: 'overloaded', retryAfterSecs: 1, what: 'the search for approvals' } };
    this.#lookups += 1;
    const found = await this.#options.feed.find(id).finally(() => {
      this.#lookups -= 1;
    });
    if (found.ok) decide();
    return found;
  }

  /**
   * What time and halts do. Call it often: one gateway does it, and another one where that one does not. With
   * `isOwn`, it is this one's to do now.
   */
  async tick(isOwn = this.#isFirst()): Promise<void> {
    const { governor, nowMs } = this.#options;
    for (const id of [...this.#decided]) void this.#follow(id);
    for (const key of [...this.#leaving.keys()]) void this.#leave(key);
    const now = nowMs();
    const changes: Promise<void>[] = [];
    for (const approval of changing(governor.approvalContext, now)) {
      if (changes.length === CHANGES_A_TICK) break;
      const isLate = isDue(approval, now) && approval.expiresAtMs + LATE_MS < now;
      if (isOwn || isLate) changes.push(this.#change(approval, { type: 'tick-approvals', most: 1, only: approval.id }));
    }
    await Promise.all(changes);
  }

  /** Freezes or ends what a new halt covers. */
  async halt(halt: Halt): Promise<void> {
    const { governor, nowMs } = this.#options;
    const covered = [...coveredBy(governor.approvalContext, halt, nowMs())];
    await Promise.all(
      covered.map((each) => this.#change(each, { type: 'halt-approval', haltId: halt.id, id: each.id })),
    );
  }

  /** Until it has, it is tried again with each tick. */
  async #leave(key: string): Promise<void> {
    const { commands, feed, governor, onError } = this.#options;
    const command = this.#leaving.get(key);
    const digest = command && governor.approvals.get(command.id)?.digest;
    if (command === undefined || digest === undefined) return void this.#leaving.delete(key);
    try {
      const left = await feed.inTurn(digest, () => commands.ask(command));
      if (left.ok) this.#leaving.delete(key);
    } catch (error) {
      onError(error, command.type);
    }
  }

  /** The first of those that take part. */
  #isFirst(): boolean {
    const { membership } = this.#options;
    return membership.others().every(({ run, state }) => state !== 'live' || run > membership.self);
  }

  async #change(approval: Approval, command: CommandOf<'tick-approvals' | 'halt-approval'>): Promise<void> {
    const { commands, feed, nowMs, onError } = this.#options;
    const { id, digest, expiresAtMs } = approval;
    if (command.type === 'tick-approvals' && this.#changing.has(id)) return;
    this.#changing.add(id);
    try {
      const changed = await feed.inTurn<unknown>(digest, (dbNowMs) => {
        // By the clock of the database, which all gateways have in common.
        const isEarly = command.type === 'tick-approvals' && isDue(approval, nowMs()) && expiresAtMs > dbNowMs;
        return isEarly ? Promise.resolve(ok(undefined)) : commands.ask(command);
      });
      // An outage is logged as such, and the next tick tries again.
      if (!changed.ok && changed.fault.kind === 'internal') onError(changed.fault, command.type);
    } catch (error) {
      onError(error, command.type);
    } finally {
      this.#changing.delete(id);
    }
  }

  #adopt({ id, body }: Pick<StateRow, 'id' | 'body'>): void {
    const { commands, onChanged } = this.#options;
    const approval = body as Approval | undefined;
    const adopted = commands.ask({ type: 'adopt-approval', id, approval });
    if (approval !== undefined) onChanged(approval);
    void adopted.then((reply) => {
      if (reply.ok && reply.value.isDecided) void this.#follow(id);
    });
  }

  /** Until it is recorded, it is tried again with each tick. One at a time: agents are signalled by it. */
  async #follow(id: string): Promise<void> {
    if (this.#following.has(id)) return void this.#decided.add(id);
    this.#decided.delete(id);
    this.#following.add(id);
    const followed = await this.#options.commands.ask({ type: 'follow-approval', id });
    this.#following.delete(id);
    if (!followed.ok) this.#decided.add(id);
  }
}
